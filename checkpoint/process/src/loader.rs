//! Does for the upper half what the kernel's exec does: finds the program behind a script, maps it and its dynamic
//! linker into the range, sets the break, builds the stack.
use crate::elf::Elf;
use crate::space::{self, RANGE};
use crate::{Error, descriptors, fence, late_binding, stack};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where a position-independent program is put: low in the range, with the same last digits as under the kernel.
const PROGRAM: usize = RANGE.start + 0x5555_4000;
/// From a program's end to its break.
const BREAK_GAP: usize = 0x1d_e000;
const PAGE: usize = 4096;

/// The processor that a program is held to, so that its image runs on others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpu {
    /// Up to SSE 4.2.
    V2,
    /// Up to AVX2 and FMA.
    V3,
    /// Whatever this machine has.
    #[default]
    Native,
}

impl FromStr for Cpu {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "x86-64-v2" => Ok(Self::V2),
            "x86-64-v3" => Ok(Self::V3),
            "native" => Ok(Self::Native),
            _ => Err(Error::Cpu(name.into())),
        }
    }
}

const ABOVE_V3: &str =
    "-AVX512F,-AVX512CD,-AVX512ER,-AVX512PF,-AVX512VL,-AVX512BW,-AVX512DQ,-FMA4,-XOP,-TBM,-RTM,-XSAVEC";
const ABOVE_V2: &str = "-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-FMA,-BMI1,-BMI2,-LZCNT,-MOVBE";

impl Cpu {
    /// glibc's tunables that hold a program's C library to the baseline.
    fn tunables(self) -> String {
        match self {
            Self::Native => String::new(),
            Self::V3 => format!(":glibc.cpu.hwcaps={ABOVE_V3}"),
            Self::V2 => format!(":glibc.cpu.hwcaps={ABOVE_V3},{ABOVE_V2}"),
        }
    }

    /// Libraries of kernels choose by themselves; these variables hold the common ones to the baseline.
    fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Native => &[],
            Self::V3 => &[("OPENBLAS_CORETYPE", "Haswell"), ("MKL_ENABLE_INSTRUCTIONS", "AVX2")],
            Self::V2 => &[("OPENBLAS_CORETYPE", "Nehalem"), ("MKL_ENABLE_INSTRUCTIONS", "SSE4_2")],
        }
    }
}

/// A program to load.
#[derive(Clone, Debug)]
pub struct Start {
    /// Its file, with a path.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// Its environment; what the upper half needs is added.
    pub env: Vec<(OsString, OsString)>,
    /// A library to preload: the facade.
    pub facade: Option<PathBuf>,
    /// The processor it is held to.
    pub cpu: Cpu,
}

/// A loaded program, ready for [`crate::gate::enter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The dynamic linker's entry point.
    pub entry: usize,
    /// The stack pointer.
    pub stack: usize,
}

/// Loads a program into the upper half.
///
/// # Errors
/// If it cannot be read or is none that can be saved: static, of another architecture, damaged.
pub fn start(start: &Start) -> Result<Loaded, Error> {
    load(start, start.program.clone().into_os_string())
}

/// Whether a program can be loaded.
pub(crate) fn check(program: &Path, args: &[OsString]) -> Result<(), Error> {
    let (program, _) = resolve(program, OsString::new(), args)?;
    let elf = Elf::read(&open(&program)?, &program)?;
    if elf.interpreter.is_none() {
        return Err(Error::Static { path: program });
    }
    Ok(())
}

/// The same under a name of its own.
pub(crate) fn load(start: &Start, name: OsString) -> Result<Loaded, Error> {
    let (program, args) = resolve(&start.program, name, &start.args)?;
    let file = open(&program)?;
    let elf = Elf::read(&file, &program)?;
    let Some(linker_path) = &elf.interpreter else { return Err(Error::Static { path: program }) };
    let linker_file = open(linker_path)?;
    let linker = Elf::read(&linker_file, linker_path)?;

    let (first, last) = elf.span();
    let at = if elf.movable { (PROGRAM + elf.align - 1) & !(elf.align - 1) } else { first };
    if !elf.movable {
        fence::include_low_code()?;
    }
    let bias = map(&elf, &file, "the program", at)?;
    let end = bias.wrapping_add(last);
    space::set_brk(if elf.movable { end } else { PROGRAM } + BREAK_GAP);
    // The stack is the highest mapping, as under the kernel.
    let area = stack::map(elf.executable_stack)?;
    let (linker_first, linker_last) = linker.span();
    let len = linker_last - linker_first;
    let place = space::find(len).ok_or(Error::NoRoom { bytes: len })?;
    let base = map(&linker, &linker_file, "the dynamic linker", place)?;
    let rooms = late_binding::find(&linker, &linker_file);
    let binds_late = !rooms.is_empty();
    late_binding::set(rooms.into_iter().map(|room| base.wrapping_add(room)).collect());
    let image = stack::Image {
        headers: bias.wrapping_add(elf.headers),
        header_count: elf.header_count,
        entry: bias.wrapping_add(elf.entry),
        linker: base,
    };
    let stack = stack::fill(area, args, environment(start, binds_late), program.clone().into_os_string(), &image)?;
    descriptors::set_program(&program.canonicalize().unwrap_or(program));
    Ok(Loaded { entry: base.wrapping_add(linker.entry), stack })
}

/// The program behind a script, and the whole argument vector.
fn resolve(program: &Path, name: OsString, args: &[OsString]) -> Result<(PathBuf, Vec<OsString>), Error> {
    let mut path = program.to_owned();
    let mut vector = vec![name];
    vector.extend_from_slice(args);
    for _ in 0..5 {
        let mut head = [0u8; 256];
        let mut file = open(&path)?;
        let len = file.read(&mut head).map_err(|cause| Error::Read { path: path.clone(), cause })?;
        let Some(line) = head[..len].strip_prefix(b"#!") else { return Ok((path, vector)) };
        let line = line.split(|b| *b == b'\n').next().unwrap_or(line).trim_ascii();
        let (interpreter, argument) = match line.iter().position(u8::is_ascii_whitespace) {
            Some(at) => (&line[..at], Some(line[at..].trim_ascii())),
            None => (line, None),
        };
        if interpreter.is_empty() {
            return Err(Error::NotAProgram { path, reason: "it names no interpreter after #!" });
        }
        vector[0] = path.into_os_string();
        if let Some(argument) = argument {
            vector.insert(0, OsString::from_vec(argument.to_vec()));
        }
        path = PathBuf::from(OsStr::from_bytes(interpreter));
        vector.insert(0, path.clone().into_os_string());
    }
    Err(Error::ScriptDepth { path: program.to_owned() })
}

fn open(path: &Path) -> Result<File, Error> {
    let wrap = |cause: io::Error| Error::Read { path: path.to_owned(), cause };
    let file = File::open(path).map_err(wrap)?;
    let data = file.metadata().map_err(wrap)?;
    if data.is_dir() || data.permissions().mode() & 0o111 == 0 {
        return Err(Error::NotExecutable { path: path.to_owned() });
    }
    Ok(file)
}

/// Maps the segments so that the first lies at `at`; returns what is added to the file's addresses.
fn map(elf: &Elf, file: &File, what: &'static str, at: usize) -> Result<usize, Error> {
    let (first, last) = elf.span();
    let bias = at.wrapping_sub(first);
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // Taken as a whole first: nothing that is mapped already may be replaced.
    space::map(what, Some(at), last - first, libc::PROT_NONE, private | libc::MAP_NORESERVE, -1, 0)?;
    let mut done = at;
    for segment in &elf.segments {
        let address = bias.wrapping_add(segment.address);
        let (start, end) = (address & !(PAGE - 1), (address + segment.len + PAGE - 1) & !(PAGE - 1));
        let file_end = address + segment.file_len;
        let file_pages = if segment.file_len == 0 { start } else { (file_end + PAGE - 1) & !(PAGE - 1) };
        if start > done {
            space::unmap(done, start - done);
        }
        if file_pages > start {
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
            let offset = segment.offset & !(PAGE - 1);
            let len = file_pages - start;
            space::map(what, Some(start), len, segment.protection, flags, file.as_raw_fd(), offset)?;
        }
        if segment.len > segment.file_len && file_pages > file_end && segment.protection & libc::PROT_WRITE != 0 {
            // SAFETY: the rest of the segment's last page with bytes of the file, mapped for writing.
            unsafe { std::ptr::write_bytes(file_end as *mut u8, 0, file_pages - file_end) };
        }
        if end > file_pages {
            space::map(what, Some(file_pages), end - file_pages, segment.protection, private | libc::MAP_FIXED, -1, 0)?;
        }
        done = end;
    }
    Ok(bias)
}

/// The upper half's environment: the facade first among what is preloaded, all symbols bound at the start unless they can be
/// [later](late_binding), no restartable sequences (the lower half's are registered), the baseline.
fn environment(start: &Start, binds_late: bool) -> Vec<OsString> {
    let mut env = start.env.clone();
    let mut set = |name: &str, value: &dyn Fn(Option<&OsStr>) -> OsString| {
        match env.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = value(Some(old)),
            None => env.push((name.into(), value(None))),
        };
    };
    if let Some(facade) = &start.facade {
        set("LD_PRELOAD", &|old| {
            let mut list = facade.clone().into_os_string();
            if let Some(old) = old.filter(|o| !o.is_empty()) {
                list.push(":");
                list.push(old);
            }
            list
        });
    }
    if !binds_late {
        set("LD_BIND_NOW", &|_| "1".into());
    }
    set("GLIBC_TUNABLES", &|old| {
        let mut list = old.map(OsStr::to_owned).unwrap_or_default();
        if !list.is_empty() {
            list.push(":");
        }
        list.push(format!("glibc.pthread.rseq=0{}", start.cpu.tunables()));
        list
    });
    for (name, value) in start.cpu.variables() {
        set(name, &|old| old.map_or_else(|| (*value).into(), OsStr::to_owned));
    }
    env.into_iter()
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            name
        })
        .collect()
}
