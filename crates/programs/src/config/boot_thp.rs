//! THP on the boot command line: its policies, and those of its sizes (`setup_thp_anon()`, `setup_thp_shmem()`).

use std::ops::RangeInclusive;

use host::parse::memparse;
use model::Bytes;

use super::Boot;
use super::passed_over::IgnoredWhy;

/// Parameters, base pages of the smallest size where they set policies of sizes, and the policies that the kernel takes.
const PARAMETERS: [(&str, u64, &str); 5] = [
    (GENERAL, 0, "always, madvise, never"),
    (
        "transparent_hugepage_shmem",
        0,
        "always, within_size, advise, never, deny, force",
    ),
    ("transparent_hugepage_tmpfs", 0, "always, within_size, advise, never"),
    ("thp_anon", 4, "always, inherit, madvise, never"),
    ("thp_shmem", 2, "always, inherit, within_size, advise, never"),
];
const GENERAL: &str = "transparent_hugepage";

/// `thp_anon=` or `thp_shmem=`, as the kernel takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThpSizes {
    pub name: &'static str,
    pub value: String,
    least: u64,
    sizes: Vec<RangeInclusive<Bytes>>,
}

const NO_PART: IgnoredWhy = IgnoredWhy::NotThpSizes("parts between `;` have the form SIZES:POLICY");
const NO_SIZE: IgnoredWhy = IgnoredWhy::NotThpSizes(
    "a size is a power of two from 4 base pages (thp_shmem: from 2) up to the PMD size, and a range begins with the smaller one",
);

impl ThpSizes {
    /// Fails with the reason for which the kernel refuses the whole value.
    fn parse((name, least, policies): (&'static str, u64, &'static str), value: &str) -> Result<Self, IgnoredWhy> {
        let mut sizes = Vec::new();
        for part in value.split(';') {
            let (list, policy) = part.split_once(':').ok_or(NO_PART)?;
            for one in list.split(',') {
                let (from, to) = one.split_once('-').unwrap_or((one, one));
                let (from, to) = memparse(from).zip(memparse(to)).ok_or(NO_SIZE)?;
                sizes.push(from..=to);
            }
            is_one_of(policies, policy)?;
        }
        let value = value.to_owned();
        let all = Self {
            name,
            value,
            least,
            sizes,
        };
        // The smallest base page and the largest PMD that there are.
        all.are_sizes(Bytes::kib(4), Bytes::mib(512))
            .then_some(all)
            .ok_or(NO_SIZE)
    }

    /// Does a kernel with this base page and this PMD size have all of its sizes?
    fn are_sizes(&self, page: Bytes, pmd: Bytes) -> bool {
        let least = Bytes(page.0.saturating_mul(self.least));
        let is_one = |size: &Bytes| size.0.is_power_of_two() && (least..=pmd).contains(size);
        let mut all = self.sizes.iter();
        all.all(|sizes| is_one(sizes.start()) && is_one(sizes.end()) && !sizes.is_empty())
    }

    /// Does it set the policy of that size?
    pub fn names(&self, size: Bytes) -> bool {
        self.sizes.iter().any(|sizes| sizes.contains(&size))
    }
}

fn is_one_of(policies: &'static str, value: &str) -> Result<(), IgnoredWhy> {
    let mut all = policies.split(", ");
    all.any(|own| own == value)
        .then_some(())
        .ok_or(IgnoredWhy::NotAPolicy(policies))
}

impl Boot {
    /// Takes a parameter of THP; `false` if it is none.
    pub(super) fn take_thp(&mut self, word: &str, name: &str, value: &str) -> bool {
        let Some(own) = PARAMETERS.into_iter().find(|(own, ..)| *own == name) else {
            return false;
        };
        let taken = match own {
            (GENERAL, _, policies) => is_one_of(policies, value).map(|()| self.thp = Some(value.to_owned())),
            (_, 0, policies) => is_one_of(policies, value),
            _ => ThpSizes::parse(own, value).map(|sizes| self.thp_sizes.push(sizes)),
        };
        if let Err(why) = taken {
            self.ignore(word, why);
        }
        true
    }

    /// On a kernel with this base page and this PMD size, whose sizes are not those of all others.
    #[must_use]
    pub fn with_thp_sizes(mut self, page: Bytes, pmd: Bytes) -> Self {
        for own in std::mem::take(&mut self.thp_sizes) {
            match own.are_sizes(page, pmd) {
                true => self.thp_sizes.push(own),
                false => drop(self.ignore(&format!("{}={}", own.name, own.value), NO_SIZE)),
            }
        }
        self
    }

    /// On a kernel before 6.12, which does not know these parameters.
    #[must_use]
    pub fn without_thp_sizes(mut self) -> Self {
        self.thp_sizes.clear();
        self.ignored.retain(|own| !own.parameter.starts_with("thp_"));
        self
    }
}

/// The policies of THP that the kernel takes.
pub(super) fn is_policy(value: &str) -> bool {
    is_one_of(PARAMETERS[0].2, value).is_ok()
}
