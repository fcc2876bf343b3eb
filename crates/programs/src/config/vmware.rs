//! VMware's settings, as a virtual machine's `.vmx` file or as a list of ESX advanced settings.

use std::collections::BTreeMap;

use super::files::said;

/// `name = value` settings; names without regard to case, quotes taken off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vmware {
    pub path: String,
    settings: BTreeMap<String, String>,
}

impl Vmware {
    /// Reads a `.vmx` file, or lines such as `Mem.AllocGuestLargePage = 1` of an ESX host; `path` is for messages.
    pub fn parse(path: &str, text: &str) -> Self {
        let pairs = said(path, text, &['#']).filter_map(|line| line.pair());
        let mut settings: BTreeMap<String, String> = pairs
            .map(|(name, value)| (plain(name), value.trim_matches('"').to_owned()))
            .collect();
        settings.extend(listed(text));
        Self {
            path: path.to_owned(),
            settings,
        }
    }

    /// A setting, whatever its case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// Does a switch say `TRUE` (or 1)?
    pub fn is_on(&self, name: &str) -> Option<bool> {
        self.get(name)
            .map(|value| value.eq_ignore_ascii_case("true") || value == "1")
    }
}

/// resvMHz of the host's top group in the output of `sched-stats -t groups`: the first row below the line that names the columns. Where that
/// row has fewer words, a column is empty, and the number is the word that ends below its column's name.
///
/// # Errors
/// What is missing.
pub fn reserved_mhz(text: &str) -> Result<f64, &'static str> {
    let mut lines = text.lines().map(words);
    let (names, column) = lines
        .find_map(|names| {
            let column = names.iter().position(|(name, _)| *name == "resvMHz")?;
            Some((names, column))
        })
        .ok_or("no line names a column resvMHz")?;
    let top = lines
        .find(|row| !row.is_empty())
        .ok_or("no row follows the names of the columns")?;
    let number = match top.len() == names.len() {
        true => top.get(column),
        false => top.iter().find(|(_, end)| *end == names[column].1),
    };
    let number = number.and_then(|(number, _)| number.parse().ok());
    number.ok_or("the top row has no number in the column resvMHz")
}

/// The words of a line, and where each ends.
fn words(line: &str) -> Vec<(&str, usize)> {
    let end = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize + word.len();
    line.split_whitespace().map(|word| (word, end(word))).collect()
}

/// Pages of 1 GB and of 2 MB in the output of `vsish -e get /memory/lpage/vmLPage/WORLD`: `Current number of 1GB page backings:1941`. Some
/// versions of ESX count mappings where others count backings.
///
/// # Errors
/// What is missing.
pub fn page_backings(text: &str) -> Result<(u64, u64), &'static str> {
    let counts = || {
        text.lines().filter_map(|line| {
            let (name, number) = line.rsplit_once(':')?;
            let name = name.to_ascii_lowercase();
            let number: u64 = number.trim().parse().ok()?;
            name.contains("current").then_some((name, number))
        })
    };
    let find = |size: &str, what: &str| counts().find(|(name, _)| name.contains(size) && name.contains(what));
    let count = |size| find(size, "backing").or_else(|| find(size, "mapping"));
    let (_, pages_1g) = count("1gb").ok_or("no line counts the current 1GB page backings")?;
    Ok((pages_1g, count("2mb").map_or(0, |(_, pages)| pages)))
}

/// `esxcli system settings advanced list`: a path, and below it the value.
fn listed(text: &str) -> Vec<(String, String)> {
    let mut name = None;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        match line.split_once(": ") {
            Some(("Path", path)) => name = Some(plain(path)),
            Some(("Int Value", value)) => found.extend(name.take().map(|name| (name, value.to_owned()))),
            _ => {}
        }
    }
    found
}

/// A name without regard to case, and with dots for slashes.
pub(super) fn plain(name: &str) -> String {
    let name = name.trim().trim_start_matches('/');
    name.replace('/', ".").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{page_backings, reserved_mhz};

    #[test]
    fn numbers_are_taken_from_what_the_esx_shell_prints() {
        let groups = "   vmgid name  pgid  vsmps   amin   amax  units  ashares  resvMHz availMHz\n       0 host     0    523  26398  53820    mhz   -3  10386    43434\n       1 system   0  12 0 -1 mhz 500 26 43434\n";
        assert_eq!(reserved_mhz(groups), Ok(10386.0));
        assert!(reserved_mhz("vmgid name\n0 host\n").is_err() && reserved_mhz("resvMHz\n").is_err());
        // The top group has no parent: its column is empty.
        let empty = " vmgid  name pgid  pname  resvMHz availMHz\n     0  host                10386    43434\n     1  system  0  host      26    43434\n";
        assert_eq!(reserved_mhz(empty), Ok(10386.0));
        let backing = "VM large page statistics {\n   Current number of 1GB page backings:1941\n   Max number of 1GB page backings:1960\n   \
                       Current number of 2MB page mappings:7\n   Current number of 2MB page backings:8605\n}\n";
        assert_eq!(page_backings(backing), Ok((1941, 8605)));
        let mapped = "   Current number of 1GB page backings:1900\n   Current number of 2MB page mappings:12\n";
        assert_eq!(page_backings(mapped), Ok((1900, 12)));
        assert!(
            page_backings("hello").is_err() && page_backings("   Current number of 2MB page mappings:12\n").is_err()
        );
    }
}
