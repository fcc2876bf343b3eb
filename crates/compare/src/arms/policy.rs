//! The page policies that an arm can stand for, by the names that users type.

use std::fmt;
use std::str::FromStr;

use host::snapshot::thp::Thp;
use model::{Bytes, PageKind, Reading};

use crate::Error;

/// Below this share of base pages the arm `base` is not what it says: the program asks for huge pages in a way that no
/// switch of the kernel's keeps from it.
pub(crate) const LEAST_BASE: f64 = 0.9;

/// What an arm asks of the pages behind a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Pages of this kind. For base pages THP is switched off for the program; for THP of one size alone the machine's switches are
    /// turned for each run.
    Of(PageKind),
    /// Whatever the machine and the program make of it.
    System,
    /// THP only where the program asks for them, whatever the machine's mode (Linux 6.18 and later).
    ThpAdvised,
    /// Huge pages behind the code that the program mapped from files.
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an arm (write base, system, thp-advised, thp, mthp-SIZE such as mthp-64K, sizes, hugetlb-SIZE such as hugetlb-2M, text, or a name from \
     --arms-file)"
)]
pub struct ParsePolicyError(String);

impl Policy {
    /// The page kind whose share shows whether it took effect.
    pub fn kind(self) -> Option<PageKind> {
        match self {
            Self::Of(kind) => Some(kind),
            Self::Text => Some(PageKind::Thp),
            Self::System | Self::ThpAdvised => None,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(kind) => kind.fmt(f),
            Self::System => f.pad("system"),
            Self::ThpAdvised => f.pad("thp-advised"),
            Self::Text => f.pad("text"),
        }
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "system" => Ok(Self::System),
            "thp-advised" => Ok(Self::ThpAdvised),
            "text" => Ok(Self::Text),
            kind => (kind.parse().ok())
                .filter(|parsed: &PageKind| parsed.to_string() == kind)
                .map(Self::Of)
                .ok_or_else(|| ParsePolicyError(kind.to_owned())),
        }
    }
}

/// What stands for the arms of all THP sizes.
const SIZES: &str = "sizes";

/// Arms as typed, with `sizes` as the arm of each THP size that this kernel has, behind `base` if nothing is before them.
///
/// # Errors
/// Why it has none.
pub fn arms(typed: &[String], thp: &Reading<Thp>) -> Result<Vec<String>, Error> {
    let mut arms: Vec<String> = Vec::new();
    for name in typed {
        if name != SIZES {
            arms.push(name.clone());
            continue;
        }
        if arms.is_empty() {
            arms.push(PageKind::Base.to_string());
        }
        arms.extend(of_sizes(thp)?.iter().map(ToString::to_string));
    }
    Ok(arms)
}

fn of_sizes(thp: &Reading<Thp>) -> Result<Vec<PageKind>, Error> {
    let refused = |why: String| Error::asked(format!("--arms {SIZES}"), why);
    let thp = thp.as_ref().into_result();
    let thp = thp.map_err(|why| refused(format!("this kernel has no transparent huge pages ({why})")))?;
    match thp.switched() {
        sizes if sizes.is_empty() => Err(refused(NO_SWITCHES.to_owned())),
        sizes => Ok(sizes.into_iter().map(PageKind::Mthp).collect()),
    }
}

/// What kernels before Linux 6.8 lack.
const NO_SWITCHES: &str = "this kernel has no switch for each THP size, which takes Linux 6.8 \
                           (/sys/kernel/mm/transparent_hugepage/hugepages-*kB/enabled; compare thp instead)";

/// Has this kernel a switch for THP of that size?
///
/// # Errors
/// Which sizes it has.
pub(crate) fn must_have(size: Bytes, thp: &Reading<Thp>) -> Result<(), Error> {
    let sizes = thp.known().map(Thp::switched).unwrap_or_default();
    if sizes.contains(&size) {
        return Ok(());
    }
    let names: Vec<String> = sizes.iter().map(|size| size.exact()).collect();
    let why = match names.is_empty() {
        true => NO_SWITCHES.to_owned(),
        false => format!("this kernel has no THP of that size (it has {})", names.join(", ")),
    };
    Err(Error::asked(format!("--arms {}", PageKind::Mthp(size)), why))
}

#[cfg(test)]
mod tests {
    use super::{Policy, must_have};
    use host::snapshot::thp::{THP, Thp};
    use host::{Snapshot, Source, Tree};
    use model::{Bytes, PageKind, Reading};

    #[test]
    fn every_policy_prints_what_it_reads_and_others_are_refused() {
        let pools = [Bytes::mib(2), Bytes::gib(1)].map(PageKind::Hugetlb);
        let sizes = [Bytes::kib(64), Bytes::mib(1)].map(PageKind::Mthp);
        let kinds = [PageKind::Base, PageKind::Thp].into_iter().chain(pools).chain(sizes);
        let others = [Policy::System, Policy::ThpAdvised, Policy::Text];
        for policy in kinds.map(Policy::Of).chain(others) {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "mthp-65K".parse::<Policy>().expect_err("no arm").to_string();
        assert!(error.contains("hugetlb-2M"), "{error}");
    }

    fn thp(sizes: &[u64]) -> Reading<Thp> {
        let at = |name: &str| format!("{THP}/{name}");
        let tree = Tree::new()
            .line(&at("enabled"), "always [madvise] never")
            .line(&at("hugepages-8kB/shmem_enabled"), "always inherit advise [never]");
        let with = |tree: Tree, kib: &u64| {
            tree.line(
                &at(&format!("hugepages-{kib}kB/enabled")),
                "always [inherit] madvise never",
            )
        };
        Snapshot::take(&Source::from_tree("made", sizes.iter().fold(tree, with))).thp
    }

    #[test]
    fn sizes_are_those_of_the_kernel_behind_a_reference() {
        let arms = |typed: &[&str], sizes: &[u64]| {
            let typed: Vec<String> = typed.iter().map(|name| (*name).to_owned()).collect();
            super::arms(&typed, &thp(sizes)).map_err(|error| error.to_string())
        };
        let all = ["base", "mthp-64K", "mthp-2M"].map(str::to_owned);
        assert_eq!(arms(&["sizes"], &[64, 2048]), Ok(all.to_vec()));
        assert_eq!(arms(&["base", "sizes"], &[64, 2048]), Ok(all.to_vec()));
        assert_eq!(arms(&["system", "thp"], &[]).expect("as typed"), ["system", "thp"]);
        let error = arms(&["sizes"], &[]).expect_err("no switches");
        assert!(
            error.starts_with("--arms sizes: ") && error.contains("Linux 6.8"),
            "{error}"
        );
    }

    #[test]
    fn a_size_that_the_kernel_lacks_is_refused_with_those_that_it_has() {
        let refused = |kib, sizes: &[u64]| must_have(Bytes::kib(kib), &thp(sizes)).map_err(|error| error.to_string());
        assert_eq!(refused(64, &[64, 2048]), Ok(()));
        let error = refused(8, &[64, 2048]).expect_err("for shared memory alone");
        assert_eq!(
            error,
            "--arms mthp-8K: this kernel has no THP of that size (it has 64K, 2M)"
        );
        let error = refused(64, &[]).expect_err("no switches");
        assert!(
            error.starts_with("--arms mthp-64K: ") && error.contains("Linux 6.8"),
            "{error}"
        );
    }
}
