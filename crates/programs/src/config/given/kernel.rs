//! The kernel's command line: alone, as /proc/cmdline shows it, or in the defaults of GRUB.

use model::{Cause, Unread};

use super::garbled::empty;
use crate::config::Boot;
use crate::config::files::{Line, said};

/// In /etc/default/grub, in the order in which they come to the kernel.
const GRUB: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootLine {
    /// `FILE:LINE`.
    pub place: String,
    pub words: String,
    /// Its hugetlb part.
    pub boot: Boot,
}

pub(super) fn boot_line(path: &str, text: &str, bad: &mut Vec<Unread>) -> Result<BootLine, Unread> {
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
    let boot = Boot::parse(&words, Some(&Boot::SIZES));
    bad.extend(boot.digits.iter().map(|taken| {
        let why = format!(
            "`{}` is a count of pages, and the kernel takes its digits alone: {}",
            taken.parameter, taken.pages
        );
        Unread::new(Cause::Garbled, place.place(), why)
    }));
    Ok(BootLine {
        place: place.place(),
        boot,
        words,
    })
}

/// What GRUB's scripts hand to the kernel: both variables, each as the shell that reads the file leaves it.
fn in_grub<'a>(lines: &[Line<'a>]) -> Option<(Line<'a>, String)> {
    let mut values = GRUB.map(|_| String::new());
    let mut first = None;
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
        first.get_or_insert(*line);
    }
    first.map(|line| (line, values.join(" ")))
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
