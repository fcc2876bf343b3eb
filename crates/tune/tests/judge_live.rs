//! Faults planted on the running machine, each by a program of its own that is ended again; no setting is changed.

use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use host::{Evidence, Source};
use model::findings::{Diagnosis, Finding};
use tune::judge::judge;

/// A program that is killed and waited for when the test ends, however it ends. Its output stays open, so that writing
/// the rest of its line does not end it.
struct Planted(Child, ChildStdout);

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Planted {
    /// Starts it, and waits until it has printed a line: then its memory is there.
    fn start(command: &mut Command) -> Option<Self> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .stdin(Stdio::piped())
            .spawn()
            .ok()?;
        let output = child.stdout.take()?;
        let mut planted = Self(child, output);
        planted.1.read_exact(&mut [0]).ok()?;
        Some(planted)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

#[allow(clippy::print_stderr)]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

fn look() -> Diagnosis {
    judge(&Evidence::gather(&Source::live()))
}

/// A finding of that rule about that process.
fn about(diagnosis: &Diagnosis, id: &str, pid: u32) -> Option<Finding> {
    let name = format!("({pid})");
    diagnosis
        .of(id)
        .find(|finding| finding.consequence.contains(&name))
        .cloned()
}

/// A Python program that prints a line and then sleeps.
fn python(script: &str) -> Command {
    let mut command = Command::new("python3");
    let whole = format!("{script}\nprint('ready', flush=True)\nimport time\ntime.sleep(120)\n");
    command.args(["-c", &whole]);
    command
}

#[test]
fn a_jvm_whose_large_pages_are_not_there() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("Sleeper.java");
    let program = "class Sleeper { public static void main(String[] a) throws Exception { \
                   byte[][] keep = new byte[256][]; for (int i = 0; i < 256; i++) keep[i] = new byte[1 << 20]; \
                   System.out.println(keep.length); Thread.sleep(120000); } }";
    std::fs::write(&source, program).expect("a source file");
    let mut command = Command::new("java");
    // More than the machine has, so that no pool that somebody fills meanwhile can hold it.
    command
        .args(["-XX:+UseLargePages", "-Xmx16g", "-Xms512m", "-XX:+UseSerialGC"])
        .arg(&source);
    let Some(java) = Planted::start(&mut command) else {
        return skip("there is no java here that starts so");
    };
    let finding = about(&look(), "E01", java.pid()).expect("the JVM's fallback is found");
    assert!(finding.consequence.contains("on base pages"), "{finding:?}");
}

#[test]
fn a_switch_that_a_tree_inherited() {
    let script = "import ctypes, subprocess, sys\n\
                  if ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) != 0: sys.exit(1)\n\
                  child = subprocess.Popen([sys.executable, '-c', 'import ctypes, time\\nctypes.CDLL(None).prctl(1, 9)\\nx = bytes([1]) * (40 << 20)\\nprint(1, flush=True)\\ntime.sleep(20)'], stdout=subprocess.PIPE)\n\
                  child.stdout.readline()";
    let Some(launcher) = Planted::start(&mut python(script)) else {
        return skip("there is no python3, or no prctl");
    };
    let finding = about(&look(), "D11", launcher.pid()).expect("the inherited switch is found");
    assert!(finding.consequence.contains("inherited"), "{finding:?}");
}

#[test]
fn malloc_that_was_told_in_a_way_that_is_dead() {
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo ready; read nothing"])
        .env("HUGETLB_MORECORE", "yes");
    let Some(program) = Planted::start(&mut command) else {
        return skip("there is no sh");
    };
    let diagnosis = look();
    match about(&diagnosis, "D18", program.pid()) {
        Some(finding) => assert!(finding.consequence.contains("HUGETLB_MORECORE"), "{finding:?}"),
        None => skip(&format!(
            "the shell's C library is not glibc 2.34 or later, or cannot be read: {:?}",
            diagnosis.not_judged
        )),
    }
}
