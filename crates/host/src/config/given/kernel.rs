//! The kernel's command line: alone, as /proc/cmdline shows it, or in the defaults of GRUB.

use model::Unread;

use super::{BootLine, empty};
use crate::config::{Boot, said};

/// In /etc/default/grub; what both say is joined.
const GRUB: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];

pub(super) fn boot_line(path: &str, text: &str) -> Result<BootLine, Unread> {
    let mut lines: Vec<(usize, &str)> = said(text, &['#']).collect();
    let in_grub: Vec<(usize, &str)> = lines.iter().filter_map(|&(number, line)| grub(number, line)).collect();
    if !in_grub.is_empty() {
        lines = in_grub;
    }
    let Some(&(first, _)) = lines.first() else {
        return Err(empty(path, "it holds no kernel command line"));
    };
    let words: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
    let words = words.join(" ");
    Ok(BootLine {
        place: format!("{path}:{first}"),
        boot: Boot::parse(&words, Some(&Boot::SIZES)),
        words,
    })
}

/// `GRUB_CMDLINE_LINUX="quiet hugepages=4"`.
fn grub(number: usize, line: &str) -> Option<(usize, &str)> {
    let (name, value) = line.split_once('=')?;
    GRUB.contains(&name.trim())
        .then(|| (number, value.trim().trim_matches(['"', '\''])))
}
