//! The pages of a pool within the text of a fix. Such a fix sets the whole pool, so that each one of a report has the number that all of
//! them together come to: else the last one would take away what the others add.

use std::fmt;

use model::Bytes;

/// Marks of such a number until all findings are settled: two characters that no text has. Between them is no blank, as what takes boot
/// parameters apart is to leave such a number whole.
const MARKS: [char; 2] = ['\u{E000}', '\u{E001}'];
const BESIDE: char = '/';

/// The pages of a whole pool, within a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(super) page: Bytes,
    /// What the finding alone asks for; `None` of a pool that is to be kept as the fixes of others leave it.
    pub(super) own: Option<u64>,
}

impl Count {
    /// So many pages for this finding alone.
    pub(crate) fn of(page: Bytes, own: u64) -> Self {
        let own = Some(own);
        Self { page, own }
    }

    pub(crate) fn kept(page: Bytes) -> Self {
        Self { page, own: None }
    }

    fn parse(text: &str) -> Option<Self> {
        let (page, own) = text.split_once(BESIDE)?;
        let page = Bytes(page.parse().ok()?);
        Some(Self {
            page,
            own: own.parse().ok(),
        })
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.own.map_or_else(String::new, |own| own.to_string());
        write!(f, "{}{}{BESIDE}{own}{}", MARKS[0], self.page.0, MARKS[1])
    }
}

/// The text with its numbers.
pub(super) fn filled_in(text: &str, mut number: impl FnMut(Count) -> u64) -> String {
    let mut parts = text.split(MARKS[0]);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (count, rest) = part.split_once(MARKS[1]).unwrap_or((part, ""));
        all.extend(Count::parse(count).map(|count| number(count).to_string()));
        all.push_str(rest);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::iter::successors;

    use model::Bytes;
    use programs::Evidence;
    use programs::config::Distribution;

    use super::{Count, filled_in};
    use crate::kept::{add_boot, by_unit};
    use crate::machines::{evidence, machine};

    /// The one after this, so that a new one has to be named here.
    fn next(own: Distribution) -> Option<Distribution> {
        use Distribution::*;
        Some(match own {
            Debian => RedHat,
            RedHat => Suse,
            Suse => SuseEntries,
            SuseEntries => SuseMicro,
            SuseMicro => Efi,
            Efi => UnifiedImage,
            UnifiedImage => ProxmoxBoot,
            ProxmoxBoot => Kernelstub,
            Kernelstub => NixOs,
            NixOs => Talos,
            Talos => Bottlerocket,
            Bottlerocket => Ostree,
            Ostree => RaspberryPi,
            RaspberryPi => Extlinux,
            Extlinux => Armbian,
            Armbian => Wsl,
            Wsl => Other,
            Other => return None,
        })
    }

    /// Every text that a boot line or a unit gets its pages by.
    fn texts(evidence: &Evidence, own: Distribution, pages: impl std::fmt::Display) -> [String; 4] {
        let line = |page: &str| add_boot(evidence, own, &format!("hugepagesz={page} hugepages={pages}"));
        let setting = own.keep_setting("vm.nr_hugepages", &pages);
        [line("1G"), line("2M"), setting, by_unit(own, "/sys/pool", &pages)]
    }

    #[test]
    fn the_number_comes_whole_into_every_text_of_each_distribution() {
        let count = Count::of(Bytes::gib(1), 4);
        for line in [
            "quiet",
            "hugepagesz=1G hugepages=0",
            "hugepages=36",
            "quiet default_hugepagesz=1G hugepagesz=1G hugepages=3 hugepagesz=2M hugepages=512",
        ] {
            let evidence = evidence(machine().file("/proc/cmdline", format!("root=/dev/sda1 {line}\n")));
            for own in successors(Some(Distribution::Debian), |own| next(*own)) {
                let marked = texts(&evidence, own, count).map(|text| filled_in(&text, |_| 4));
                assert_eq!(marked, texts(&evidence, own, 4), "{own:?} with {line}");
            }
        }
    }
}
