//! A Java virtual machine: what its pages ask of the system, by implementation, and the options it takes.

use model::plan::Layer;
use model::{Bytes, Collector};

use super::draft::{Draft, Drafts};
use super::goal::{JvmGoal, JvmKind, JvmPages};
use super::limits::{Shared, shared};
use super::{Host, Need, thp};

impl JvmGoal {
    /// Which implementation it is on this host: where mmap() cannot take pool pages, a JDK of that time.
    pub fn kind_on(&self, host: &Host<'_>) -> JvmKind {
        let usual = if host.has_map_hugetlb() {
            JvmKind::HotSpot
        } else {
            JvmKind::Sun
        };
        self.kind.unwrap_or(usual)
    }

    /// The size of the pool that its heap comes from; `None` for THP. ZGC takes pages of 2M alone, and JDK 18 and later name them to the kernel
    /// (JDK-8273872), where earlier ones get the default size.
    ///
    /// # Errors
    /// If this host gives its ZGC pages of another size.
    pub fn page_on(&self, host: &Host<'_>) -> Result<Option<Bytes>, String> {
        let default = host.default_page();
        let is_zgc = self.collector == Some(Collector::Z);
        match self.pages {
            JvmPages::Thp => Ok(None),
            _ if is_zgc && default != ZGC_PAGE && self.jdk.is_some_and(|jdk| jdk < 18) => Err(format!(
                "ZGC takes huge pages of 2M alone, and before JDK 18 it gets the default size, which is {} here (take JDK 18 or later, or \
                 set default_hugepagesz=2M on the boot command line)",
                default.exact()
            )),
            JvmPages::Pool(page) if page != default && self.is_old_hotspot(host) => Err(format!(
                "JDK 11 and older take pages of the default size alone, which is {} here: LargePageSizeInBytes has no effect on Linux (take JDK 17 or \
                 later, or set default_hugepagesz={} on the boot command line)",
                default.exact(),
                page.exact()
            )),
            JvmPages::Default if is_zgc => Ok(Some(ZGC_PAGE)),
            JvmPages::Default => Ok(Some(default)),
            JvmPages::Pool(page) => Ok(Some(page)),
        }
    }

    fn is_old_hotspot(&self, host: &Host<'_>) -> bool {
        self.kind_on(host) == JvmKind::HotSpot && self.jdk.is_some_and(|jdk| jdk <= 11)
    }
}

const ZGC_PAGE: Bytes = Bytes::mib(2);

impl JvmKind {
    /// Does it take System V shared memory, with all that this asks for?
    fn takes_shm(self) -> bool {
        matches!(self, Self::Sun | Self::OpenJ9)
    }

    fn options(self, page: Bytes, default: Bytes) -> String {
        let code = size(page.min(Bytes::mib(2)));
        let size = size(page);
        match self {
            Self::HotSpot if page == default => "-XX:+UseLargePages -XX:+AlwaysPreTouch".to_owned(),
            Self::HotSpot => format!("-XX:+UseLargePages -XX:LargePageSizeInBytes={size} -XX:+AlwaysPreTouch"),
            Self::OpenJ9 => format!("-Xlp:objectheap:pagesize={size} -Xlp:codecache:pagesize={code}"),
            Self::Sun => "-XX:+UseLargePages".to_owned(),
        }
    }

    fn source(self) -> &'static str {
        match self {
            Self::HotSpot => "OpenJDK, os_linux.cpp; java(1)",
            Self::OpenJ9 => "Eclipse OpenJ9 documentation, -Xlp",
            Self::Sun => "JBoss community post on large pages (Sun: -XX:+UseLargePages)",
        }
    }
}

/// Drafts everything but the pool.
pub(super) fn draft(drafts: &mut Drafts<'_>, jvm: &JvmGoal, needs: &[Need]) -> Result<(), String> {
    let kind = jvm.kind_on(drafts.host);
    if jvm.pages == JvmPages::Thp {
        return transparent(drafts, jvm, kind);
    }
    let user = Shared {
        user: jvm.user.as_deref(),
        group: jvm.group.as_deref(),
        service: jvm.service.as_deref(),
        bytes: needs.iter().map(Need::bytes).sum(),
    };
    match kind.takes_shm() {
        true => shared(drafts, &user)?,
        false => differences(drafts, &user),
    }
    let page = needs.first().map_or(Bytes::mib(2), |need| need.page);
    instruct(drafts, jvm, kind, &kind.options(page, drafts.host.default_page()));
    Ok(())
}

/// Why the recipe of 2008 is shorter today.
fn differences(drafts: &mut Drafts<'_>, user: &Shared<'_>) {
    let shmmax = drafts.host.snapshot.sysctls.text("kernel.shmmax");
    drafts.note(format!(
        "kernel.shmmax stays {shmmax}: HotSpot maps its heap with mmap(MAP_HUGETLB) (its option \
         for System V shared memory, UseSHM, went with JDK 22)"
    ));
    drafts.note("vm.hugetlb_shm_group is not set: only shmget(SHM_HUGETLB) needs it");
    let memlock = user.bytes.0 >> 10;
    drafts.note(format!(
        "no memlock limit is set (it would be {memlock} KiB): mmap(MAP_HUGETLB) does not count as locked memory"
    ));
    drafts.note(
        "more pages than heap / page size: code cache and the collector's tables take huge \
         pages too, which JDK 5 and 6 did not",
    );
}

fn transparent(drafts: &mut Drafts<'_>, jvm: &JvmGoal, kind: JvmKind) -> Result<(), String> {
    if kind != JvmKind::HotSpot {
        return Err("only HotSpot requests THP (leave out pages=thp)".to_owned());
    }
    let policy = thp::policy(drafts);
    let wanted = match policy.as_deref() {
        Some("always") => "always",
        _ => "madvise",
    };
    let is_set = policy.as_deref() == Some(wanted);
    let why = "the JVM advises its memory with madvise; no other memory gets huge pages";
    match is_set && thp::overruled(drafts, "enabled", wanted, &[]).is_none() {
        true => drafts.note(
            "THP is allowed already: with -XX:+UseTransparentHugePages the JVM advises \
             its memory with madvise",
        ),
        false => thp::set(drafts, "enabled", wanted, &[], why)?,
    }
    if jvm.collector == Some(Collector::Z) {
        let fine = ["always", "within_size"];
        thp::set(drafts, "shmem_enabled", "advise", &fine, "ZGC's heap is shared memory")?;
    }
    instruct(drafts, jvm, kind, "-XX:+UseTransparentHugePages");
    Ok(())
}

fn instruct(drafts: &mut Drafts<'_>, jvm: &JvmGoal, kind: JvmKind, options: &str) {
    let heap = size(jvm.heap);
    let mut text = format!("{options} -Xms{heap} -Xmx{heap}");
    if let Some(collector) = jvm.collector {
        text += &format!(" {}", collector.option());
    }
    let who = jvm.service.as_deref().or(jvm.user.as_deref());
    let restart = who.map_or_else(|| "the JVM".to_owned(), |who| format!("the JVM of {who}"));
    let draft = Draft::instruction(Layer::Application, "jvm-options", "the JVM's options", text);
    let why = "pages are requested only at the start, for the whole heap at once: -Xms = -Xmx";
    drafts.add(draft.restart(restart), why, kind.source());
}

/// As the JVM writes sizes: `6g`, `3584m`.
fn size(bytes: Bytes) -> String {
    bytes.exact().to_ascii_lowercase().trim_end_matches('b').to_owned()
}
