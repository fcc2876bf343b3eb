//! The kernel's command line: alone, as /proc/cmdline shows it, or in the defaults of GRUB.

use model::Unread;

use super::garbled::empty;
use crate::config::files::{Line, said};
use crate::config::grub::in_grub;
use crate::config::{Boot, BootLine};

pub(super) fn boot_line(path: &str, text: &str) -> Result<BootLine, Unread> {
    let lines: Vec<Line<'_>> = said(path, text, &['#']).collect();
    let Some(first) = lines.first() else {
        return Err(empty(path, "it holds no kernel command line"));
    };
    let (place, words) = match in_grub(&lines) {
        Some(found) => found,
        None => {
            let words: Vec<&str> = lines.iter().map(|line| line.text).collect();
            (*first, words.join(" "))
        }
    };
    let boot = Boot::parse(&words, Some(&Boot::SIZES)).with_sysctl(true, None);
    Ok(BootLine {
        place: place.place(),
        boot,
        words,
    })
}
