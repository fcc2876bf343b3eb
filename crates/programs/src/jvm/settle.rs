//! What HotSpot makes of its options together, in whatever order they are.

use model::Bytes;

use super::{Jvm, JvmKind, PAGE_OPTIONS, name_of, names_pages};

/// HotSpot does not start with less (`Too small maximum heap`).
const LEAST_HEAP: Bytes = Bytes::mib(2);
const NO_PAGES: &str = "-XX:-UseLargePages";

impl Jvm {
    pub(super) fn settle(&mut self, options: &[&str]) {
        let last = |name: &str| options.iter().rfind(|option| name_of(option) == name).copied();
        if self.kind != JvmKind::OpenJ9 {
            self.settle_pages(last);
        }
        if last("IgnoreUnrecognizedVMOptions") == Some("-XX:+IgnoreUnrecognizedVMOptions") {
            self.refused
                .retain(|option| !names_pages(option) || PAGE_OPTIONS.contains(&name_of(option)));
        }
        let is_heap = |option: &&&str| option.starts_with("-Xmx") || name_of(option) == "MaxHeapSize";
        if self.kind == JvmKind::HotSpot && self.heap_max.is_some_and(|heap| heap < LEAST_HEAP) {
            self.refused
                .extend(options.iter().rfind(is_heap).map(|option| (*option).to_owned()));
        }
    }

    fn settle_pages<'o>(&mut self, last: impl Fn(&str) -> Option<&'o str>) {
        let own = last("UseLargePages");
        // large_page_init() looks at no other flag of them then.
        if own == Some(NO_PAGES) {
            self.off = self.transparent.then(|| NO_PAGES.to_owned());
            self.transparent = false;
            return;
        }
        // Later releases have one method for each sort of pages.
        if self.kind == JvmKind::Zing || self.version.is_some_and(|version| version > LAST_WITH_METHODS) {
            return;
        }
        // Where one of them is set, only those that are on are tried (setup_large_page_type()). A JVM of an unknown release that
        // runs with the first two is an old one.
        let methods = ["UseHugeTLBFS", "UseSHM"].map(&last);
        let [by_files, by_segments] = methods.map(|method| method.is_some_and(|option| option.starts_with("-XX:+")));
        if by_files || by_segments {
            self.large_pages |= own.is_none();
            self.shm = !by_files;
        } else if self.large_pages && !self.transparent {
            let thp = last("UseTransparentHugePages").filter(|_| self.version.is_some());
            let off = methods.into_iter().chain([thp]).flatten().next();
            self.off = off.map(str::to_owned);
        }
    }
}

/// The last JDK with `-XX:+UseSHM` and `-XX:+UseHugeTLBFS`.
const LAST_WITH_METHODS: u32 = 21;
