//! A program whose accesses are known, captured while it runs.

use std::ffi::OsString;
use std::time::Duration;

use super::{Captured, Limits, MOST, Sampled, capture};
use crate::steps;
use crate::{Attention, Order, Process};

fn captured(words: &[&str], budget: Duration) -> (Captured, Process) {
    captured_within(words, budget, Duration::from_secs(5))
}

fn captured_within(words: &[&str], budget: Duration, time: Duration) -> (Captured, Process) {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let mut process = Process::start(&Order::plain(&words), Attention::Free, false).expect("starts");
    let limits = Limits {
        budget,
        window: steps::Bound { steps: 4000, time },
    };
    let captured = capture(&mut process, limits, &|| false).expect("captured");
    (captured, process)
}

/// A loop of the shell takes thousands of instructions a round.
const LOOP: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done $i";

#[test]
fn a_program_is_stepped_in_windows_and_ends_as_it_would() {
    let (captured, process) = captured(&["sh", "-c", LOOP], Duration::from_secs(120));
    assert!(captured.refused.is_none(), "{:?}", captured.refused);
    assert!(captured.has_ended && !captured.has_threads);
    let own = vec![1_u8; 1 << 16];
    let own = host::processes::frames_of(std::process::id(), own.as_ptr() as u64, own.len() as u64);
    assert_eq!(
        captured.frames.is_some(),
        own.known().is_some(),
        "frame numbers are hidden from both or none"
    );
    assert!(
        (1..=MOST).contains(&captured.windows.len()),
        "{}",
        captured.windows.len()
    );
    for Sampled { window, .. } in &captured.windows {
        assert!((1000..=4000).contains(&window.instructions), "{}", window.instructions);
        assert!(
            window.touched.iter().any(|touch| touch.is_store) && window.touched.iter().any(|touch| !touch.is_store)
        );
        assert!(
            window
                .touched
                .iter()
                .all(|touch| touch.address > 4096 && touch.address >> 47 == 0)
        );
    }
    assert!(captured.windows.is_sorted_by_key(|taken| taken.at));
    let done = process.end().expect("its end");
    assert!(done.ended.status.success());
    assert_eq!(done.outputs.output(), "done 300000\n");
}

#[test]
fn what_runs_longer_than_the_budget_is_let_go_and_goes_on() {
    let (captured, process) = captured(&["sh", "-c", "while :; do :; done"], Duration::from_millis(500));
    assert!(!captured.has_ended && !captured.windows.is_empty());
    assert_eq!(
        process.status().expect_err("runs").kind(),
        std::io::ErrorKind::WouldBlock
    );
    drop(process);
}

#[test]
fn a_program_that_waits_has_no_windows() {
    let (captured, _process) = captured(&["sleep", "30"], Duration::from_millis(400));
    assert!(captured.windows.is_empty() && !captured.has_ended);
}

/// A program in C, stepped in windows of at most so long, which has to end with success; none without a compiler.
fn run_stepped(source: &str, window: Duration) -> Option<Captured> {
    let (captured, status) = ended_stepped(source, window)?;
    assert!(status.success(), "{status}");
    Some(captured)
}

fn ended_stepped(source: &str, window: Duration) -> Option<(Captured, std::process::ExitStatus)> {
    if std::process::Command::new("cc").arg("--version").output().is_err() {
        testing::missing("cc");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (code, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&code, source).expect("written");
    let built = std::process::Command::new("cc")
        .args(["-pthread", "-o"])
        .args([&program, &code])
        .status();
    assert!(built.expect("cc runs").success());
    let (captured, process) = captured_within(&[&program.to_string_lossy()], Duration::from_secs(60), window);
    assert!(captured.has_ended);
    let done = process.end().expect("its end");
    Some((captured, done.ended.status))
}

/// A loop that saves and restores the CPU's flags, as compiled Java code does. The stack pointer stays out of the red zone.
const FLAGS: &str = r#"
int main(void) {
    volatile long count = 0;
    for (long i = 0; i < 10000000; i++) {
        __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq $0xffffffffffffff2b, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
        count++;
    }
    return count != 10000000;
}
"#;

#[test]
fn a_program_that_pushes_its_flags_does_not_see_that_it_is_stepped() {
    run_stepped(FLAGS, Duration::from_secs(5));
}

/// As [`FLAGS`], while a timer's signal reaches it every other millisecond, often at the instruction that pushes. A handler begins with the address of
/// `restorer` on the stack, in which the bit of the trap flag is set.
const SIGNALS: &str = r#"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
__asm__(".text; .balign 512; .skip 256; restorer: mov $15, %eax; syscall");
extern void restorer(void);
static volatile long signals;
static void count_one(int signal) { signals += signal == SIGALRM; }
int main(void) {
    struct { void (*handler)(int); unsigned long flags; void (*restorer)(void); unsigned long mask; } action = { count_one, 0x04000000, restorer, 0 };
    struct itimerval every = { { 0, 2000 }, { 0, 2000 } };
    if (syscall(SYS_rt_sigaction, SIGALRM, &action, 0, 8) || setitimer(ITIMER_REAL, &every, 0))
        return 1;
    for (long i = 0; i < 10000000; i++)
        __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; popfq; pushfq; popfq; pushfq; popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
    return !signals;
}
"#;

#[test]
fn a_program_that_pushes_its_flags_while_signals_reach_it_ends_as_it_would() {
    run_stepped(SIGNALS, Duration::from_secs(5));
}

/// It works a little, then sleeps in the kernel for longer than a window may take.
const SLEEPS: &str = r#"
#include <unistd.h>
int main(void) {
    for (int turn = 0; turn < 8; turn++) {
        for (volatile long i = 0; i < 10000000; i++);
        usleep(250000);
    }
    return 0;
}
"#;

#[test]
fn a_program_that_waits_in_the_kernel_at_the_end_of_a_window_is_not_ended_by_that() {
    run_stepped(SLEEPS, Duration::from_millis(60));
}

/// Part of programs that ask whether they are stepped.
const IS_TRACED: &str = r#"static int is_traced(void) {
    char text[512] = { 0 };
    int status = open("/proc/thread-self/status", O_RDONLY);
    int is = read(status, text, sizeof text - 1) > 0 && !strstr(text, "TracerPid:\t0\n");
    close(status);
    return is;
}"#;

/// Its first thread works until it is stepped. Then it waits for another one, which works for a second.
const HANDS_OVER: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static int ends[2];
static void *work(void *unused) {
    char byte;
    struct timespec used = { 0 };
    if (read(ends[0], &byte, 1) != 1)
        return unused;
    while (used.tv_sec < 1) {
        for (volatile long i = 0; i < 100000; i++);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    }
    return NULL;
}
IS_TRACED
int main(void) {
    pthread_t worker;
    void *failed;
    if (pipe(ends) || pthread_create(&worker, NULL, work, ends))
        return 1;
    while (!is_traced());
    if (write(ends[1], "", 1) != 1 || pthread_join(worker, &failed))
        return 1;
    return failed != NULL;
}
"#;

#[test]
fn a_thread_that_waits_for_another_one_while_it_is_stepped_does_not_hide_what_that_one_does() {
    let Some(captured) = run_stepped(&HANDS_OVER.replace("IS_TRACED", IS_TRACED), Duration::from_secs(20)) else {
        return;
    };
    let seen: Vec<_> = captured
        .windows
        .iter()
        .map(|one| (one.at, one.window.instructions))
        .collect();
    assert!(seen.len() > 2 && captured.has_threads, "{seen:?}");
}

/// One thread works until it is stepped, while two others sleep and work. Then it does what `END` says: `WORKS` 0 is the first thread, 1 another one.
const ENDS: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
IS_TRACED
static volatile int other;
static char state_of_other(void) {
    char path[64], text[512] = { 0 };
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", other);
    int stat = open(path, O_RDONLY);
    if (read(stat, text, sizeof text - 1) <= 0)
        return '?';
    close(stat);
    return strrchr(text, ')')[2];
}
static void *sleeps(void *unused) {
    for (;;) {
        for (volatile long i = 0; i < 100000; i++);
        usleep(2000);
    }
    return unused;
}
static void *pauses(void *unused) {
    other = syscall(SYS_gettid);
    for (;;)
        pause();
    return unused;
}
static void *works(void *unused) {
    /* It looks often enough to do so in each window, however few they are. */
    while (!is_traced())
        for (volatile long i = 0; i < 1000; i++);
    END;
    return unused;
}
int main(void) {
    pthread_t threads[3];
    if (pthread_create(&threads[0], NULL, sleeps, NULL) || pthread_create(&threads[1], NULL, pauses, NULL))
        return 1;
    while (!other);
    if (!WORKS)
        works(NULL);
    if (pthread_create(&threads[2], NULL, works, NULL))
        return 1;
    pthread_join(threads[2], NULL);
    return 0;
}
"#;

/// How [`ENDS`] ends, of both threads.
fn ends(end: &str) -> Vec<std::process::ExitStatus> {
    let ends = ENDS.replace("IS_TRACED", IS_TRACED).replace("END", end);
    let program = |works: &str| ends.replace("WORKS", works);
    let ended = ["0", "1"]
        .iter()
        .filter_map(|works| ended_stepped(&program(works), Duration::from_secs(5)));
    ended.map(|(_, status)| status).collect()
}

#[test]
fn the_other_threads_stand_still_while_one_is_stepped_and_go_on_behind_it() {
    for status in ends("while (state_of_other() != 't'); while (state_of_other() != 'S'); exit(0)") {
        assert!(status.success(), "{status}");
    }
}

#[test]
fn a_process_that_ends_while_one_of_its_threads_is_stepped_ends_as_it_would() {
    use std::os::unix::process::ExitStatusExt;
    for status in ends("_exit(7)") {
        assert_eq!(status.code(), Some(7), "{status}");
    }
    for status in ends("kill(getpid(), SIGKILL)") {
        assert_eq!(status.signal(), Some(9), "{status}");
    }
    for status in ends(r#"execl("/bin/sh", "sh", "-c", "exit 5", NULL)"#) {
        assert_eq!(status.code(), Some(5), "{status}");
    }
    // The thread alone, and then its process.
    for status in ends(r#"signal(SIGALRM, _exit); alarm(2); pthread_exit(NULL)"#) {
        assert!(status.success() || status.code() == Some(14), "{status}");
    }
}

/// Its first thread works, then waits without end for what another one does all the time, which stands still in a window.
const WAITS: &str = r#"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
static sem_t asked, done;
static void *serves(void *unused) {
    for (;;) {
        sem_wait(&asked);
        for (volatile long i = 0; i < 300000; i++);
        sem_post(&done);
    }
    return unused;
}
int main(void) {
    pthread_t server;
    if (sem_init(&asked, 0, 0) || sem_init(&done, 0, 0) || pthread_create(&server, 0, serves, 0))
        return 1;
    for (int turn = 0; turn < 3000; turn++) {
        for (volatile long i = 0; i < 330000; i++);
        sem_post(&asked);
        sem_wait(&done);
    }
    return 0;
}
"#;

#[test]
fn a_thread_that_is_stopped_while_it_waits_for_another_one_does_not_wait_for_ever() {
    run_stepped(WAITS, Duration::from_secs(5));
}
