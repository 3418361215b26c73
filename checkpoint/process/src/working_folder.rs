//! The folder in which a replayed program is. Where this machine has none of that name, or only the program has made it, the
//! process stays where it is, and the name is kept: relative names go on from it. Part of the trap handler.
use crate::overlay::{self, Buffers, Seen};
use crate::own::{Who, who};
use crate::sys::{error, failed, syscall};
use crate::trap::Call;
use libc::{AT_FDCWD, ENOENT, ENOTDIR, ERANGE};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static STARTED: OnceLock<PathBuf> = OnceLock::new();

/// Where this process was started, if it was asked for before the program could change that.
pub(crate) fn started() -> &'static Path {
    STARTED.get_or_init(|| std::env::current_dir().unwrap_or_default())
}

/// Puts the process where the program was, which was started in the folder `first`. Where that is missing, the folder in which
/// this process was started stands for it.
pub(crate) fn restore(folder: &Path, first: &Path) {
    // Also one that may not be entered is as good as missing.
    if !first.as_os_str().is_empty() && !first.join(".").is_dir() {
        overlay::stand_for(first, started());
    }
    if std::env::set_current_dir(folder).is_err() {
        let _ = std::env::set_current_dir(started());
        overlay::work_in(folder);
    }
}

/// Carries out a call of the upper half that changes the folder or asks for it.
pub(crate) unsafe fn trapped(call: &Call) -> isize {
    // SAFETY: throughout: the upper half's own call, its arguments as it gave them.
    unsafe {
        if !overlay::on() || who() != Who::Program {
            return call.pass();
        }
        let [first, size, ..] = call.args;
        let mut buffers = overlay::tables();
        let asks = call.number == libc::SYS_getcwd;
        if asks && buffers.at.len > 0 {
            let bytes = buffers.at.len + 1;
            if size < bytes {
                return error(ERANGE);
            }
            std::ptr::copy_nonoverlapping(buffers.at.address(), first as *mut u8, bytes);
            return bytes as isize;
        }
        let mut result = None;
        if call.number == libc::SYS_fchdir && buffers.folder_of(first) {
            let Buffers { folder, at, .. } = &mut *buffers;
            at.set(&[folder.get()]);
            return 0;
        }
        if call.number == libc::SYS_chdir && buffers.resolve(AT_FDCWD as usize, first) {
            buffers.follow();
            match (buffers.seen(), buffers.shown()) {
                (Seen::Copy, Some(libc::S_IFDIR)) => {
                    let Buffers { path, at, .. } = &mut *buffers;
                    at.set(&[path.get()]);
                    return 0;
                }
                (Seen::Copy, Some(_)) => return error(ENOTDIR),
                (Seen::Copy, None) | (Seen::Nothing, _) => return error(ENOENT),
                (Seen::Original, _) if buffers.followed => {
                    result = Some(syscall!(libc::SYS_chdir, buffers.path.address()));
                }
                (Seen::Original, _) => {}
            }
        }
        let result = result.unwrap_or_else(|| call.pass());
        if !asks && !failed(result) {
            buffers.at.len = 0;
        }
        result
    }
}
