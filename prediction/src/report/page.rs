//! The report as HTML: what is text is laid out here; what is drawn is handed to the script as JSON.
use super::{Report, Row, seconds};
use serde_json::json;
use std::fmt::Write;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// Phases with a row of their own in the table; the rest are summed up.
const MOST_ROWS: usize = 400;

/// The page.
pub(super) fn html(report: &Report) -> String {
    let mut page = String::with_capacity(64 << 10);
    let title = format!("{} \u{2013} phasecast {}", report.program, report.kind);
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(&title)
    );
    head(&mut page, report);
    figures(&mut page, report);
    if report.answer.is_some() {
        section(
            &mut page,
            "answer",
            "Where the run time lies",
            "The predicted time with its interval, for the mean of many runs (dark) and for another single run (light).",
        );
    }
    let of = if report.answer.is_some() { "What the predicted time is made of" } else { "What the run is made of" };
    section(&mut page, "parts", of, "Weight \u{d7} time of each phase; what belongs to no phase is hatched.");
    for drawing in &report.drawings {
        let _ = writeln!(
            page,
            "<section><h2>{}</h2><p class=\"help\">{}</p><div class=\"scroll\">{}</div></section>",
            escape(&drawing.title),
            escape(&drawing.help),
            drawing.svg
        );
    }
    if !report.timeline.is_empty() {
        let help =
            format!("{} Drag to zoom, double-click to see all of it, hover for the phase.", report.timeline_caption);
        section(&mut page, "timeline", "Ranks over time", &help);
    }
    if report.phases.iter().any(|row| row.total_s.is_some()) {
        section(
            &mut page,
            "bars",
            "Base and target",
            "Weight \u{d7} time of the phases that take the most, on both machines.",
        );
    }
    table(&mut page, report);
    let _ = write!(
        page,
        "</main>\n<footer>Made by phasecast {} \u{b7} this file needs no network</footer>\n\
         <div id=\"tip\" role=\"tooltip\" hidden></div>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        data(report)
    );
    page
}

fn head(page: &mut String, report: &Report) {
    let _ = write!(
        page,
        "<header>\n<p class=\"kind\">phasecast \u{b7} {}</p>\n<h1>{}</h1>\n<dl>\n",
        escape(&report.kind),
        escape(&report.program)
    );
    for (name, value) in report.facts.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(page, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
    }
    page.push_str("</dl>\n</header>\n");
    if !report.notes.is_empty() {
        page.push_str("<ul class=\"notes\">\n");
        for note in &report.notes {
            let _ = writeln!(page, "<li>{}</li>", escape(note));
        }
        page.push_str("</ul>\n");
    }
}

fn figures(page: &mut String, report: &Report) {
    page.push_str("<div class=\"figures\">\n");
    for figure in &report.figures {
        let _ = writeln!(
            page,
            "<div class=\"figure\"><p class=\"name\">{}</p><p class=\"value\">{}</p><p class=\"detail\">{}</p></div>",
            escape(&figure.name),
            escape(&figure.value),
            escape(&figure.detail)
        );
    }
    page.push_str("</div>\n");
}

fn section(page: &mut String, id: &str, title: &str, help: &str) {
    let _ = writeln!(
        page,
        "<section><h2>{}</h2><p class=\"help\">{}</p><div id=\"{id}\"></div></section>",
        escape(title),
        escape(help)
    );
}

fn table(page: &mut String, report: &Report) {
    let target = report.phases.iter().any(|row| row.total_s.is_some());
    page.push_str("<section><h2>Phases</h2><div class=\"scroll\"><table>\n<thead><tr><th>phase</th><th>structure</th>");
    let columns: &[&str] = match target {
        true => &["weight", "measured", "base", "target", "ratio", "weight \u{d7} time", "share"],
        false => &["weight", "planned", "mean time", "weight \u{d7} time", "share"],
    };
    for column in columns {
        let _ = write!(page, "<th class=\"n\">{column}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    let mut rows: Vec<&Row> = report.phases.iter().collect();
    rows.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.id.cmp(&b.id)));
    let (shown, hidden) = rows.split_at(rows.len().min(MOST_ROWS));
    for row in shown {
        self::row(page, row, target);
    }
    page.push_str("</tbody>\n</table></div>\n");
    if !hidden.is_empty() {
        let share: f64 = hidden.iter().map(|row| row.share).sum();
        let text = format!("{} more phases, {:.2} % together.", hidden.len(), share * 100.0);
        let _ = writeln!(page, "<p class=\"help\">{text}</p>");
    }
    page.push_str("</section>\n");
}

fn row(page: &mut String, row: &Row, target: bool) {
    let _ = write!(
        page,
        "<tr data-phase=\"{0}\"><td><i class=\"swatch\"></i>{0}</td><td class=\"structure\">{1}</td>\
         <td class=\"n\">{2}</td><td class=\"n\">{3}</td><td class=\"n\">{4}</td>",
        row.id,
        escape(&row.structure),
        row.weight,
        row.measured,
        seconds(row.base_s)
    );
    if target {
        let (time, ratio) = match row.target_s {
            Some(time) if row.base_s > 0.0 => (seconds(time), format!("{:.3}", time / row.base_s)),
            Some(time) => (seconds(time), "\u{2013}".into()),
            None => ("not measured".into(), "\u{2013}".into()),
        };
        let _ = write!(page, "<td class=\"n\">{time}</td><td class=\"n\">{ratio}</td>");
    }
    let total = row.total_s.unwrap_or(row.weight as f64 * row.base_s);
    let percent = row.share * 100.0;
    let _ = writeln!(
        page,
        "<td class=\"n\">{}</td><td class=\"n share\"><i style=\"width:{:.1}%\"></i><b>{percent:.1} %</b></td></tr>",
        seconds(total),
        percent.clamp(0.0, 100.0)
    );
}

/// What the script draws, as JSON that cannot end its element.
fn data(report: &Report) -> String {
    let phases: Vec<_> = report
        .phases
        .iter()
        .map(|row| {
            let base = row.weight as f64 * row.base_s;
            json!({
                "id": row.id,
                "structure": row.structure,
                "weight": row.weight,
                "base": base,
                "target": row.total_s,
                "total": row.total_s.unwrap_or(base),
                "measured": row.target_s.is_some(),
            })
        })
        .collect();
    let pieces: Vec<_> = report.timeline.iter().map(|p| json!([p.rank, p.phase, p.start_s, p.end_s])).collect();
    let data = json!({ "phases": phases, "rest": report.rest, "answer": report.answer, "pieces": pieces });
    let mut text = String::new();
    for c in data.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", c as u32);
            }
            c => text.push(c),
        }
    }
    text
}

/// A text as it may stand in HTML, in an element or a quoted attribute; control characters are made visible.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
