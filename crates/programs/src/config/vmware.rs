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

/// resvMHz of the host's top group in the output of `sched-stats -t groups`: the first row below the line that names the columns.
///
/// # Errors
/// What is missing.
pub fn reserved_mhz(text: &str) -> Result<f64, &'static str> {
    let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<&str>>());
    let column = rows.find_map(|names| names.iter().position(|name| *name == "resvMHz"));
    let column = column.ok_or("no line names a column resvMHz")?;
    let top = rows
        .find(|row| !row.is_empty())
        .ok_or("no row follows the names of the columns")?;
    let number = top.get(column).and_then(|number| number.parse().ok());
    number.ok_or("the top row has no number in the column resvMHz")
}

/// `Current number of 1GB page backings:1941` of `vsish -e get /memory/lpage/vmLPage/WORLD`.
///
/// # Errors
/// What is missing.
pub fn pages_1g(text: &str) -> Result<u64, &'static str> {
    let mut numbers = text.lines().filter_map(|line| {
        let (name, number) = line.rsplit_once(':')?;
        let name = name.to_ascii_lowercase();
        (name.contains("current") && name.contains("1gb")).then(|| number.trim().parse().ok())?
    });
    numbers.next().ok_or("no line counts the current 1GB page backings")
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
    use super::{pages_1g, reserved_mhz};

    #[test]
    fn numbers_are_taken_from_what_the_esx_shell_prints() {
        let groups = "   vmgid name  pgid  vsmps   amin   amax  units  ashares  resvMHz availMHz\n       0 host     0    523  26398  53820    mhz   -3  10386    43434\n       1 system   0  12 0 -1 mhz 500 26 43434\n";
        assert_eq!(reserved_mhz(groups), Ok(10386.0));
        assert!(reserved_mhz("vmgid name\n0 host\n").is_err() && reserved_mhz("resvMHz\n").is_err());
        let backing = "VM large page statistics {\n   Current number of 1GB page backings:1941\n   Max number of 1GB page backings:1960\n}\n";
        assert_eq!(pages_1g(backing), Ok(1941));
        assert!(pages_1g("hello").is_err());
    }
}
