//! Lines and words that only one kind of file has.

use crate::config::vmware;

/// `vm.swappiness = 10`, `kernel/shmmax=1`.
pub(super) fn sysctl_name(line: &str) -> Option<()> {
    const FIRST: [&str; 7] = ["vm", "kernel", "net", "fs", "dev", "user", "abi"];
    let (name, _) = line.split_once('=')?;
    let (first, _) = name.trim().trim_start_matches('-').split_once(['.', '/'])?;
    FIRST.contains(&first).then_some(())
}

pub(super) fn boot_parameter(word: &str) -> bool {
    const NAMES: [&str; 9] = [
        // Near misses of the parameters below show the kind of file as well.
        "transparent_hugepages=",
        "hugepagesize=",
        "default_hugepages=",
        "BOOT_IMAGE=",
        "root=",
        "hugepages=",
        "hugepagesz=",
        "default_hugepagesz=",
        "transparent_hugepage=",
    ];
    NAMES
        .iter()
        .any(|name| word.trim_matches(['"', '\'']).starts_with(name))
}

/// A word that only the kernel's command line has.
pub(super) fn is_parameter(word: &str) -> bool {
    const WORDS: [&str; 5] = ["quiet", "ro", "rw", "splash", "nosmt"];
    const NAMES: [&str; 7] = [
        "console",
        "init",
        "mem",
        "mitigations",
        "isolcpus",
        "iommu",
        "transparent_hugepages",
    ];
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    boot_parameter(word) || WORDS.contains(&word) || (NAMES.contains(&name) && !value.is_empty())
}

pub(super) fn limit_line(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(
        words[..],
        [
            _,
            "soft" | "hard" | "-",
            "memlock" | "nofile" | "nproc" | "stack",
            _,
            ..
        ]
    )
}

pub(super) fn named(line: &str, name: &str) -> bool {
    line.trim_start_matches('#')
        .trim_start()
        .strip_prefix(name)
        .is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// Names that only VMware's files have.
pub(super) fn vmware_name(line: &str) -> Option<()> {
    const NAMES: [&str; 5] = [
        "memsize",
        "virtualhw.version",
        "mem.allocguestlargepage",
        "lpage.lpagealwaystryfornpt",
        "monitor_control.disable_mmu_largepages",
    ];
    if line.starts_with("Path: /Mem/") || line.starts_with("Path: /LPage/") {
        return Some(());
    }
    let (name, _) = line.split_once('=')?;
    let name = vmware::plain(name);
    let known = NAMES.contains(&name.as_str()) || name.starts_with("sched.mem.") || name.starts_with("sched.cpu.");
    known.then_some(())
}

/// How their names end.
const CODE: &str = "c cc cpp go h java js md nix pl pp py rb rs tf yaml yml";

/// Is a file a log by its name? It may still be of any form.
pub fn is_log_name(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    name.ends_with(".log") || name.contains(".log.") || matches!(name, "syslog" | "messages" | "dmesg")
}

/// Programs and texts about others quote messages.
pub(super) fn is_code(path: &str, text: &str) -> bool {
    let (_, extension) = path.rsplit_once('.').unwrap_or_default();
    text.starts_with("#!") || CODE.split(' ').any(|name| name == extension)
}

/// Is at least half of a text so, but for comments? A log can quote a line of a file.
pub(super) fn is_mostly(text: &str, is_so: fn(&str) -> bool) -> bool {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let so = lines.iter().filter(|line| is_so(line)).count();
    so > 0 && so * 2 >= lines.len()
}
