//! The hugetlb parameters of the boot command line, taken in order as the kernel does (hugetlbpage.rst, mm/hugetlb.c).

use model::Bytes;

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
    /// `transparent_hugepage=`.
    pub thp: Option<String>,
}

/// One pool asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootPool {
    /// Page size; `None` is the default size.
    pub size: Option<Bytes>,
    /// How many pages, and where.
    pub pages: PoolRequest,
}

/// The value of `hugepages=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolRequest {
    /// So many pages, spread over the nodes.
    Total(u64),
    /// Pages by node: `0:512,1:512`.
    ByNode(Vec<(u32, u64)>),
}

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
    /// That size was given before.
    SizeTwice,
    /// That pool's count was given before.
    CountTwice,
    /// It is neither a number nor a list of `NODE:PAGES`.
    NotACount,
}

impl IgnoredWhy {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::UnsupportedSize => "this kernel and CPU have no pages of that size",
            Self::FollowsIgnored => "it follows a page size that is ignored",
            Self::SizeTwice => "that page size was given before",
            Self::CountTwice => "the count of that pool was given before, and the first one holds",
            Self::NotACount => "it is neither a number nor a list of NODE:PAGES",
        }
    }
}

impl PoolRequest {
    /// Pages on all nodes together.
    pub fn total(&self) -> u64 {
        match self {
            Self::Total(pages) => *pages,
            Self::ByNode(nodes) => nodes.iter().fold(0, |sum, (_, pages)| sum.saturating_add(*pages)),
        }
    }
}

/// The size that the next `hugepages=` counts.
#[derive(Clone, Copy)]
enum Next {
    /// None was given yet: the default size, silently.
    Implicit,
    Size(Bytes),
    Ignored,
}

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

    /// Takes a command line. Without `page_sizes` no size is called unsupported.
    pub fn parse(line: &str, page_sizes: Option<&[Bytes]>) -> Self {
        let mut boot = Self::default();
        let mut seen = Vec::new();
        let mut next = Next::Implicit;
        for word in line.split_whitespace() {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            let known = || memparse(value).filter(|size| page_sizes.is_none_or(|sizes| sizes.contains(size)));
            match name {
                "default_hugepagesz" => {
                    next = boot.size(word, known(), boot.default_size.is_some());
                    if let Next::Size(size) = next {
                        boot.default_size = Some(size);
                        seen.push((size, true));
                    }
                }
                "hugepagesz" => {
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
                "hugepages" => next = boot.count(word, value, next),
                "hugetlb_cma" => boot.cma = Some(value.to_owned()),
                "transparent_hugepage" => boot.thp = Some(value.to_owned()),
                _ => {}
            }
        }
        boot
    }

    /// Pages asked for of that size, where `default` is the kernel's default size.
    pub fn pages_of(&self, size: Bytes, default: Option<Bytes>) -> Option<u64> {
        let of = |pool: &&BootPool| pool.size.or(self.default_size).or(default) == Some(size);
        self.pools.iter().find(of).map(|pool| pool.pages.total())
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

    fn ignore(&mut self, parameter: &str, why: IgnoredWhy) -> Next {
        let parameter = parameter.to_owned();
        self.ignored.push(Ignored { parameter, why });
        Next::Ignored
    }

    fn size(&mut self, word: &str, size: Option<Bytes>, twice: bool) -> Next {
        match size {
            None => self.ignore(word, IgnoredWhy::UnsupportedSize),
            Some(_) if twice => self.ignore(word, IgnoredWhy::SizeTwice),
            Some(size) => Next::Size(size),
        }
    }

    fn count(&mut self, word: &str, value: &str, next: Next) -> Next {
        let size = match next {
            Next::Implicit => None,
            Next::Size(size) => Some(size),
            Next::Ignored => return self.ignore(word, IgnoredWhy::FollowsIgnored),
        };
        // A count without a size holds for the default size, and a later pair for that size cannot change it.
        let had = |pool: &BootPool| {
            pool.size == size || (pool.size.is_none() && (self.default_size.is_none() && size == Some(Bytes::mib(2))))
        };
        if self.pools.iter().any(had) {
            return self.ignore(word, IgnoredWhy::CountTwice);
        }
        match request(value) {
            None => self.ignore(word, IgnoredWhy::NotACount),
            Some(pages) => {
                self.pools.push(BootPool { size, pages });
                next
            }
        }
    }
}

fn request(value: &str) -> Option<PoolRequest> {
    if let Ok(pages) = value.parse() {
        return Some(PoolRequest::Total(pages));
    }
    let pair = |part: &str| {
        let (node, pages) = part.split_once(':')?;
        Some((node.parse().ok()?, pages.parse().ok()?))
    };
    let nodes = value.split(',').map(pair).collect::<Option<Vec<_>>>()?;
    Some(PoolRequest::ByNode(nodes))
}

/// A size as the kernel's memparse() reads it: a number, then K, M, G or T or nothing; what follows is not looked at.
pub(crate) fn memparse(text: &str) -> Option<Bytes> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].chars().next().map(|c| c.to_ascii_uppercase()) {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        _ => 0,
    };
    number.checked_mul(1 << shift).map(Bytes)
}
