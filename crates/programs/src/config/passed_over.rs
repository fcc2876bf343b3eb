//! Parameters of the boot command line that the kernel passes over, and why.

use host::parse::memparse;
use model::Bytes;

/// A parameter without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// As written, such as `hugepagesz=3M`.
    pub parameter: String,
    /// Why the kernel passes over it.
    pub why: IgnoredWhy,
}

/// Why a parameter has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredWhy {
    /// This kernel and CPU have no pages of that size.
    UnsupportedSize,
    /// It follows an ignored page size.
    FollowsIgnored,
    /// No count follows this page size, and one without a size stands in front of it.
    CountInFront,
    /// That size was given before.
    SizeTwice,
    /// A default size was given before.
    DefaultTwice,
    /// It is a part of the word of a page size.
    InOneWord,
    /// That pool's count was given before.
    CountTwice,
    /// It is neither a number nor a list of `NODE:PAGES`.
    NotACount,
    /// It is spelt like this known parameter, and nearly so.
    Misspelt(&'static str),
    /// `NODE:PAGES` on a kernel before 5.16, which takes the number in front of the colon for the count.
    NodesTooOld,
    /// The machine lacks this node of a list of `NODE:PAGES`.
    NoSuchNode(u32),
    /// It is no policy of THP, which are these.
    NotAPolicy(&'static str),
    /// The kernel refuses its sizes of THP.
    NotThpSizes(&'static str),
    /// `sysctl.NAME=` on a kernel before 5.8.
    SysctlTooOld,
    /// Pages of 1 GiB and more beside `hugetlb_cma=`.
    BesideCma,
}

/// The page size of `hugepages=16 hugepagesz=1G`: no count follows it, and the one in front has no size, as nothing but counts is before it.
/// Without a known default size it is one that is the default of no architecture.
pub(super) fn behind_count(line: &str, default: Option<Bytes>) -> Option<&str> {
    let is_count = |word: &&&str| word.starts_with("hugepages=");
    let words = line.split_whitespace().take_while(|word| *word != "--");
    let words: Vec<&str> = words
        .filter(|word| word.trim_start_matches("default_").starts_with("hugepages"))
        .collect();
    let counts = words.iter().take_while(is_count).count();
    let word = words.get(counts).filter(|_| counts > 0)?;
    let size = memparse(word.strip_prefix("hugepagesz=")?)?;
    let is_other = default.map_or(size >= Bytes::gib(1), |default| size != default);
    (is_other && words.get(counts + 1).filter(is_count).is_none()).then_some(word)
}

impl IgnoredWhy {
    pub fn text(self) -> String {
        let why = match self {
            Self::Misspelt(meant) => return format!("the kernel has no such parameter: it is `{meant}=`"),
            Self::NoSuchNode(node) => {
                return format!(
                    "this machine has no NUMA node {node}, and the kernel drops the whole list (before 5.19 it may keep what stands before that node)"
                );
            }
            Self::NotAPolicy(policies) => return format!("the kernel takes one of {policies}"),
            Self::NotThpSizes(why) => return format!("the kernel refuses the whole value: {why}"),
            Self::UnsupportedSize => "this kernel and CPU have no pages of that size",
            Self::FollowsIgnored => "it follows a page size that is ignored",
            Self::CountInFront => {
                "no count follows this page size, and the one in front of it is of pages of the default size"
            }
            Self::SizeTwice => "that page size was given before; a `hugepages=` right behind it is dropped, too",
            Self::DefaultTwice => {
                "a default page size was given before; a `hugepages=` right behind it is dropped, too"
            }
            Self::InOneWord => "the kernel reads a page size to its end and no further; a blank ends a parameter",
            Self::CountTwice => "the count of that pool was given before, and the first one holds",
            Self::NotACount => "it is neither a number nor a list of NODE:PAGES",
            Self::BesideCma => "with hugetlb_cma= the kernel makes no pages of 1G and more at boot",
            Self::SysctlTooOld => "Linux before 5.8 reads no sysctl settings there",
            Self::NodesTooOld => {
                "Linux before 5.16 does not know NODE:PAGES, and takes the number in front of the colon for the count"
            }
        };
        why.to_owned()
    }
}
