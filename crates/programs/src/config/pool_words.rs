//! The pools that a boot line asks for, with more of them: each count is for the size before it, so the order of the words counts.

use host::Snapshot;
use host::parse::memparse;
use host::snapshot::Feature;
use model::{Bytes, Reading};

use super::{Boot, BootForm, Config, own_default};

/// A boot line to which parameters are to be added.
#[derive(Clone, Debug, Default)]
pub struct OnBoot {
    line: String,
    /// The size that a count without one is for.
    default: Option<Bytes>,
    /// The release of the running kernel.
    release: String,
    /// Are its words of `GRUB_CMDLINE_LINUX_DEFAULT`?
    is_of_default: bool,
}

/// Words in place of others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    old: String,
    pub(super) new: String,
}

impl Change {
    /// Up to the place where it is made.
    pub(super) fn what(&self) -> String {
        let Self { old, new } = self;
        match old.as_str() {
            "" => format!("add `{new}` to"),
            old => format!("write `{new}` in place of `{old}` in"),
        }
    }

    /// Are there counts of several sizes?
    pub(super) fn has_sizes(&self) -> bool {
        self.new.matches(COUNT).count() > 1
    }

    /// Do names that the line has once get other values alone? A tool that keeps one value of each name is enough then.
    pub(super) fn is_of_values(&self) -> bool {
        let (old, new) = (pool_names(&self.old), pool_names(&self.new));
        let is_once = |name: &&str| new.iter().filter(|other| *other == name).count() == 1;
        new.iter().all(is_once) && new.starts_with(&old)
    }

    pub(super) fn instead(&self) -> String {
        match self.old.as_str() {
            "" => String::new(),
            old => format!(" in place of `{old}`"),
        }
    }
}

impl OnBoot {
    /// That of the next boot, which is the one to edit, or, where none is known, that of the running kernel.
    pub fn of(snapshot: &Snapshot, config: &Config) -> Self {
        let of_kernel = |reading: &Reading<String>| reading.known().cloned().unwrap_or_default();
        let next = config.next_boot.as_ref().map(|next| next.words.clone());
        let running = of_kernel(&snapshot.kernel.command_line);
        let form = config.next_boot.as_ref().map(|next| next.form);
        let is_of_default = form.map_or_else(|| is_behind_quiet(&running), |form| form == BootForm::OfDefault);
        let line = next.unwrap_or(running);
        // Counts by node mean nothing to an older kernel, and are not to be written again.
        let is_node_count = |word: &str| word.starts_with(COUNT) && word.contains(':');
        let is_known = snapshot.kernel.has(Feature::NodePages) != Some(false) || !pool_words(&line).any(is_node_count);
        Self {
            line: if is_known { line } else { String::new() },
            release: of_kernel(&snapshot.kernel.release),
            default: own_default(snapshot),
            is_of_default,
        }
    }

    /// The change to the line, up to the place where it is made.
    pub fn what(&self, parameters: &str) -> String {
        match self.with(parameters) {
            Some(change) => change.what(),
            None => format!("add `{parameters}` to"),
        }
    }

    /// The variable of GRUB's defaults in which the change is made.
    pub(super) fn variable(&self, change: &Change) -> &'static str {
        match self.is_of_default && !change.old.is_empty() {
            true => "GRUB_CMDLINE_LINUX_DEFAULT",
            false => "GRUB_CMDLINE_LINUX",
        }
    }

    /// How GRUB's menu is made of its defaults where kernels have entries of their own (BLS): their lines are left as they are without the
    /// option since RHEL 9.3 and Fedora 38.
    pub(super) fn grub2_mkconfig(&self) -> &'static str {
        match RedHat::of(&self.release) {
            Some(RedHat::Before9) => "grub2-mkconfig -o /etc/grub2.cfg && reboot # with EFI: -o /etc/grub2-efi.cfg",
            Some(RedHat::Early9) => "grub2-mkconfig -o /etc/grub2.cfg && reboot",
            Some(RedHat::Newer) => "grub2-mkconfig -o /etc/grub2.cfg --update-bls-cmdline && reboot",
            None => {
                "grub2-mkconfig -o /etc/grub2.cfg --update-bls-cmdline && reboot # before RHEL 9.3 and Fedora 38 without that option; with EFI before RHEL 9: -o /etc/grub2-efi.cfg"
            }
        }
    }

    /// What its words for pools become; `None` where it is enough to add the parameters, by whatever tool.
    pub(super) fn with(&self, parameters: &str) -> Option<Change> {
        let default = Boot::parse(&self.line, None).default_size.or(self.default);
        let default = default.unwrap_or(Bytes::mib(2));
        let own = sized(parameters, default);
        let old = sized(&self.line, default);
        let size = format!("hugepagesz={}", default.exact());
        let is_other = |(size, word): &(Bytes, &str)| word.starts_with(DEFAULT) && *size != default;
        let kept = match own.iter().any(is_other) {
            true => with_sizes(&old, &size),
            false => old.clone(),
        };
        if kept == old && own.iter().all(|(_, word)| word.starts_with(DEFAULT)) {
            return None;
        }
        let merged = own.iter().fold(kept, |all, &(size, word)| with_word(all, size, word));
        let (old, new) = match old.is_empty() || merged == old {
            true => (Vec::new(), own),
            false => (old, merged),
        };
        let is_repeated = |name: &&str| new.iter().filter(|(_, word)| word.starts_with(*name)).count() > 1;
        if new.starts_with(&old) && !["hugepagesz=", COUNT].iter().any(is_repeated) {
            return None;
        }
        let others = parameters.split_whitespace().filter(|word| !is_of_pools(word));
        let new: Vec<&str> = others.chain(new.iter().map(|(_, word)| *word)).collect();
        let old: Vec<&str> = old.iter().map(|(_, word)| *word).collect();
        Some(Change {
            old: old.join(" "),
            new: new.join(" "),
        })
    }
}

/// Releases of Red Hat and its kin by what `grub2-mkconfig` does there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RedHat {
    Before9,
    Early9,
    Newer,
}

impl RedHat {
    /// By the release of a kernel that was built for it: `.el8_10`, `.el9_2`. That of CentOS Stream 9 has no minor number.
    fn of(release: &str) -> Option<Self> {
        let own = release.split('.').find_map(|part| part.strip_prefix("el"))?;
        let numbers: Vec<&str> = own.split(|c: char| !c.is_ascii_digit()).collect();
        let number = |at: usize| numbers.get(at).and_then(|digits| digits.parse::<u32>().ok());
        Some(match (number(0)?, number(1)) {
            (..9, _) => Self::Before9,
            (9, Some(..3)) => Self::Early9,
            // Oracle's own kernel and those of ELRepo, without a minor number either.
            (9, None) if own != "9" || release.contains(".elrepo") => return None,
            _ => Self::Newer,
        })
    }
}

const DEFAULT: &str = "default_hugepagesz=";
const COUNT: &str = "hugepages=";

fn is_of_pools(word: &str) -> bool {
    [DEFAULT, "hugepagesz=", COUNT]
        .iter()
        .any(|name| word.starts_with(name))
}

fn pool_words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().filter(|word| is_of_pools(word))
}

/// Do the words for pools follow `quiet`, which installers write into `GRUB_CMDLINE_LINUX_DEFAULT`? GRUB puts that variable last.
fn is_behind_quiet(line: &str) -> bool {
    let mut before = line.split_whitespace().take_while(|word| !is_of_pools(word));
    before.any(|word| ["quiet", "splash"].contains(&word))
}

fn pool_names(line: &str) -> Vec<&str> {
    pool_words(line).filter_map(|word| word.split('=').next()).collect()
}

/// The words for pools, each with the page size that it is about.
fn sized(line: &str, default: Bytes) -> Vec<(Bytes, &str)> {
    let mut size = default;
    pool_words(line)
        .map(|word| {
            if let Some((_, value)) = word.split_once("hugepagesz=") {
                size = memparse(value).unwrap_or(Bytes(0));
            }
            (size, word)
        })
        .collect()
}

/// With the page size, `named` so, before each count that is for the default size without saying so.
fn with_sizes<'a>(all: &[(Bytes, &'a str)], named: &'a str) -> Vec<(Bytes, &'a str)> {
    let mut is_said = false;
    let words = all.iter().flat_map(|&(size, word)| {
        is_said |= word.starts_with("hugepagesz=");
        let is_silent = !is_said && word.starts_with(COUNT);
        is_silent.then_some((size, named)).into_iter().chain([(size, word)])
    });
    words.collect()
}

/// With a word more: a new count takes the place of the old one for that size.
fn with_word<'a>(mut all: Vec<(Bytes, &'a str)>, size: Bytes, word: &'a str) -> Vec<(Bytes, &'a str)> {
    let is_default = word.starts_with(DEFAULT);
    let is_same = |&(other, there): &(Bytes, &str)| match is_default {
        true => there.starts_with(DEFAULT),
        false => other == size && there.starts_with(COUNT),
    };
    let is_named = |(other, _): &(Bytes, &str)| *other == size;
    match all.iter().position(is_same) {
        Some(at) if is_default || word.starts_with(COUNT) => all[at] = (size, word),
        None if is_default => all.insert(0, (size, word)),
        None if word.starts_with(COUNT) => {
            let after = all.iter().rposition(is_named).map_or(all.len(), |at| at + 1);
            all.insert(after, (size, word));
        }
        _ if all.iter().any(is_named) => {}
        _ => all.push((size, word)),
    }
    all
}

#[cfg(test)]
mod tests;
