//! How many files this process may have open: as many as the system lets it, since a trace has one for each rank.
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::sync::OnceLock;

/// What the limits were before: soft and hard.
static BEFORE: OnceLock<(u64, u64)> = OnceLock::new();

/// From now on this process may open as many files as the system lets it.
pub fn raise() {
    // Where that is refused, the limit stays, and whoever meets it says so.
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
        && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok()
    {
        BEFORE.get_or_init(|| (soft, hard));
    }
}

/// In a child before it becomes a program: the limit is what it was, as programs may go by it. A system call only.
pub fn restore() {
    if let Some(&(soft, hard)) = BEFORE.get() {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
    }
}
