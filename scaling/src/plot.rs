//! Small plots as SVG: lines, points, bands and marks on two axes, linear or logarithmic. By hand, as a plotting library
//! brings fonts and dozens of crates for what is a few dozen lines of text.
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 60.0;
/// Colours that can be told apart by the colour-blind (Okabe and Ito).
pub const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// Its ends.
    pub range: [f64; 2],
    /// Whether it is logarithmic, to the base 2.
    pub logarithmic: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, low: f64, high: f64) -> Axis {
        let high = if high > low { high } else { low + 1.0 };
        Axis { label: label.into(), range: [low, high], logarithmic: false }
    }

    /// A logarithmic axis; its ends are above 0.
    pub fn logarithmic(label: &str, low: f64, high: f64) -> Axis {
        let low = low.max(1e-12);
        let high = if high > low { high } else { 2.0 * low };
        Axis { label: label.into(), range: [low, high], logarithmic: true }
    }

    fn share(&self, value: f64) -> f64 {
        let [low, high] = self.range;
        let share = match self.logarithmic {
            true => (value.max(low) / low).log2() / (high / low).log2(),
            false => (value - low) / (high - low),
        };
        share.clamp(-0.02, 1.02)
    }

    /// Places with a number.
    fn marks(&self) -> Vec<f64> {
        let [low, high] = self.range;
        if self.logarithmic {
            let (from, to) = (low.log2().ceil() as i32, high.log2().floor() as i32);
            let by = ((to - from) / 10 + 1) as usize;
            return (from..=to).step_by(by).map(|power| 2f64.powi(power)).collect();
        }
        let rough = (high - low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|of| of * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let first = (low / step).ceil() as i64;
        (0..20).map(|i| (first + i) as f64 * step).take_while(|mark| *mark <= high * (1.0 + 1e-9)).collect()
    }
}

/// A plot under way.
pub struct Plot {
    x: Axis,
    y: Axis,
    body: String,
    legend: Vec<(String, String)>,
    title: String,
}

impl Plot {
    /// An empty plot.
    pub fn new(title: &str, x: Axis, y: Axis) -> Plot {
        Plot { x, y, body: String::new(), legend: Vec::new(), title: title.into() }
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        (LEFT + wide * self.x.share(x), TOP + high * (1.0 - self.y.share(y)))
    }

    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut text = String::new();
        for (i, point) in points.filter(|(x, y)| x.is_finite() && y.is_finite()).enumerate() {
            let (x, y) = self.at(point);
            let _ = write!(text, "{}{x:.1},{y:.1}", if i == 0 { "M" } else { "L" });
        }
        text
    }

    /// A line; with a name in the legend if it has one.
    pub fn line(&mut self, name: &str, colour: &str, dashed: bool, points: impl Iterator<Item = (f64, f64)>) {
        let path = self.path(points);
        let dash = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ =
            writeln!(self.body, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dash}/>");
        self.name(name, colour);
    }

    /// The area between points and the axis.
    pub fn area(&mut self, name: &str, colour: &str, points: impl Iterator<Item = (f64, f64)> + Clone) {
        let low = self.y.range[0];
        let (first, last) = (points.clone().next(), points.clone().last());
        let Some((first, last)) = first.zip(last) else { return };
        let path = self.path([(first.0, low)].into_iter().chain(points).chain([(last.0, low)]));
        let _ = writeln!(self.body, "<path d=\"{path}Z\" fill=\"{colour}\" fill-opacity=\"0.3\" stroke=\"none\"/>");
        self.name(name, colour);
    }

    /// The area between two lines: places with their low and high ends.
    pub fn band(&mut self, name: &str, colour: &str, points: &[(f64, [f64; 2])]) {
        let there = points.iter().map(|(x, y)| (*x, y[0]));
        let path = self.path(there.chain(points.iter().rev().map(|(x, y)| (*x, y[1]))));
        let _ = writeln!(self.body, "<path d=\"{path}Z\" fill=\"{colour}\" fill-opacity=\"0.18\" stroke=\"none\"/>");
        self.name(name, colour);
    }

    /// Points.
    pub fn points(&mut self, name: &str, colour: &str, points: impl Iterator<Item = (f64, f64)>) {
        for point in points {
            let (x, y) = self.at(point);
            let _ = writeln!(self.body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>");
        }
        self.name(name, colour);
    }

    /// A vertical line with a word at its foot.
    pub fn mark(&mut self, x: f64, word: &str) {
        let ((x, low), (_, high)) = (self.at((x, self.y.range[0])), self.at((x, self.y.range[1])));
        let _ = writeln!(
            self.body,
            "<path d=\"M{x:.1},{low:.1}V{high:.1}\" stroke=\"#888\" stroke-width=\"0.8\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555\">{}</text>",
            x + 3.0,
            high + 12.0,
            escape(word)
        );
    }

    fn name(&mut self, name: &str, colour: &str) {
        if !name.is_empty() {
            self.legend.push((name.into(), colour.into()));
        }
    }

    /// The plot as a document of its own.
    pub fn svg(&self) -> String {
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n<title>{0}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"18\" font-size=\"14\">{0}</text>\n",
            escape(&self.title)
        );
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for mark in self.x.marks() {
            let (x, _) = self.at((mark, self.y.range[0]));
            let _ = writeln!(
                text,
                "<path d=\"M{x:.1},{TOP}V{bottom}\" stroke=\"#eee\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                number(mark)
            );
        }
        for mark in self.y.marks() {
            let (_, y) = self.at((self.x.range[0], mark));
            let _ = writeln!(
                text,
                "<path d=\"M{LEFT},{y:.1}H{right}\" stroke=\"#eee\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                number(mark)
            );
        }
        text.push_str(&self.body);
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT},{TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#333\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(18,{:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            0.5 * (LEFT + right),
            HEIGHT - 26.0,
            escape(&self.x.label),
            0.5 * (TOP + bottom),
            escape(&self.y.label)
        );
        let mut x = LEFT;
        for (name, colour) in &self.legend {
            let _ = writeln!(
                text,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"4\" fill=\"{colour}\"/><text x=\"{:.1}\" \
                 y=\"{:.1}\">{}</text>",
                HEIGHT - 12.0,
                x + 18.0,
                HEIGHT - 7.0,
                escape(name)
            );
            x += 36.0 + 6.6 * name.chars().count() as f64;
        }
        text.push_str("</svg>\n");
        text
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if !(1e-3..1e5).contains(&v) => format!("{value:.0e}"),
        v if v >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.3}").trim_end_matches('0').to_owned(),
    }
}

fn escape(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect::<String>();
    clean.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_within_the_axis() {
        assert_eq!(Axis::linear("", 0.0, 12.0).marks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!(Axis::logarithmic("", 1.0, 16.0).marks(), [1.0, 2.0, 4.0, 8.0, 16.0]);
    }

    #[test]
    fn names_cannot_end_an_element() {
        let mut plot = Plot::new("<b>&", Axis::linear("x", 0.0, 1.0), Axis::linear("y", 0.0, 1.0));
        plot.line("a<b", COLOURS[0], false, [(0.0, f64::NAN), (0.0, 0.5), (1.0, 1.0)].into_iter());
        let svg = plot.svg();
        assert!(!svg.contains("<b>") && !svg.contains("NaN") && svg.contains("a&lt;b"), "{svg}");
    }
}
