//! The hugetlb parameters of the boot command line, taken in order as the kernel does (hugetlbpage.rst, mm/hugetlb.c).

use host::parse::memparse;
use host::snapshot::Topology;
use model::Bytes;

use super::boot_thp::ThpSizes;
use super::kernel_number;
use super::passed_over::{Ignored, IgnoredWhy, behind_count};
use super::pool_request::{PoolRequest, request};

/// What the command line asks of the pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boot {
    /// The page size of `default_hugepagesz=`, if one was given that the kernel has.
    pub default_size: Option<Bytes>,
    /// Pools asked for, in the order of the command line.
    pub pools: Vec<BootPool>,
    /// Parameters that have no effect, and why.
    pub ignored: Vec<Ignored>,
    /// `hugetlb_cma=`: memory set aside for pages of 1 GiB at run time.
    pub cma: Option<String>,
    /// `hugetlb_cma_only=`: pages of boot come from that memory too (Linux 6.15 and later).
    pub cma_only: bool,
    /// `transparent_hugepage=`.
    pub thp: Option<String>,
    /// `thp_anon=` and `thp_shmem=`, each of which adds to those before it.
    pub thp_sizes: Vec<ThpSizes>,
    /// Counts of which the kernel takes the digits at the beginning alone, as `4` of `hugepages=4G`.
    pub digits: Vec<DigitsTaken>,
    /// `sysctl.vm.nr_hugepages=`, which [`Boot::with_sysctl`] makes a pool.
    pub sysctl: Option<DigitsTaken>,
}

/// A boot command line in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootLine {
    /// `FILE:LINE`.
    pub place: String,
    /// As written.
    pub words: String,
    /// Its hugetlb part.
    pub boot: Boot,
    pub form: BootForm,
}

/// How it is written there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BootForm {
    #[default]
    Parameters,
    /// `GRUB_CMDLINE_LINUX_DEFAULT`.
    OfDefault,
    /// Settings of Bottlerocket.
    Settings,
    /// What Talos's installer writes where GRUB starts the node, and nothing where systemd-boot does.
    ByInstaller,
}

impl BootLine {
    /// With pages of every size.
    pub(super) fn new(place: impl Into<String>, words: impl Into<String>) -> Self {
        let words = words.into();
        Self {
            place: place.into(),
            boot: Boot::parse(&words, Some(&Boot::SIZES)),
            words,
            form: BootForm::default(),
        }
    }
}

/// A count as written, and as the kernel reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigitsTaken {
    /// As written, such as `hugepages=4G`.
    pub parameter: String,
    pub pages: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootPool {
    /// Page size; `None` is the default size.
    pub size: Option<Bytes>,
    pub pages: PoolRequest,
}

/// The size that the next `hugepages=` counts.
#[derive(Clone, Copy)]
pub(super) enum Next {
    /// None was given yet: the default size, silently.
    Implicit,
    Size(Bytes),
    Ignored,
}

/// Names that people write, and the parameter that they mean.
const MISSPELT: [(&str, &str); 14] = [
    ("transparent_hugepages", "transparent_hugepage"),
    ("transparent_huge_page", "transparent_hugepage"),
    ("transparent_huge_pages", "transparent_hugepage"),
    ("transparent_hugpage", "transparent_hugepage"),
    ("transparenthugepage", "transparent_hugepage"),
    ("hugepagesize", "hugepagesz"),
    ("hugepagessz", "hugepagesz"),
    ("hugepages_size", "hugepagesz"),
    ("default_hugepages", "default_hugepagesz"),
    ("default_hugepagesize", "default_hugepagesz"),
    ("default_hugepage_size", "default_hugepagesz"),
    ("hugepage", "hugepages"),
    ("huge_pages", "hugepages"),
    ("nr_hugepages", "hugepages"),
];

impl Boot {
    /// Sizes of hugetlb pages on the architectures that Linux runs on (arm64 with pages of 4K, 16K and 64K; loongarch;
    /// powerpc; riscv; s390; sparc; x86). A size that is none of these is supported nowhere.
    pub const SIZES: [Bytes; 13] = [
        Bytes::kib(64),
        Bytes::kib(512),
        Bytes::mib(1),
        Bytes::mib(2),
        Bytes::mib(4),
        Bytes::mib(8),
        Bytes::mib(16),
        Bytes::mib(32),
        Bytes::mib(256),
        Bytes::mib(512),
        Bytes::gib(1),
        Bytes::gib(2),
        Bytes::gib(16),
    ];

    /// Those of 64-bit x86 and arm64, on which programs of users run.
    pub const COMMON: [Bytes; 6] = [
        Bytes::kib(64),
        Bytes::mib(2),
        Bytes::mib(32),
        Bytes::mib(512),
        Bytes::gib(1),
        Bytes::gib(16),
    ];

    /// Takes a command line. Without `page_sizes` no size is called unsupported.
    pub fn parse(line: &str, page_sizes: Option<&[Bytes]>) -> Self {
        Self::parse_for(line, page_sizes, None)
    }

    /// The same for a kernel whose own default size is known, which differs by architecture.
    pub(super) fn parse_for(line: &str, page_sizes: Option<&[Bytes]>, default: Option<Bytes>) -> Self {
        let mut boot = Self::default();
        let mut seen = Vec::new();
        let mut next = Next::Implicit;
        // What follows `--` is for init.
        for word in line.split_whitespace().take_while(|word| *word != "--") {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            // next_arg() of the kernel: quotes around a value are no part of it, and a dash in a name is an underscore.
            let value = value
                .strip_prefix('"')
                .map_or(value, |value| value.strip_suffix('"').unwrap_or(value));
            let name = &*name.replace('-', "_");
            let known = || memparse(value).filter(|size| page_sizes.is_none_or(|sizes| sizes.contains(size)));
            match name {
                "default_hugepagesz" => {
                    boot.lose(value);
                    next = match boot.default_size {
                        Some(_) => boot.ignore(word, IgnoredWhy::DefaultTwice),
                        None => boot.size(word, known(), false),
                    };
                    if let Next::Size(size) = next {
                        boot.default_size = Some(size);
                        seen.push((size, true));
                    }
                }
                "hugepagesz" => {
                    boot.lose(value);
                    let size = known();
                    // The kernel lets `hugepagesz=` name the default size once more, right after `default_hugepagesz=`.
                    let again = seen.iter().any(|&(had, _)| Some(had) == size);
                    let only_default = seen.iter().any(|&(had, default)| Some(had) == size && default);
                    next = boot.size(word, size, again && (!only_default || boot.has_count(size)));
                    if let Next::Size(size) = next {
                        seen.retain(|&(had, _)| had != size);
                        seen.push((size, false));
                    }
                }
                "hugepages" => next = boot.count(word, value, next, default),
                "hugetlb_cma" => boot.cma = Some(value.to_owned()),
                "hugetlb_cma_only" => boot.cma_only = switch(value).unwrap_or(boot.cma_only),
                "sysctl.vm.nr_hugepages" | "sysctl.vm/nr_hugepages" => {
                    boot.sysctl = by_sysctl(word, value).or(boot.sysctl.take());
                }
                name => boot.other(word, name, value),
            }
        }
        let behind = behind_count(line, boot.default_size.or(default));
        if let Some(word) = behind.filter(|word| boot.ignored.iter().all(|own| own.parameter != *word)) {
            boot.ignore(word, IgnoredWhy::CountInFront);
        }
        boot
    }

    /// What is asked for of that size, where `default` is the kernel's default size.
    pub fn request_of(&self, size: Bytes, default: Option<Bytes>) -> Option<&PoolRequest> {
        let of = |pool: &&BootPool| pool.size.or(self.default_size).or(default) == Some(size);
        self.pools.iter().find(of).map(|pool| &pool.pages)
    }

    /// Its pages.
    pub fn pages_of(&self, size: Bytes, default: Option<Bytes>) -> Option<u64> {
        self.request_of(size, default).map(PoolRequest::total)
    }

    /// Was any pool asked for node by node?
    pub fn is_by_node(&self) -> bool {
        self.pools
            .iter()
            .any(|pool| matches!(pool.pages, PoolRequest::ByNode(_)))
    }

    fn has_count(&self, size: Option<Bytes>) -> bool {
        self.pools.iter().any(|pool| pool.size == size || pool.size.is_none())
    }

    /// A parameter that is none of the pools'.
    fn other(&mut self, word: &str, name: &str, value: &str) {
        if !self.take_thp(word, name, value)
            && let Some(meant) = meant(name)
        {
            self.ignore(word, IgnoredWhy::Misspelt(meant));
        }
    }

    pub(super) fn ignore(&mut self, parameter: &str, why: IgnoredWhy) -> Next {
        let parameter = parameter.to_owned();
        self.ignored.push(Ignored { parameter, why });
        Next::Ignored
    }

    /// memparse() ends with the size: another parameter in the same word is not read.
    fn lose(&mut self, value: &str) {
        if let Some(at) = value.find("hugepages") {
            self.ignore(&value[at..], IgnoredWhy::InOneWord);
        }
    }

    fn size(&mut self, word: &str, size: Option<Bytes>, twice: bool) -> Next {
        match size {
            None => self.ignore(word, IgnoredWhy::UnsupportedSize),
            Some(_) if twice => self.ignore(word, IgnoredWhy::SizeTwice),
            Some(size) => Next::Size(size),
        }
    }

    fn count(&mut self, word: &str, value: &str, next: Next, default: Option<Bytes>) -> Next {
        let size = match next {
            Next::Implicit => None,
            Next::Size(size) => Some(size),
            Next::Ignored => return self.ignore(word, IgnoredWhy::FollowsIgnored),
        };
        // A count without a size holds for the default size, and a later pair for that size cannot change it.
        let default = default.unwrap_or(Bytes::mib(2));
        let is_default = self.default_size.is_none() && size == Some(default);
        let had = |pool: &BootPool| pool.size == size || (pool.size.is_none() && is_default);
        if self.pools.iter().any(had) {
            return self.ignore(word, IgnoredWhy::CountTwice);
        }
        match request(value) {
            None => self.ignore(word, IgnoredWhy::NotACount),
            Some(pages) => {
                if let PoolRequest::Total(pages) = pages
                    && value.parse() != Ok(pages)
                {
                    let parameter = word.to_owned();
                    self.digits.push(DigitsTaken { parameter, pages });
                }
                self.pools.push(BootPool { size, pages });
                next
            }
        }
    }
}

/// The parameter that is meant by a name that the kernel does not have; capital letters make another name.
fn meant(name: &str) -> Option<&'static str> {
    let name = &*name.to_ascii_lowercase();
    let of = |(written, meant): &&(&str, &str)| *written == name || *meant == name;
    MISSPELT.iter().find(of).map(|(_, meant)| *meant)
}

/// kstrtobool(); what it refuses leaves a switch as it was.
fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_bytes() {
        [b'1' | b'y' | b't' | b'e', ..] | [b'o', b'n', ..] => Some(true),
        [b'0' | b'n' | b'f' | b'd', ..] | [b'o', b'f', ..] => Some(false),
        _ => None,
    }
}

/// What the kernel sets aside for `hugetlb_cma=`, an amount or one for each node. It drops what is less than a page (hugetlb_cma_reserve()).
fn set_aside(cma: &str) -> Bytes {
    let amount = |amount: &str| memparse(amount).filter(|bytes| *bytes >= Bytes::gib(1));
    match cma.contains(':') {
        true => cma.split(',').filter_map(|part| amount(part.split_once(':')?.1)).sum(),
        false => amount(cma).unwrap_or_default(),
    }
}

fn by_sysctl(word: &str, value: &str) -> Option<DigitsTaken> {
    let pages = kernel_number::taken(value)?;
    let parameter = word.to_owned();
    Some(DigitsTaken { parameter, pages })
}

impl Boot {
    /// With `sysctl.vm.nr_hugepages=`, which is applied behind all others, for the default size (proc_sysctl.c, Linux 5.8). An older kernel
    /// passes over it. `default` is the kernel's default size, where it is known.
    #[must_use]
    pub fn with_sysctl(mut self, is_applied: bool, default: Option<Bytes>) -> Self {
        let Some(DigitsTaken { parameter, pages }) = self.sysctl.clone() else {
            return self;
        };
        if is_applied {
            let default = self.default_size.or(default).unwrap_or(Bytes::mib(2));
            self.pools.retain(|pool| pool.size.is_some_and(|size| size != default));
            let pages = PoolRequest::Total(pages);
            self.pools.push(BootPool { size: None, pages });
        } else {
            self.sysctl = None;
            self.ignore(&parameter, IgnoredWhy::SysctlTooOld);
        }
        self
    }

    /// `hugetlb_cma=` where the kernel makes no gigantic pages at boot for it (hugetlb_hstate_alloc_pages()).
    pub fn cma_at_run_time(&self) -> Option<&str> {
        self.cma.as_deref().filter(|_| self.cma_bytes().0 > 0 && !self.cma_only)
    }

    /// Memory that `hugetlb_cma=` sets aside for gigantic pages.
    pub fn cma_bytes(&self) -> Bytes {
        self.cma.as_deref().map(set_aside).unwrap_or_default()
    }

    /// Without the pools that the kernel passes over for it.
    #[must_use]
    pub fn without_gigantic(mut self) -> Self {
        if self.cma_at_run_time().is_none() {
            return self;
        }
        let default = self.default_size;
        let is_kept = |pool: &BootPool| pool.size.or(default).is_none_or(|size| size < Bytes::gib(1));
        let (kept, gigantic): (Vec<BootPool>, Vec<BootPool>) =
            std::mem::take(&mut self.pools).into_iter().partition(is_kept);
        self.pools = kept;
        let asked = gigantic.iter().filter(|pool| pool.pages.total() > 0);
        self.ignored.extend(asked.map(|pool| Ignored {
            parameter: format!("hugepages={}", pool.pages),
            why: IgnoredWhy::BesideCma,
        }));
        self
    }

    /// The same line to a kernel before 5.16, which knows no nodes: it takes the digits at the beginning of each count.
    #[must_use]
    pub fn without_nodes(mut self) -> Self {
        for pool in &mut self.pools {
            if let PoolRequest::ByNode(nodes) = &pool.pages {
                let parameter = format!("hugepages={}", pool.pages);
                let why = IgnoredWhy::NodesTooOld;
                self.ignored.push(Ignored { parameter, why });
                pool.pages = PoolRequest::Total(nodes.first().map_or(0, |(node, _)| u64::from(*node)));
            }
        }
        self
    }

    /// The same line on a machine that lacks some of its nodes: the kernel drops a list with one (hugepages_setup() of Linux 5.19 and later).
    #[must_use]
    pub fn on_nodes(mut self, topology: &Topology) -> Self {
        for pool in &mut self.pools {
            let PoolRequest::ByNode(nodes) = &mut pool.pages else {
                continue;
            };
            if let Some(&(node, _)) = nodes.iter().find(|(node, _)| topology.lacks(*node)) {
                let why = IgnoredWhy::NoSuchNode(node);
                let parameter = PoolRequest::ByNode(std::mem::take(nodes)).to_string();
                self.ignored.push(Ignored { parameter, why });
            }
        }
        self
    }
}
