//! Progress bars: on standard error, only if that is a terminal, and only once the work has taken a second.
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::OnceCell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How long work runs in silence.
const SILENCE: Duration = Duration::from_secs(1);

/// The progress of one piece of work.
pub struct Progress {
    label: &'static str,
    total: u64,
    start: Instant,
    terminal: bool,
    bar: OnceCell<ProgressBar>,
}

impl Progress {
    /// Work of `total` steps (0 if that is not known).
    pub fn new(label: &'static str, total: u64) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        Progress { label, total, start: Instant::now(), terminal, bar: OnceCell::new() }
    }

    /// So many steps are done.
    pub fn at(&self, done: u64) {
        if !self.terminal || self.start.elapsed() < SILENCE {
            return;
        }
        self.bar.get_or_init(|| self.make()).set_position(done);
    }

    fn make(&self) -> ProgressBar {
        let (length, template) = match self.total {
            0 => (None, "{msg} {spinner} {human_pos} ({per_sec})"),
            total => (Some(total), "{msg} [{wide_bar:.cyan}] {percent} %, {eta} left"),
        };
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr_with_hz(8));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(self.label);
        bar.with_elapsed(self.start.elapsed())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
