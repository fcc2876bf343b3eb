//! Products whose vendors ask for a THP policy.

use host::snapshot::Snapshot;
use model::{Bytes, PageKind};
use programs::{Evidence, Kind, Program};

use super::databases::is_old_mongo;
use crate::facts::{each, known, policy, programs, thp_file};
use crate::rule::{Answer, Case, Reason};

/// What a vendor asks for.
struct Product {
    title: &'static str,
    /// How the names of its processes begin (15 letters).
    names: &'static [&'static str],
    /// A part of the command line, where other programs have such names too.
    sign: &'static str,
    /// The vendor's words.
    asks: &'static str,
    /// What does for its service alone, if anything does.
    alone: &'static str,
    /// Where it says so.
    link: &'static str,
}

impl Product {
    const fn new(title: &'static str, names: &'static [&'static str], asks: &'static str, link: &'static str) -> Self {
        Self {
            title,
            names,
            sign: "",
            asks,
            alone: "",
            link,
        }
    }

    const fn signed(self, sign: &'static str) -> Self {
        Self { sign, ..self }
    }

    const fn alone(self, alone: &'static str) -> Self {
        Self { alone, ..self }
    }

    /// Does its vendor advise against `always` on this system?
    fn advises(&self, snapshot: &Snapshot) -> bool {
        self.title != "Vertica" || !is_old(snapshot)
    }

    /// Is it a process of this product?
    fn has(&self, program: &Program) -> Result<bool, Reason> {
        let is_named = self.names.iter().any(|name| program.pages.name.starts_with(name));
        if !is_named || self.sign.is_empty() {
            return Ok(is_named);
        }
        Ok(known(&program.arguments)?.iter().any(|word| word.contains(self.sign)))
    }
}

const TIDB: &str = "https://docs.pingcap.com/tidb/stable/tune-operating-system";
const VERTICA: &str = "https://www.vertica.com/docs/10.0.x/HTML/Content/Authoring/InstallationGuide/BeforeYouInstall/transparenthugepages.htm";

/// Those whose vendors advise against `always`.
const NOT_ALWAYS: [Product; 17] = [
    Product::new(
        "SAP HANA",
        &["hdbindexserver", "hdbnameserver"],
        "madvise, or never on older systems (SAP note 2131662)",
        "https://me.sap.com/notes/2131662",
    ),
    Product::new(
        "Oracle Database",
        &["ora_", "oracle_"],
        "madvise with UEK 7 and later, never with other kernels (its installation guides; PRVE-00024)",
        "https://docs.oracle.com/en/database/oracle/oracle-database/26/ladbi/restrictions-for-hugepages-and-transparent-hugepages-configurations.html",
    ),
    Product::new(
        "ClickHouse",
        &["clickhouse-serv", "clickhouse-keep"],
        "madvise",
        "https://clickhouse.com/docs/operations/tips",
    ),
    Product::new(
        "Splunk",
        &["splunkd"],
        "never",
        "https://docs.splunk.com/Documentation/Splunk/latest/ReleaseNotes/SplunkandTHP",
    ),
    Product::new(
        "Couchbase",
        &["beam.smp", "memcached"],
        "never",
        "https://docs.couchbase.com/server/current/install/thp-disable.html",
    )
    .signed("couchbase"),
    Product::new("TiKV", &["tikv-server"], "never", TIDB),
    Product::new("TiDB", &["tidb-server"], "never", TIDB),
    Product::new("Vertica", &["vertica"], "madvise or never", VERTICA),
    Product::new(
        "VoltDB",
        &["voltdb"],
        "madvise or never",
        "https://docs.voltdb.com/AdminGuide/adminmemmgt.php",
    ),
    Product::new(
        "SingleStore",
        &["memsqld"],
        "never",
        "https://docs.singlestore.com/db/v8.9/reference/configuration-reference/cluster-configuration/system-requirements-and-recommendations",
    ),
    Product::new(
        "389 Directory Server",
        &["ns-slapd"],
        "never",
        "https://github.com/389ds/389-ds-base/issues/5954",
    )
    .alone("THP_DISABLE=1"),
    Product::new(
        "CockroachDB",
        &["cockroach"],
        "madvise",
        "https://github.com/cockroachdb/cockroach/issues/142086",
    ),
    Product::new(
        "Apache Doris",
        &["doris_be"],
        "madvise or never",
        "https://github.com/apache/doris/issues/28122",
    ),
    Product::new(
        "ArangoDB",
        &["arangod"],
        "madvise or never",
        "https://github.com/arangodb/arangodb/issues/3253",
    ),
    Product::new(
        "Aerospike",
        &["asd"],
        "never",
        "https://aerospike.com/docs/database/learn/best-practices",
    )
    .signed("aerospike"),
    Product::new("NuoDB", &["nuodb"], "madvise or never", NUODB),
    Product::new(
        "Varnish",
        &["cache-main", "varnishd"],
        "madvise",
        "https://github.com/varnishcache/varnish-cache/issues/3511",
    )
    .signed("varnishd")
    .alone("MALLOC_CONF=thp:never (jemalloc 5.2 and later)"),
];

pub(super) const NUODB: &str = "http://doc.nuodb.com/Latest/Content/Note-About-%20Using-Transparent-Huge-Pages.htm";

/// One whose vendor asks to keep THP on, and the policies under which it is.
type Kept = (Product, &'static [&'static str]);

const KEPT_ON: [Kept; 2] = [
    (
        Product::new(
            "SQL Server",
            &["sqlservr"],
            "always (madvise where memory is short); the profile mssql of tuned sets it",
            "https://learn.microsoft.com/en-us/sql/linux/sql-server-linux-performance-best-practices",
        ),
        &["always", "madvise"],
    ),
    (Product::new(OLD_VERTICA, &["vertica"], "always", VERTICA), &["always"]),
];

const OLD_VERTICA: &str = "Vertica on Red Hat's 7 and Amazon Linux 2";

/// Is it a system on which Vertica asks for `always` (its Installation Guide, S0312)?
fn is_old(snapshot: &Snapshot) -> bool {
    let release = snapshot.kernel.release.known().map_or("", String::as_str);
    [".el7", ".amzn2"].iter().any(|of| release.contains(of))
}

/// The product of a program whose vendor advises against `always`, and what it asks for.
pub(super) fn asked_by_vendor(snapshot: &Snapshot, program: &Program) -> Option<(&'static str, &'static str)> {
    let mut products = NOT_ALWAYS.iter().filter(|product| product.advises(snapshot));
    let product = products.find(|product| product.has(program) == Ok(true))?;
    Some((product.title, product.asks))
}

/// A program that runs and is not to have THP by the policy `always`; with `or_unknown` also one that may be such a program.
pub(super) fn against_always(evidence: &Evidence, or_unknown: bool) -> Option<&Program> {
    let is_against = |program: &Program| -> Result<bool, Reason> {
        for product in NOT_ALWAYS.iter().filter(|product| product.advises(&evidence.snapshot)) {
            if product.has(program)? {
                return Ok(true);
            }
        }
        Ok(program.is(Kind::Redis)? || is_old_mongo(program)?)
    };
    // What has THP switched off for itself gets none by a policy.
    let takes = |program: &&Program| program.pages.thp_enabled.known() != Some(&false);
    let mut all = evidence.programs.known()?.iter().filter(takes);
    all.find(|program| is_against(program).unwrap_or(or_unknown))
}

/// Less on huge pages, or on base pages, shows nothing of a policy's effect.
const WORTH: Bytes = Bytes::gib(1);

pub(super) fn vendors(evidence: &Evidence) -> Answer {
    let policy = policy(evidence)?;
    let is_off = |(product, good): &&Kept| {
        let is_meant = product.title != OLD_VERTICA || is_old(&evidence.snapshot);
        is_meant && !good.contains(&&*policy)
    };
    let off: Vec<&Kept> = KEPT_ON.iter().filter(is_off).collect();
    let cases = match &*policy {
        "always" => not_always(evidence)?,
        _ if off.is_empty() => return Ok(Vec::new()),
        _ => kept_on(evidence, &policy, &off)?,
    };
    // One whose name could not be read may be of any product.
    match programs(evidence)?
        .iter()
        .find_map(|program| known(&program.kind).err())
    {
        Some(reason) if cases.is_empty() => Err(reason),
        _ => Ok(cases),
    }
}

/// THP of its own: what its processes share would count once for each of them.
pub(super) fn private_thp(program: &Program) -> Result<Bytes, Reason> {
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
fn not_always(evidence: &Evidence) -> Answer {
    let all = programs(evidence)?;
    each(&NOT_ALWAYS, |product| {
        if !product.advises(&evidence.snapshot) {
            return Ok(None);
        }
        let (mut own, mut unread) = (Vec::new(), None);
        for program in all {
            match product
                .has(program)
                .and_then(|is_it| is_it.then(|| private_thp(program)).transpose())
            {
                Ok(huge) => own.extend(huge.map(|huge| (program, huge))),
                Err(reason) => unread = Some(reason),
            }
        }
        let sum: Bytes = own.iter().map(|(_, huge)| *huge).sum();
        if let Some(reason) = unread.filter(|_| sum < WORTH) {
            return Err(reason);
        }
        let largest = own.iter().max_by_key(|(_, huge)| *huge);
        let Some((largest, huge)) = largest.filter(|_| sum >= WORTH) else {
            return Ok(None);
        };
        let who = match own.len() {
            1 => format!("{} has", largest.title()),
            many => format!("{many} processes of {} have", product.title),
        };
        Ok(Some(
            Case::likely(format!(
                "{who} {sum} backed by THP under the policy `always`; the vendor of {} asks for {}",
                product.title, product.asks
            ))
            .link(Some(product.link))
            .seen(thp_file("enabled"), "", "always")
            .seen_backing(largest, PageKind::Thp, *huge)
            .plan("thp=madvise")
            .write("enabled", "madvise")
            .fix_if(
                !product.alone.is_empty(),
                format!("or in the environment of its service alone: {}", product.alone),
            )
            .otherwise("this kernel's policy offers no `madvise`: `never`"),
        ))
    })
}

fn kept_on(evidence: &Evidence, policy: &str, off: &[&Kept]) -> Answer {
    let all = programs(evidence)?;
    each(off, |(product, good)| {
        let mut own = Vec::new();
        for program in all {
            if product.has(program)? {
                own.push((program, *known(&program.pages.rss)?));
            }
        }
        let largest = own.into_iter().max_by_key(|(_, resident)| *resident);
        let Some((program, resident)) = largest.filter(|(_, resident)| *resident >= WORTH) else {
            return Ok(None);
        };
        let case = Case::likely(format!(
            "{} has {resident} of memory under the policy `{policy}`; the vendor of {} asks for {}",
            program.title(),
            product.title,
            product.asks
        ))
        .link(Some(product.link))
        .seen(thp_file("enabled"), "", policy)
        .seen(program.file("status"), "VmRSS", resident);
        let does_without = good.contains(&"madvise");
        Ok(Some(match against_always(evidence, does_without) {
            None => case.plan("thp=always").write("enabled", "always"),
            Some(other) if does_without => case.plan("thp=madvise").write_as("enabled", "madvise", |command| {
                format!("{command} (not `always`, for the sake of {})", other.title())
            }),
            Some(other) => case.fix(apart_from(other)),
        }))
    })
}

/// In place of the policy `always`.
pub(super) fn apart_from(other: &Program) -> String {
    format!(
        "run it apart from {}, which is not to have the policy `always`, or leave the policy as it is",
        other.title()
    )
}
