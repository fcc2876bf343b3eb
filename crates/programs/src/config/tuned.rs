//! Profiles of tuned: the active ones and those that they include, the strongest first.

use std::collections::BTreeSet;

use host::Source;
use model::Unread;

use super::files::{Line, content, first, in_sections, said};
use super::{Setting, policy, sysctl_files};

const DIRECTORIES: [&str; 4] = [
    "/etc/tuned",
    "/etc/tuned/profiles",
    "/usr/lib/tuned",
    "/usr/lib/tuned/profiles",
];
const COMMENT: &[char] = &['#', ';'];
/// Profiles at most, so that a circle ends.
const MOST: usize = 16;

/// Is it the text of a profile? Files of other programs have a section [main] too.
pub(super) fn is_profile(text: &str) -> bool {
    let any = |is_it: fn(&str) -> bool| text.lines().map(str::trim).any(is_it);
    let is_main =
        || any(|line| line == "[main]") && any(|line| line.starts_with("summary") || line.starts_with("include"));
    any(|line| matches!(line, "[sysctl]" | "[bootloader]" | "[vm]" | "[sysfs]")) || is_main()
}

/// The files of the profiles in force, each with its path.
pub(super) fn profiles(source: &Source) -> Result<Vec<(String, String)>, Unread> {
    let active = content(source, "/etc/tuned/active_profile")?.unwrap_or_default();
    let mut waiting: Vec<String> = active.split_whitespace().map(str::to_owned).collect();
    let (mut visited, mut files) = (Vec::new(), Vec::new());
    while let Some(profile) = waiting.pop() {
        if visited.contains(&profile) || visited.len() > MOST {
            continue;
        }
        let paths = DIRECTORIES.map(|directory| format!("{directory}/{profile}/tuned.conf"));
        if let Some((path, text)) = first(source, paths)? {
            let included = text.lines().find_map(|line| {
                let (key, value) = line.trim().split_once('=')?;
                (key.trim() == "include").then_some(value)
            });
            let included = included.unwrap_or_default().split(',');
            waiting.extend(
                included
                    .map(|name| name.trim().to_owned())
                    .filter(|name| !name.is_empty()),
            );
            files.push((path, text));
        }
        visited.push(profile);
    }
    Ok(files)
}

/// A value as tuned takes it: without quotes, and without the `>` or `<` that only raises or lowers what is there. `None` of one with a variable,
/// which tuned alone works out.
pub(super) fn value(written: &str) -> Option<&str> {
    let plain = written.trim_matches('"').trim_start_matches(['>', '<']).trim();
    (!plain.contains('$')).then_some(plain)
}

/// What a line of a profile sets.
pub(super) enum Set<'a> {
    Sysctl(Line<'a>),
    /// The THP policy.
    Policy(Setting),
    /// The place, and words of the next boot line.
    Boot(String, &'a str),
    /// A file of the kernel.
    File(Setting),
}

/// What a profile sets that is about memory.
pub(super) fn sets<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Set<'a>> {
    const QUOTES: [char; 2] = ['"', '\''];
    in_sections(path, text, COMMENT).filter_map(|(section, line)| {
        let (key, written) = line.pair()?;
        Some(match section {
            "[sysctl]" => Set::Sysctl(line),
            "[vm]" if matches!(key, "transparent_hugepage" | "transparent_hugepages") => {
                Set::Policy(policy::set(line.place(), value(written)?))
            }
            "[bootloader]" if key.starts_with("cmdline") => {
                let words = written.trim_matches(QUOTES).trim_start_matches(['+', '=']);
                Set::Boot(line.place(), words.trim_matches(QUOTES))
            }
            "[sysfs]" => Set::File(line.setting(key, value(written)?)),
            _ => return None,
        })
    })
}

/// A line of `[sysctl]`.
pub(super) fn setting(line: &Line<'_>) -> Option<Setting> {
    let (name, written) = line.pair()?;
    Some(sysctl_files::named(line, name, value(written)?))
}

/// What the profiles in force set, each name once: as the strongest profile has it, and of its lines the last. A name that it sets by a variable is
/// left out.
pub(super) fn sysctls(source: &Source) -> Result<Vec<Setting>, Unread> {
    let (mut names, mut settings) = (BTreeSet::new(), Vec::new());
    for (path, text) in profiles(source)? {
        let of_sysctl = |set| match set {
            Set::Sysctl(line) => Some(line),
            _ => None,
        };
        let lines: Vec<Line<'_>> = sets(&path, &text).filter_map(of_sysctl).collect();
        for line in lines.iter().rev() {
            let is_first = sysctl_files::setting(line).is_some_and(|set| names.insert(set.name));
            settings.extend(setting(line).filter(|_| is_first));
        }
    }
    settings.reverse();
    Ok(settings)
}

/// Are the files of /etc and /run applied once more after the profile, as is the default?
pub(super) fn reapplies(source: &Source) -> Result<bool, Unread> {
    let text = content(source, "/etc/tuned/tuned-main.conf")?.unwrap_or_default();
    let value = said("", &text, COMMENT).find_map(|line| line.pair().filter(|(key, _)| *key == "reapply_sysctl"));
    Ok(value.is_none_or(|(_, value)| value == "1" || value.eq_ignore_ascii_case("true")))
}
