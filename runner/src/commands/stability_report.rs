//! What `phasecast stability` prints: words with tables, or one JSON object.
use crate::output::{self, clean, count, percent, seconds};
use crate::perturb::{Experiment, Run};
use anyhow::Result;
use phasecast_trace::EventKind;
use phasecast_trace::delays::Delay;
use phasecast_transform::stability::design::effects;
use phasecast_transform::stability::{
    Candidate, Design, Effect, Names, Outcome, Reason, Regions, Symbol, Trouble, Verdict,
};
use serde_json::{Value, json};
use std::fmt::Write;

/// Places that a table names; JSON has all of them.
const MOST_PLACES: usize = 12;
/// The share of the variation from which on an interaction is told in words.
const TELLING: f64 = 0.05;

/// What there is to tell.
pub struct Told<'a> {
    /// What events and places are called.
    pub names: &'a Names,
    /// What all runs say together.
    pub verdict: &'a Verdict,
    /// The runs.
    pub runs: &'a [Run],
    /// Where they were made for this: delays, and which were set in which run.
    pub experiment: Option<(&'a Experiment, &'a Design)>,
    /// What was taken for granted.
    pub notes: &'a [String],
}

/// Prints it.
pub fn tell(as_json: bool, told: &Told<'_>) -> Result<()> {
    if as_json { output::json(&told.object()) } else { output::words(&told.words()) }
}

impl Told<'_> {
    fn object(&self) -> Value {
        let verdict = self.verdict;
        let place = |trouble: &Trouble| {
            let [was, is] = trouble.what.map(|symbol| symbol.map(|symbol| self.say(&symbol)));
            json!({
                "rank": trouble.place.task.0, "thread": trouble.place.task.1, "site": trouble.place.site,
                "procedure": trouble.place.procedure, "kind": trouble.kind(), "wildcard": trouble.place.wildcard,
                "events": trouble.events, "changed": trouble.changed, "runs": trouble.runs,
                "first": { "event": trouble.first, "was": was, "is": is },
            })
        };
        let run = |run: &Run| {
            let (compared, regions) = &run.compared;
            json!({
                "delayed": run.levels, "time_s": run.time_s, "events": compared.events,
                "similarity": compared.similarity, "distance": compared.distance(), "regions": regions,
                "broken": run.broken,
            })
        };
        let mut value = json!({
            "verdict": verdict.outcome, "similarity": verdict.similarity,
            "distance": verdict.events - verdict.similarity, "events": verdict.events, "exact": verdict.exact,
            "reason": verdict.reason, "places": verdict.places.iter().map(place).collect::<Vec<_>>(),
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(), "notes": self.notes,
        });
        if let Some((experiment, design)) = self.experiment {
            let [distance, time] = self.effects(design);
            let effect = |(effect, time): (&Effect, &Effect)| {
                json!({
                    "factors": effect.factors, "distance": effect.effect, "share": effect.share,
                    "time_s": time.effect, "time_share": time.share, "mixed_with": effect.mixed_with,
                })
            };
            let factor = |(candidate, delay): &(Candidate, Delay)| {
                json!({
                    "rank": candidate.rank, "site": candidate.site, "procedure": candidate.procedure,
                    "reason": reason(candidate), "calls": candidate.calls, "delay_s": delay.fixed_ns as f64 * 1e-9,
                    "share": delay.share, "every": delay.every,
                })
            };
            value["design"] = design.words().into();
            value["factors"] = experiment.factors().iter().map(factor).collect();
            value["effects"] = distance.iter().zip(&time).map(effect).collect();
        }
        value
    }

    /// The effects on the distance and on the run time.
    fn effects(&self, design: &Design) -> [Vec<Effect>; 2] {
        let of = |response: fn(&Run) -> f64| effects(design, &self.runs.iter().map(response).collect::<Vec<f64>>());
        [of(|run| run.compared.0.distance() as f64), of(|run| run.time_s)]
    }

    /// An event in words.
    fn say(&self, symbol: &Symbol) -> String {
        let Symbol { peer, tag, bytes, .. } = symbol;
        match symbol.kind {
            EventKind::Send => format!("{bytes} bytes to rank {peer}, tag {tag}"),
            EventKind::Recv => format!("{bytes} bytes from rank {peer}, tag {tag}"),
            EventKind::Collective => {
                let name = self.names.procedures.get(symbol.procedure).map_or("a collective", String::as_str);
                format!("{} with {bytes} bytes", clean(name))
            }
        }
    }

    fn words(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<12} {value}");
        };
        let verdict = self.verdict;
        let outcome = match verdict.outcome {
            Outcome::Stable => "stable",
            Outcome::Unstable => "unstable",
            Outcome::Partly => "stable but for the places below",
        };
        line("verdict", format!("{outcome}: {}", verdict.reason));
        let (events, distance) = (verdict.events, verdict.events - verdict.similarity);
        let of_all = percent(distance as f64 / events.max(1) as f64);
        line("distance", format!("{} of {} events ({of_all}) at most", count(distance), count(events)));
        if !verdict.exact {
            line("", "an upper bound: runs differ so much that the search was given up".into());
        }
        let regions = self.runs.iter().filter_map(|run| run.compared.1.as_ref()).max_by_key(|regions| regions.distance);
        if let Some(Regions { regions, same, searched, approximated, distance, .. }) = regions {
            let others = format!("{} pairs searched, {} approximated", count(*searched), count(*approximated));
            let (distance, same, of) = (count(*distance), count(*same), count(regions[0]));
            line("by regions", format!("{distance} at most; {same} of {of} regions the same; {others}"));
        }
        for note in self.notes {
            line("note", note.clone());
        }
        if let Some((experiment, design)) = self.experiment {
            line("experiment", format!("{} runs: {}", self.runs.len(), design.words()));
            self.factors(&mut text, experiment, design);
        }
        if !verdict.places.is_empty() {
            self.places(&mut text);
        }
        text
    }

    /// What was delayed, and with what effect.
    fn factors(&self, text: &mut String, experiment: &Experiment, design: &Design) {
        let [distance, time] = self.effects(design);
        let headers = ["delayed", "rank", "site", "calls", "delay", "distance", "share", "time", "why"];
        let mut table = output::table(&headers, &[0, 1, 3, 4, 5, 6, 7]);
        for (number, (candidate, delay)) in experiment.factors().iter().enumerate() {
            let mut length = match delay.share {
                0.0 => seconds(delay.fixed_ns as f64 * 1e-9),
                share => format!("{} of the block", percent(share)),
            };
            if delay.every > 1 {
                length = format!("{length}, 1 of {} calls", delay.every);
            }
            table.add_row([
                (number + 1).to_string(),
                candidate.rank.to_string(),
                format!("{} {}", clean(&candidate.procedure), clean(&candidate.site)),
                count(candidate.calls),
                length,
                format!("{:+.1}", distance[number].effect),
                percent(distance[number].share),
                format!("{}{}", if time[number].effect < 0.0 { "" } else { "+" }, seconds(time[number].effect)),
                reason(candidate),
            ]);
        }
        let _ = writeln!(text, "\n{table}");
        let telling = |effect: &&Effect| effect.factors.len() == 2 && effect.share >= TELLING;
        for Effect { factors, effect, share, mixed_with } in distance.iter().filter(telling) {
            let pair = |x: usize, y: usize| format!("{} and {}", x + 1, y + 1);
            let others: String = mixed_with.iter().map(|(x, y)| format!(", or {}", pair(*x, *y))).collect();
            let _ =
                writeln!(text, "{}{others} together: {effect:+.1} ({})", pair(factors[0], factors[1]), percent(*share));
        }
    }

    /// Where runs differ.
    fn places(&self, text: &mut String) {
        let headers = ["rank", "place", "what", "changed", "of", "runs", "first", "was", "is"];
        let mut table = output::table(&headers, &[0, 3, 4, 5, 6]);
        for trouble in self.verdict.places.iter().take(MOST_PLACES) {
            let what = trouble.what.map(|symbol| symbol.map_or_else(|| "-".into(), |symbol| self.say(&symbol)));
            let [was, is] = what;
            table.add_row([
                trouble.place.task.0.to_string(),
                format!("{} {}", clean(&trouble.place.procedure), clean(&trouble.place.site)),
                trouble.kind().into(),
                count(trouble.changed),
                count(trouble.events),
                trouble.runs.to_string(),
                trouble.first.to_string(),
                was,
                is,
            ]);
        }
        let _ = writeln!(text, "\n{table}");
        if let Some(more @ 1..) = self.verdict.places.len().checked_sub(MOST_PLACES) {
            let _ = writeln!(text, "and {more} more places; --json has all");
        }
    }
}

fn reason(candidate: &Candidate) -> String {
    match candidate.reason {
        Reason::Race(receiver) => format!("races for rank {receiver}"),
        Reason::Block => format!("{} before it", seconds(candidate.blocks_s)),
    }
}
