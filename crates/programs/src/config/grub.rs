//! The kernel's command line in the defaults of GRUB: /etc/default/grub, and the files of grub.d that are read after it.

use host::Source;
use model::Unread;

use super::files::{Line, content, listed, said};
use super::{Boot, BootLine};

/// In the order in which they come to the kernel.
const GRUB: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];
/// Where these are, the kernel's command line is theirs, and the defaults are for kernels that are installed later.
const ENTRIES: &str = "/boot/loader/entries";

/// The command line that GRUB's scripts write for the next boot; `None` where they do not, or say nothing of it.
pub(super) fn next_boot(source: &Source) -> Result<Option<BootLine>, Unread> {
    if !listed(source, ENTRIES)?.is_empty() {
        return Ok(None);
    }
    let mut names = listed(source, "/etc/default/grub.d")?;
    names.retain(|name| name.ends_with(".cfg"));
    names.sort();
    let more = names.into_iter().map(|name| format!("/etc/default/grub.d/{name}"));
    let mut files = Vec::new();
    for path in ["/etc/default/grub".to_owned()].into_iter().chain(more) {
        files.extend(content(source, &path)?.map(|text| (path, text)));
    }
    let lines: Vec<Line<'_>> = files.iter().flat_map(|(path, text)| said(path, text, &['#'])).collect();
    Ok(in_grub(&lines).map(|(line, words)| BootLine {
        place: line.place(),
        boot: Boot::parse(&words, Some(&Boot::SIZES)),
        words,
    }))
}

/// What GRUB's scripts hand to the kernel: both variables, each as the shell that reads the file leaves it.
pub(super) fn in_grub<'a>(lines: &[Line<'a>]) -> Option<(Line<'a>, String)> {
    let mut values = GRUB.map(|_| String::new());
    let mut place = None;
    for line in lines {
        let Some((at, adds, value)) = assignment(line.text) else {
            continue;
        };
        let value = GRUB.iter().zip(&values).rev().fold(value, |value, (name, known)| {
            value
                .replace(&format!("${{{name}}}"), known)
                .replace(&format!("${name}"), known)
        });
        values[at] = if adds { format!("{}{value}", values[at]) } else { value };
        // The first one that is about pages, or else the first one.
        let says = |line: &Line<'_>| line.text.contains("huge");
        if place.is_none_or(|first| !says(&first) && says(line)) {
            place = Some(*line);
        }
    }
    place.map(|line| (line, values.join(" ")))
}

/// `export GRUB_CMDLINE_LINUX="quiet hugepages=4" # why`, or `+=`: the variable, whether it is added to, and the value without quotes.
fn assignment(text: &str) -> Option<(usize, bool, String)> {
    let text = text.strip_prefix("export ").unwrap_or(text).trim_start();
    let (name, value) = text.split_once('=')?;
    let (name, adds) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let at = GRUB.iter().position(|known| *known == name)?;
    let unclosed = || vec![value.trim_matches(['"', '\'']).to_owned()];
    let words = if value.starts_with([' ', '\t']) {
        Vec::new()
    } else {
        shlex::split(value).unwrap_or_else(unclosed)
    };
    Some((at, adds, words.into_iter().next().unwrap_or_default()))
}
