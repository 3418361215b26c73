//! Programs that run in the upper half as they run alone.
mod common;
use common::{compile, output, run};
use tempfile::TempDir;

fn passes(source: &str, compiler: &str, options: &[&str]) {
    let folder = TempDir::new().unwrap();
    let program = compile(&folder, compiler, &[source], options);
    assert_eq!(output("run", &[program.to_str().unwrap()]), "passed\n");
}

#[test]
fn memory_of_a_movable_program() {
    passes("memory.c", "cc", &["-pie", "-fPIE"]);
}

#[test]
fn memory_of_a_program_at_fixed_addresses() {
    let folder = TempDir::new().unwrap();
    let program = compile(&folder, "cc", &["memory.c"], &["-no-pie"]);
    assert!(output("run", &[program.to_str().unwrap()]).ends_with("passed\n"));
}

#[test]
fn signals() {
    passes("signals.c", "cc", &["-pie", "-fPIE"]);
    passes("signals.c", "cc", &["-no-pie"]);
}

#[test]
fn children() {
    passes("children.c", "cc", &["-pie", "-fPIE"]);
    passes("children.c", "cc", &["-no-pie"]);
}

#[test]
fn threads_that_call_the_host() {
    passes("callers.c", "cc", &[]);
}

#[test]
fn exceptions() {
    passes("exceptions.cc", "c++", &[]);
}

#[test]
fn a_shell_with_pipes() {
    let script = "echo a b c | tr a-z A-Z; X=$(echo in; echo out); echo $X; (exit 3) || echo $?; cat < /dev/null";
    assert_eq!(output("run", &["/bin/sh", "-c", script]), "A B C\nin out\n3\n");
    assert_eq!(run("run", &["/bin/sh", "-c", "exit 3"], &[]).status.code(), Some(3));
    assert_eq!(output("run", &["/bin/echo", "-n", "one", ""]), "one ");
}

#[test]
fn a_script_and_its_interpreter() {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh -e\necho $1 $0\nfalse\necho never\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = run("run", &[script.to_str().unwrap(), "arg"], &[]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("arg {}\n", script.display()));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn python_with_threads_and_children() {
    let program = "
import os, subprocess, sys, threading, time
done = []
threads = [threading.Thread(target=lambda i: (time.sleep(0.01), done.append(sum(range(i * 1000)))), args=(i,)) for i in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert len(done) == 8 and subprocess.check_output(['echo', 'hi']) == b'hi\\n' and os.popen('echo x').read() == 'x\\n'
big = bytearray(200 << 20)
big[100 << 20] = 1
print(os.readlink('/proc/self/exe') == os.path.realpath(sys.executable), os.path.exists(sys.prefix))
";
    assert_eq!(output("run", &["/usr/bin/python3", "-c", program]), "True True\n");
}

#[test]
fn perl_with_signals() {
    let program = "my $x = `echo foo`; print $x; $SIG{ALRM} = sub { print \"alarm\\n\"; exit 4 }; alarm 1; sleep 5;";
    let output = run("run", &["/usr/bin/perl", "-e", program], &[]);
    assert_eq!((output.stdout.as_slice(), output.status.code()), (b"foo\nalarm\n".as_slice(), Some(4)));
}

#[test]
fn what_cannot_be_loaded_is_refused_with_the_reason() {
    let folder = TempDir::new().unwrap();
    let program = compile(&folder, "cc", &["memory.c"], &["-static"]);
    let object = folder.path().join("object");
    std::fs::write(&object, "neither").unwrap();
    std::fs::set_permissions(&object, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = [
        (program.to_str().unwrap(), "statically linked"),
        (object.to_str().unwrap(), "neither an ELF program nor a script"),
        ("/nonexistent", "No such file"),
        ("/etc/passwd", "execute permission"),
        ("/usr", "execute permission"),
    ];
    for (path, reason) in refused {
        let output = run("run", &[path], &[]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(127) && errors.contains(reason), "{path}: {errors}");
    }
}

#[test]
fn a_baseline_keeps_wide_vectors_out_of_the_c_library() {
    let folder = TempDir::new().unwrap();
    let program = compile(&folder, "cc", &["baseline.c"], &[]);
    let args = [program.to_str().unwrap()];
    let used = |cpu: &str| {
        let output = run("run", &args, &[("PHASECAST_CPU", cpu)]);
        String::from_utf8(output.stdout).unwrap()
    };
    let v2 = used("x86-64-v2");
    assert!(v2.lines().count() >= 8 && v2.lines().all(|l| l.ends_with(" sse")), "{v2}");
    let v3 = used("x86-64-v3");
    assert!(v3.lines().count() >= 8 && v3.lines().all(|l| !l.ends_with(" avx512")), "{v3}");
    assert_eq!(run("run", &args, &[("PHASECAST_CPU", "x86-64-v9")]).status.code(), Some(127));
}

#[test]
fn code_on_the_stack() {
    let folder = TempDir::new().unwrap();
    let library = compile(&folder, "cc", &["gate.c"], &["-shared", "-fPIC", "-z", "execstack"]);
    let library = library.to_str().unwrap();
    let program = compile(&folder, "cc", &["trampoline.c"], &["-O0", "-z", "execstack"]);
    assert_eq!(output("run", &[program.to_str().unwrap()]), "passed\n");
    let program = compile(&folder, "cc", &["trampoline.c"], &["-O0", "-z", "noexecstack"]);
    assert_eq!(output("run", &[program.to_str().unwrap(), library]), "passed\n");
}

#[test]
fn a_program_that_replaces_itself_stays_in_the_upper_half() {
    let folder = TempDir::new().unwrap();
    let program = compile(&folder, "cc", &["memory.c"], &[]);
    let program = program.to_str().unwrap();
    let wrapper = format!("trap '' HUP; trap 'echo never' USR1; exec 9</dev/null; exec {program}");
    assert_eq!(output("run", &["/bin/sh", "-c", &wrapper]), "passed\n");
    let chain =
        format!("exec /bin/sh -c 'X=1 exec /usr/bin/env Y=2 /bin/sh -c \"echo \\$0 \\$X\\$Y; exec {program}\" name'");
    assert_eq!(output("run", &["/bin/sh", "-c", &chain]), "name 12\npassed\n");
    let fixed = compile(&folder, "cc", &["signals.c"], &["-no-pie"]);
    let wrapper = format!("exec {}", fixed.to_str().unwrap());
    assert_eq!(output("run", &["/bin/sh", "-c", &wrapper]), "passed\n");
    let python = format!(
        "import os, threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\nos.execv('{program}', ['x'])"
    );
    assert_eq!(output("run", &["/usr/bin/python3", "-c", &python]), "passed\n");
    // What cannot be loaded is the kernel's.
    let alone = compile(&folder, "cc", &["trampoline.c"], &["-O0", "-static"]);
    assert_eq!(output("run", &["/bin/sh", "-c", &format!("exec {}", alone.to_str().unwrap())]), "passed\n");
    assert_eq!(run("run", &["/bin/sh", "-c", "exec /nonexistent"], &[]).status.code(), Some(127));
}

#[test]
fn the_end_of_a_program_is_told_to_the_host() {
    let told = |program: &str, args: &[&str]| {
        let args: Vec<&str> = [program].iter().chain(args).copied().collect();
        let output = run("run", &args, &[("PHASECAST_EXIT", "1")]);
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    };
    assert_eq!(told("/bin/sh", &["-c", "(exit 2); exit 3"]), ("exit 3 after 0 calls\n".into(), Some(3)));
    let thread = "import os, threading\nt = threading.Thread(target=os._exit, args=(5,))\nt.start()\nt.join()";
    assert_eq!(told("/usr/bin/python3", &["-c", thread]), ("exit 5 after 0 calls\n".into(), Some(5)));
}
