//! Progress bars: on standard error, only if that is a terminal, and only once the work has taken a second.
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long work runs in silence.
const SILENCE: Duration = Duration::from_secs(1);

/// The progress of one piece of work; it vanishes when the work is done.
pub struct Bar {
    label: &'static str,
    unit: &'static str,
    start: Instant,
    terminal: bool,
    bar: OnceLock<ProgressBar>,
}

/// The bar of a piece of work that is counted in `unit`.
pub fn bar(label: &'static str, unit: &'static str) -> Bar {
    let terminal = std::io::stderr().is_terminal();
    Bar { label, unit, start: Instant::now(), terminal, bar: OnceLock::new() }
}

impl Bar {
    /// So much is done, of so much (0 if that is not known).
    pub fn set(&self, done: u64, of: u64) {
        if !self.terminal || self.start.elapsed() < SILENCE {
            return;
        }
        let bar = self.bar.get_or_init(|| self.make(of));
        bar.set_position(done);
        if of > 0 {
            bar.set_length(of);
        }
    }

    fn make(&self, of: u64) -> ProgressBar {
        let template = match of {
            0 => format!("{} {{spinner}} {{human_pos}} {}", self.label, self.unit),
            _ => format!("{} [{{bar:40}}] {{human_pos}} of {{human_len}} {}, {{eta}} left", self.label, self.unit),
        };
        let bar = ProgressBar::with_draw_target((of > 0).then_some(of), ProgressDrawTarget::stderr_with_hz(8));
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.with_elapsed(self.start.elapsed())
    }

    /// The work is done.
    pub fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
    }
}
