//! Programs that a script starts: which of them are known, behind which launchers, and what of their options only a run shows.

use super::words::Word;
use crate::config::given::compose::{is_runtime, started};
use crate::config::given::guest::is_hypervisor;
use crate::config::given::kind::is_java;
use crate::config::given::shell::file_name;
use crate::{Kind, dpdk, page_options};

/// Programs that start another one.
const LAUNCHERS: [&str; 24] = [
    "busybox",
    "cgexec",
    "chroot",
    "chrt",
    "command",
    "doas",
    "env",
    "exec",
    "flock",
    "hugectl",
    "ionice",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "runcon",
    "setsid",
    "stdbuf",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "unshare",
];

/// Those of them that take a path before the program.
const WITH_PATH: [&str; 2] = ["chroot", "flock"];

/// Where the program of a command is, behind launchers with their options.
pub(super) fn launched(words: &[Word]) -> usize {
    let (mut is_value, mut is_path) = (false, false);
    let passes = |(at, word): &(usize, &Word)| {
        let text = word.text.as_str();
        let name = file_name(text);
        // `$QEMU_DIR/qemu-system-x86_64` is a program, wherever it is.
        let is_program = text.contains('/') && !name.contains('$');
        let is_open = word.is_open() && !is_program;
        let is_option = text.starts_with('-') || text.contains('=') || text == "all" || is_open;
        // `USER:ROLE:TYPE` of runcon.
        let is_argument = is_option || text.starts_with(|c: char| c.is_ascii_digit()) || text.matches(':').count() > 1;
        let is_launcher = LAUNCHERS.contains(&name);
        let is_own = is_path && text.starts_with('/');
        let passes = is_value || is_own || is_launcher || (*at > 0 && is_argument);
        is_path = (is_path || (is_launcher && WITH_PATH.contains(&name))) && !is_own;
        is_value = matches!(text, "-u" | "-g") && !is_value;
        passes
    };
    let at = words.iter().enumerate().take_while(passes).count();
    if at < words.len() { at } else { 0 }
}

/// Is it a program whose pages are judged?
pub(super) fn is_known(program: &str, words: &[String]) -> bool {
    let is_server = matches!(Kind::of(program, &[]), Some(Kind::Postgres | Kind::Mysql));
    let runs = is_runtime(program) && started(words).is_some();
    let has_options = page_options::is_known(program) || dpdk::asked(words).is_some();
    is_hypervisor(program) || is_java(program) || is_server || runs || has_options
}

/// Options of memory that only a run shows.
pub(super) fn lost(program: &str, words: &[Word]) -> Option<String> {
    const OF_GUESTS: [&str; 6] = ["m", "mem-path", "memory", "memory-zone", "numa", "object"];
    let is_option = |word: &Word| {
        let name = word.text.trim_start_matches('-');
        name.len() < word.text.len() && OF_GUESTS.contains(&name)
    };
    if is_runtime(program) {
        return None;
    }
    if is_hypervisor(program) {
        let is_lost = |pair: &&[Word]| {
            let is_memory =
                !pair[0].text.ends_with("object") || pair[1].text.contains("memory") || pair[1].text.starts_with('$');
            is_option(&pair[0]) && pair[1].is_open() && is_memory
        };
        let first = words.windows(2).find(is_lost);
        let first = first.map(|pair| format!("{} {}", pair[0].text, pair[1].text));
        let bare = || {
            words
                .iter()
                .find(|word| word.is_open())
                .filter(|_| !words.iter().any(is_option))
        };
        return first.or_else(|| bare().map(|word| word.text.clone()));
    }
    let is_ours = |word: &&Word| {
        let own = ["-X", "huge", "large", "buffer", "socket-mem", "numa-mem", "$"];
        word.is_open()
            && own
                .iter()
                .any(|part| word.text.starts_with(part) || (part.len() > 1 && word.text.contains(part)))
    };
    words.iter().find(is_ours).map(|word| word.text.clone())
}
