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
