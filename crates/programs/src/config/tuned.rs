//! Profiles of tuned: the active ones and those that they include, the strongest first.

use host::Source;
use model::Unread;

use super::files::{Line, content, first, in_sections, said};
use super::{Setting, sysctl_files};

const DIRECTORIES: [&str; 3] = ["/etc/tuned", "/etc/tuned/profiles", "/usr/lib/tuned"];
pub(super) const COMMENT: &[char] = &['#', ';'];
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

/// A line of `[sysctl]`.
pub(super) fn setting(line: &Line<'_>) -> Option<Setting> {
    let (name, written) = line.pair()?;
    Some(sysctl_files::named(line, name, value(written)?))
}

/// What the strongest profile that does so sets each of these to.
pub(super) fn sysctls(source: &Source, names: &[&str]) -> Result<Vec<Setting>, Unread> {
    let profiles = profiles(source)?;
    let set = |name: &&str| {
        profiles.iter().find_map(|(path, text)| {
            let of_sysctl = in_sections(path, text, COMMENT).filter(|(section, _)| *section == "[sysctl]");
            let settings = of_sysctl.filter_map(|(_, line)| setting(&line));
            settings.filter(|setting| setting.name == *name).last()
        })
    };
    Ok(names.iter().filter_map(set).collect())
}

/// Are the files of /etc and /run applied once more after the profile, as is the default?
pub(super) fn reapplies(source: &Source) -> Result<bool, Unread> {
    let text = content(source, "/etc/tuned/tuned-main.conf")?.unwrap_or_default();
    let value = said("", &text, COMMENT).find_map(|line| line.pair().filter(|(key, _)| *key == "reapply_sysctl"));
    Ok(value.is_none_or(|(_, value)| value == "1" || value.eq_ignore_ascii_case("true")))
}
