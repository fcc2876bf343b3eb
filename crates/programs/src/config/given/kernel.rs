//! The kernel's command line: alone, as /proc/cmdline shows it, in the defaults of GRUB, or in WSL's own configuration.

use model::{Bytes, Unread};

use super::garbled::{Refusal, empty};
use super::node;
use crate::config::files::{Line, said};
use crate::config::grub::{cut_off, in_grub, is_of_pages, stray};
use crate::config::{BootLine, Unheard};

pub(super) fn boot_line(path: &str, text: &str, refused: &mut Vec<Refusal>) -> Result<BootLine, Unread> {
    let lines: Vec<Line<'_>> = said(path, text, &['#']).collect();
    let Some(first) = lines.first() else {
        return Err(empty(path, "it holds no kernel command line"));
    };
    let is_grub = path.ends_with("grub") || lines.iter().any(|line| line.text.contains("GRUB_"));
    if is_grub {
        refused.extend(
            stray(&lines)
                .into_iter()
                .map(|(line, words)| on_no_line(&line.place(), &words)),
        );
        refused.extend(cut_off(&lines).map(|(line, words)| at_semicolon(&line.place(), &words)));
    }
    let (place, words) = match in_grub(&lines) {
        Some(found) => found,
        None if is_grub => (*first, String::new()),
        None if path.ends_with("cmdline.txt") => {
            refused.extend(
                lines[1..]
                    .iter()
                    .filter(|line| line.text.contains("huge"))
                    .map(behind_first),
            );
            (*first, first.text.to_owned())
        }
        None => {
            let words: Vec<&str> = lines.iter().map(|line| line.text).collect();
            (*first, words.join(" "))
        }
    };
    Ok(node::boot_line(place.place(), &words))
}

/// The boot line of lines that a script adds to the defaults of GRUB, with its place, and what of it comes to no kernel.
pub(super) fn of_script(path: &str, added: &[(String, String)]) -> (Option<(String, String)>, Option<Refusal>) {
    let texts: Vec<&str> = added.iter().map(|(_, text)| text.as_str()).collect();
    let text = texts.join("\n");
    let lines: Vec<Line<'_>> = said(path, &text, &['#']).collect();
    let place = |line: Line<'_>| added.get(line.number() - 1).map(|(place, _)| place.clone());
    let boot = in_grub(&lines).filter(|(_, words)| is_of_pages(words));
    let cut = cut_off(&lines).and_then(|(line, words)| Some(at_semicolon(&place(line)?, &words)));
    (boot.and_then(|(line, words)| Some((place(line)?, words))), cut)
}

/// Words that GRUB takes for another command.
fn at_semicolon(place: &str, words: &str) -> Refusal {
    let why = format!("`{words}` is not on the boot line: {}", Unheard::AT_SEMICOLON);
    Refusal::new(place, why, Unheard::ESCAPED, OF_BOOT)
}

/// A line among the defaults of GRUB that comes to no kernel.
pub(super) fn on_no_line(place: &str, words: &str) -> Refusal {
    let why = format!(
        "`{words}` is a shell variable of its own and not on the boot line: GRUB's scripts take GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT alone"
    );
    let fix = format!(
        "write these words in the quotes of GRUB_CMDLINE_LINUX_DEFAULT, delete them at {place}, then: update-grub (Debian, Ubuntu) or grub2-mkconfig -o /boot/grub2/grub.cfg (others), and reboot"
    );
    Refusal::new(place, why, fix, OF_BOOT)
}

/// Firmware of the Raspberry Pi hands the first line over.
fn behind_first(line: &Line<'_>) -> Refusal {
    let why = format!(
        "`{}` is not on the boot line: the firmware takes the first line of cmdline.txt alone",
        line.text
    );
    let fix = format!(
        "write it at the end of line 1, delete line {}, and reboot",
        line.number()
    );
    Refusal::new(&line.place(), why, fix, OF_PI)
}

const OF_BOOT: &str = "https://docs.kernel.org/admin-guide/kernel-parameters.html";
const OF_PI: &str = "https://www.raspberrypi.com/documentation/computers/configuration.html";

/// `%UserProfile%\.wslconfig`.
pub(super) fn is_wsl(path: &str) -> bool {
    path.to_ascii_lowercase().ends_with(".wslconfig")
}

/// `kernelCommandLine=` below `[wsl2]`; its pages come from `memory=`.
pub(super) fn wsl(path: &str, text: &str, refused: &mut Vec<Refusal>) -> Result<BootLine, Unread> {
    let pairs: Vec<(Line<'_>, &str, &str)> = said(path, text, &['#', ';'])
        .filter_map(|line| line.pair().map(|(name, value)| (line, name, value)))
        .collect();
    let find = |wanted: &str| pairs.iter().rfind(|(_, name, _)| name.eq_ignore_ascii_case(wanted));
    let (line, _, words) = find("kernelCommandLine").ok_or_else(|| empty(path, "it has no kernelCommandLine="))?;
    let words = words.trim_matches('"').replace("\\\"", "\"");
    let taken = node::boot_line(line.place(), &words);
    let boot = &taken.boot;
    let memory =
        find("memory").and_then(|(_, _, value)| value.to_ascii_uppercase().trim_end_matches('B').parse::<Bytes>().ok());
    let default = boot.default_size.unwrap_or(Bytes::mib(2));
    let bytes = boot
        .pools
        .iter()
        .map(|pool| pool.size.unwrap_or(default).0.saturating_mul(pool.pages.total()));
    let pages = Bytes(bytes.fold(0, u64::saturating_add));
    if let Some(memory) = memory.filter(|memory| pages.0 > memory.0 / 100 * MOST_OF_MEMORY) {
        let why = format!(
            "the huge pages of kernelCommandLine are {pages} of memory={}, which leaves too little to programs, and the kernel makes fewer",
            memory.exact()
        );
        let fix = "fewer pages in kernelCommandLine, or a larger memory=, then: wsl --shutdown";
        refused.push(Refusal::new(&line.place(), why, fix, WSL));
    }
    Ok(taken)
}

const WSL: &str = "https://learn.microsoft.com/en-us/windows/wsl/wsl-config";

/// Of what a machine has, pools leave programs a tenth.
const MOST_OF_MEMORY: u64 = 90;
