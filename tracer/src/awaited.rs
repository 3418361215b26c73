//! In the run that saves images of a program which a script or a tool starts, nothing is recorded: the process that turns out
//! to be the program becomes its host.
use crate::sink::say;
use phasecast_trace::awaited::{Awaited, VARIABLE};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::{fs, io, ptr};

/// Becomes the host, if this process is what is awaited. `clean` takes this library out of the environment.
pub fn become_host(clean: impl FnOnce()) {
    let Some(awaited) = Awaited::told() else { return };
    let ran = &awaited.ran;
    if !fs::read_link("/proc/self/exe").is_ok_and(|path| path == ran.program) {
        return;
    }
    let command = fs::read("/proc/self/cmdline").unwrap_or_default();
    // Each word ends in zero.
    let words: Vec<&[u8]> = command.split_inclusive(|&byte| byte == 0).collect();
    let own = words.iter().skip(1).copied().flatten();
    // What a program takes apart in place (`strtok`) has become zeros by the time that it is recorded.
    let has_args = |args: &Vec<String>| {
        let mut told = args.iter().flat_map(|word| word.bytes().chain([0]));
        own.clone().all(|own| told.next().is_some_and(|told| told == *own || told == 0)) && told.next().is_none()
    };
    if !ran.args.as_ref().is_none_or(has_args) {
        return;
    }
    clean();
    // SAFETY: a constructor, before the program has threads.
    unsafe { std::env::remove_var(VARIABLE) };
    let told =
        [awaited.host.as_os_str(), "host".as_ref(), awaited.job.as_os_str(), "is".as_ref(), ran.program.as_os_str()];
    let told: Vec<CString> = told.iter().filter_map(|word| CString::new(word.as_bytes()).ok()).collect();
    let words = words.iter().filter_map(|word| CStr::from_bytes_with_nul(word).ok());
    let mut list: Vec<*const libc::c_char> =
        told.iter().map(CString::as_c_str).chain(words).map(CStr::as_ptr).collect();
    list.push(ptr::null());
    // SAFETY: texts that end in zero, which live as long as the call, in a list that ends in a null pointer.
    unsafe { libc::execv(list[0], list.as_ptr()) };
    say(&format!("cannot become the host of {}: {}", ran.program.display(), io::Error::last_os_error()));
}
