//! The kernel's command line: alone, as /proc/cmdline shows it, or in the defaults of GRUB.

use model::Unread;

use super::garbled::empty;
use crate::config::Boot;
use crate::config::files::{Line, said};

/// In /etc/default/grub; what both say is joined.
const GRUB: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];

/// A boot command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootLine {
    /// `FILE:LINE`.
    pub place: String,
    /// As written.
    pub words: String,
    /// Its hugetlb part.
    pub boot: Boot,
}

pub(super) fn boot_line(path: &str, text: &str) -> Result<BootLine, Unread> {
    let mut lines: Vec<(Line<'_>, &str)> = said(path, text, &['#']).map(|line| (line, line.text)).collect();
    let in_grub: Vec<_> = lines
        .iter()
        .filter_map(|(line, _)| Some((*line, grub(line)?)))
        .collect();
    if !in_grub.is_empty() {
        lines = in_grub;
    }
    let Some((first, _)) = lines.first() else {
        return Err(empty(path, "it holds no kernel command line"));
    };
    let words: Vec<&str> = lines.iter().map(|(_, words)| *words).collect();
    let words = words.join(" ");
    Ok(BootLine {
        place: first.place(),
        boot: Boot::parse(&words, Some(&Boot::SIZES)),
        words,
    })
}

/// `GRUB_CMDLINE_LINUX="quiet hugepages=4"`.
fn grub<'a>(line: &Line<'a>) -> Option<&'a str> {
    let (name, value) = line.pair()?;
    GRUB.contains(&name).then(|| value.trim_matches(['"', '\'']))
}
