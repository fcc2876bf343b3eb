//! The environment variables of a process that are read.

/// The value of a tunable in a list such as `glibc.malloc.hugetlb=2:glibc.malloc.top_pad=0`.
pub fn in_list<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    list.split(':')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// The environment variables that are read; all others stay unread, because they can hold secrets. `*` stands for any end
/// of a name.
pub const TUNABLES: [&str; 39] = [
    "COMPlus_GC*",
    "DOTNET_GC*",
    "ES_SETTING_BOOTSTRAP_MEMORY__LOCK",
    "FI_EFA_*",
    "GLIBC_TUNABLES",
    "GODEBUG",
    "GOGC",
    "GOMEMLIMIT",
    "HUGETLB_*",
    "HUGEWISE_RUN",
    "IBM_JAVA_OPTIONS",
    "IBV_FORK_SAFE",
    "JAVA_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "JAVA_VERSION",
    "JDK_JAVA_OPTIONS",
    "JE_MALLOC_CONF",
    "LD_PRELOAD",
    "LLAMA_ARG_MLOCK",
    "MALLOC_ARENA_MAX",
    "MALLOC_ARENA_TEST",
    "MALLOC_CONF",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MIMALLOC_*",
    "MONGO_VERSION",
    "OPENJ9_JAVA_OPTIONS",
    "PYTHON_PYMALLOC_HUGEPAGES",
    "RDMAV_*",
    "SGLANG_HUGEPAGE_SIZE",
    "TBB_MALLOC_*",
    "TCMALLOC_*",
    "USE_MLOCK",
    "_JAVA_OPTIONS",
    "_RJEM_MALLOC_CONF",
    "bootstrap.memory_lock",
    "bootstrap.mlockall",
];

/// Is it one of [`TUNABLES`]?
pub fn is_tunable(name: &str) -> bool {
    TUNABLES.iter().any(|known| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => *known == name,
    })
}
