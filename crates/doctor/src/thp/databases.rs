//! Databases whose vendors recommend a THP policy.

use host::snapshot::Feature;
use model::{Bytes, PageKind};
use programs::Evidence;
use programs::{Kind, Program};

use crate::facts::{each, known, policy, programs, thp, thp_file};
use crate::remedy::Need;
use crate::rule::{Answer, Case, Reason};

pub(super) fn redis(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    each(programs(evidence)?, |program| {
        if !program.is(Kind::Redis)? || policy != "always" || !*known(&program.pages.thp_enabled)? {
            return Ok(None);
        }
        let huge = program.thp()?;
        if huge.0 == 0 {
            return Ok(None);
        }
        // Linux 5.8 (commit 3917c80280c9): the fault after a fork splits the huge page and copies one base page.
        let splits = evidence.snapshot.kernel.has(Feature::CopySplitsThp) == Some(true);
        let cost = match splits {
            true => {
                "the first write to each huge page during a save splits it and copies 4 KiB, so that commands are slower for a while"
            }
            false => {
                "the first write to each huge page during a save copies 2 MiB, memory grows by as much, and latency spikes"
            }
        };
        let case = Case::sure(format!("{} has {huge} backed by THP: {cost}", program.title()))
            .info_if(splits)
            .seen(thp_file("enabled"), "", &policy)
            .seen(program.file("status"), "THP_enabled", 1)
            .seen_backing(program, PageKind::Thp, huge)
            .fix("in redis.conf: disable-thp yes (6.2 and later), then restart it")
            .plan("redis")
            .write_as("enabled", "madvise", |command| format!("or for the machine: {command}"));
        Ok(Some(case))
    })
}

/// Products whose vendors advise against `always`: how the names of their processes begin (15 letters), the vendor's words for what it asks for, and
/// where it says so.
const NOT_ALWAYS: [(&[&str], &str, &str, &str); 13] = [
    (
        &["hdbindexserver", "hdbnameserver"],
        "SAP HANA",
        "madvise, or never on older systems (SAP note 2131662)",
        "https://me.sap.com/notes/2131662",
    ),
    (
        &["ora_", "oracle_"],
        "Oracle Database",
        "madvise with UEK 7 and later, never with other kernels (its installation guides; PRVE-00024)",
        "https://docs.oracle.com/en/database/oracle/oracle-database/26/ladbi/restrictions-for-hugepages-and-transparent-hugepages-configurations.html",
    ),
    (
        &["clickhouse-serv"],
        "ClickHouse",
        "madvise",
        "https://clickhouse.com/docs/operations/tips",
    ),
    (
        &["splunkd"],
        "Splunk",
        "never",
        "https://docs.splunk.com/Documentation/Splunk/latest/ReleaseNotes/SplunkandTHP",
    ),
    (
        &["beam.smp", "memcached"],
        "Couchbase",
        "never",
        "https://docs.couchbase.com/server/current/install/thp-disable.html",
    ),
    (&["tikv-server"], "TiKV", "never", TIDB),
    (&["tidb-server"], "TiDB", "never", TIDB),
    (
        &["vertica"],
        "Vertica",
        "madvise or never",
        "https://www.vertica.com/docs/10.0.x/HTML/Content/Authoring/InstallationGuide/BeforeYouInstall/transparenthugepages.htm",
    ),
    (
        &["voltdb"],
        "VoltDB",
        "madvise or never",
        "https://docs.voltdb.com/AdminGuide/adminmemmgt.php",
    ),
    (
        &["memsqld"],
        "SingleStore",
        "never",
        "https://docs.singlestore.com/db/v8.9/reference/configuration-reference/cluster-configuration/system-requirements-and-recommendations",
    ),
    (
        &["ns-slapd"],
        "389 Directory Server",
        "never, or THP_DISABLE=1 for its service",
        "https://github.com/389ds/389-ds-base/issues/5954",
    ),
    (
        &["cockroach"],
        "CockroachDB",
        "madvise",
        "https://github.com/cockroachdb/cockroach/issues/142086",
    ),
    (
        &["doris_be"],
        "Apache Doris",
        "madvise or never",
        "https://github.com/apache/doris/issues/28122",
    ),
];

const TIDB: &str = "https://docs.pingcap.com/tidb/stable/tune-operating-system";

/// Is it a process of that product? Names that others have too need more to show it.
fn is_of(program: &Program, names: &[&str], product: &str) -> bool {
    let mut words = program.arguments.known().into_iter().flatten();
    names.iter().any(|name| program.pages.name.starts_with(name))
        && (product != "Couchbase" || words.any(|word| word.contains("couchbase")))
}

/// THP of its own: what its processes share would count once for each of them.
fn private_thp(program: &Program) -> Result<Bytes, Reason> {
    let areas = program.areas().unwrap_or_default();
    let own: Option<Vec<Bytes>> = areas.iter().map(|area| Some(area.counts()?.anon_huge)).collect();
    if let Some(own) = own.filter(|own| !own.is_empty()) {
        return Ok(own.into_iter().sum());
    }
    let segments = program.pages.segments.iter().filter(|segment| segment.page.is_none());
    let shared: Bytes = segments.map(|segment| segment.resident).sum();
    let private = known(&program.pages.rss)?.0.saturating_sub(shared.0);
    Ok(program.thp()?.min(Bytes(private)))
}

/// All processes of a product together: a database of many small ones has its memory in their sum.
pub(super) fn vendors(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    if policy != "always" {
        return Ok(Vec::new());
    }
    let all = programs(evidence)?;
    // On Red Hat's 7 and Amazon Linux 2 Vertica asks for `always` (its Installation Guide, S0312).
    let release = evidence.snapshot.kernel.release.known().map_or("", String::as_str);
    let exempt = |product: &str| product == "Vertica" && [".el7", ".amzn2"].iter().any(|of| release.contains(of));
    let cases = each(&NOT_ALWAYS, |(names, product, advice, link)| {
        let (mut own, mut unread) = (Vec::new(), None);
        for program in all.iter().filter(|program| is_of(program, names, product)) {
            match private_thp(program) {
                Ok(huge) => own.push((program, huge)),
                Err(reason) => unread = Some(reason),
            }
        }
        let sum: Bytes = own.iter().map(|(_, huge)| *huge).sum();
        if let Some(reason) = unread.filter(|_| sum < WORTH && !exempt(product)) {
            return Err(reason);
        }
        let largest = own.iter().max_by_key(|(_, huge)| *huge);
        let Some((largest, huge)) = largest.filter(|_| sum >= WORTH && !exempt(product)) else {
            return Ok(None);
        };
        let who = match own.len() {
            1 => format!("{} has", largest.title()),
            many => format!("{many} processes of {product} have"),
        };
        Ok(Some(
            Case::likely(format!(
                "{who} {sum} backed by THP under the policy `always`; the vendor of {product} asks for {advice}"
            ))
            .link(Some(*link))
            .seen(thp_file("enabled"), "", &policy)
            .seen_backing(largest, PageKind::Thp, *huge)
            .plan("thp=madvise")
            .write("enabled", "madvise")
            .otherwise("this kernel's policy offers no `madvise`: `never`"),
        ))
    })?;
    // One whose name could not be read may be of any product.
    match all.iter().find_map(|program| known(&program.kind).err()) {
        Some(reason) if cases.is_empty() => Err(reason),
        _ => Ok(cases),
    }
}

/// A product whose vendor keeps THP on and asks for `max_ptes_none` 0, where it runs (YugabyteDB's technical advisory 26440; MongoDB since 8.0, see D03).
pub(super) fn wants_no_empty_pages(evidence: &Evidence) -> Option<&'static str> {
    let mut all = evidence.programs.known()?.iter();
    all.find_map(|program| {
        let version = || program.details.as_ref()?.version.known().copied();
        match program.pages.name.as_str() {
            "yb-tserver" | "yb-master" => Some("YugabyteDB"),
            _ if program.is(Kind::Mongo) == Ok(true) && version()? >= (8, 0) => Some("MongoDB"),
            _ => None,
        }
    })
}

/// Less on huge pages shows nothing of a policy's effect.
const WORTH: Bytes = Bytes::gib(1);

pub(super) fn mongo(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    let is_arm = evidence
        .snapshot
        .cpu
        .vendor
        .known()
        .is_some_and(|vendor| vendor.starts_with("0x"));
    each(programs(evidence)?, |program| {
        if !program.is(Kind::Mongo)? || is_arm {
            return Ok(None);
        }
        let Some(details) = &program.details else {
            return Ok(None);
        };
        let version = *known(&details.version)?;
        if version >= (8, 0) {
            new_mongo(evidence, program, version, &policy)
        } else {
            Ok(old_mongo(program, version, &policy))
        }
    })
}

fn old_mongo(program: &Program, version: (u32, u32), policy: &str) -> Option<Case> {
    (policy == "always").then(|| {
        Case::likely(format!(
            "MongoDB {}.{} should run without THP and gets it everywhere: memory grows and latency varies",
            version.0, version.1
        ))
        .seen(thp_file("enabled"), "", policy)
        .seen(program.file("status"), "Name", &program.pages.name)
        .plan("thp=never")
        .write("enabled", "never")
        .fix("or MemoryTHP=disable in its unit (where Linux and systemd support it)")
    })
}

fn new_mongo(
    evidence: &Evidence,
    program: &Program,
    version: (u32, u32),
    policy: &str,
) -> Result<Option<Case>, Reason> {
    let thp = thp(evidence)?;
    let defrag = &known(&thp.defrag)?.chosen;
    let none = *known(&known(&thp.khugepaged)?.get("max_ptes_none"))?;
    if policy == "always" && defrag == "defer+madvise" && none == 0 {
        return Ok(None);
    }
    Ok(Some(
        Case::likely(format!(
            "MongoDB {}.{} is made for THP, and does not get it as its vendor asks",
            version.0, version.1
        ))
        .seen(thp_file("enabled"), "", policy)
        .seen(thp_file("defrag"), "", defrag)
        .seen(thp_file("khugepaged/max_ptes_none"), "", none)
        .seen(program.file("status"), "Name", &program.pages.name)
        .plan("thp=always,defrag=defer+madvise,khugepaged.max_ptes_none=0")
        .write("enabled", "always")
        .write("defrag", "defer+madvise")
        .write("khugepaged/max_ptes_none", "0")
        .fix_with(Need::Sysctl("vm.overcommit_memory"), "sysctl -w vm.overcommit_memory=1")
        .otherwise("its vendor's settings need a newer kernel"),
    ))
}
