//! ESX: what a large virtual machine can reserve, which pages back it, and what the host keeps free.

use model::Bytes;

use super::{SizeError, Sizing};

const VCF: &str = "VMware's study of memory latency for EDA on VMware Cloud Foundation";
const GIB: f64 = (1u64 << 30) as f64;

/// MHz of one core, decimal as the study counts.
pub fn mhz(ghz: f64) -> f64 {
    ghz * 1000.0
}

/// Cores that the host keeps for itself, exactly: rounding comes after the next step only.
pub fn reserved_cores(reserved_mhz: f64, ghz: f64) -> f64 {
    reserved_mhz / mhz(ghz)
}

/// Cores that one virtual machine can have.
pub fn max_cores(cores: u64, reserved: f64) -> u64 {
    (cores as f64 - reserved).max(0.0).floor() as u64
}

/// The reservation for so many cores, in MHz.
pub fn reservation_mhz(ghz: f64, cores: u64) -> f64 {
    mhz(ghz) * cores as f64
}

/// The least CPU reservation with latency sensitivity high, in GHz: a virtual hyper-thread counts as its part of a core.
pub fn least_reservation_ghz(vcpus: u64, smt: u64, ghz: f64) -> f64 {
    vcpus as f64 / smt.max(1) as f64 * ghz
}

/// `size esx-cpu`.
///
/// # Errors
/// When a number is not positive.
pub fn cpu(cores: u64, ghz: f64, reserved_mhz: f64) -> Result<Sizing, SizeError> {
    if !(ghz > 0.0 && ghz < 100.0) {
        return Err(SizeError::out_of_range(
            "--ghz",
            ghz,
            "the base frequency of a core, such as 2.99",
        ));
    }
    if !(reserved_mhz >= 0.0 && reserved_mhz <= mhz(ghz) * cores as f64) {
        let wanted = "resvMHz of the host's top group, at most cores x MHz";
        return Err(SizeError::out_of_range("--reserved-mhz", reserved_mhz, wanted));
    }
    let reserved = reserved_cores(reserved_mhz, ghz);
    let most = max_cores(cores, reserved);
    let reservation = reservation_mhz(ghz, most);
    let all = mhz(ghz) * cores as f64;
    Ok(Sizing::new(
        format!("CPU reservation of one large virtual machine on {cores} cores"),
        VCF,
    )
    .step("mhz_per_core", format!("{ghz} GHz x 1000"), mhz(ghz), "MHz")
    .step(
        "reserved_cores",
        format!("{reserved_mhz} MHz / {} MHz", mhz(ghz)),
        reserved,
        "cores",
    )
    .step(
        "max_cores",
        format!("{cores} - {reserved:.4}, rounded down"),
        most,
        "cores",
    )
    .step("reservation", format!("{} MHz x {most}", mhz(ghz)), reservation, "MHz")
    .step(
        "left",
        format!("{all} MHz - {reservation} MHz - {reserved_mhz} MHz"),
        all - reservation - reserved_mhz,
        "MHz",
    )
    .trap("round only once, at the end: 4.00003 reserved cores are not 4.0")
    .trap("resvMHz is in the top row of `sched-stats -t groups` on the ESX shell"))
}

/// `size esx-cpu --vcpus`: the reservation that latency sensitivity high asks for.
pub fn latency_sensitive(vcpus: u64, smt: u64, ghz: f64) -> Sizing {
    let least = least_reservation_ghz(vcpus, smt, ghz);
    Sizing::new(
        format!("least CPU reservation of {vcpus} vCPUs with latency sensitivity high"),
        "vSphere 8.0 Resource Management",
    )
    .step(
        "reservation",
        format!("{vcpus} vCPUs / {smt} per core x {ghz} GHz"),
        least,
        "GHz",
    )
    .trap("latency sensitivity pins vCPUs; it does not turn on large pages")
}

/// Sizes to try, one after the other, until the machine powers on: one GB below the limit, then in steps of ten.
pub fn memory_search(most: u64, step: u64, tries: usize) -> Vec<u64> {
    let first = most.saturating_sub(1);
    (0..tries as u64)
        .map_while(|nth| first.checked_sub(nth.saturating_mul(step)))
        .collect()
}

/// `size esx-memory`: what can be reserved of `total` GB when ESX keeps `reserved`.
///
/// # Errors
/// When more is reserved than there is.
pub fn memory(total: u64, reserved: u64, step: u64) -> Result<Sizing, SizeError> {
    let most = total.checked_sub(reserved).filter(|_| total > 0);
    let wanted = "the memory that ESX keeps, less than --total";
    let most = most.ok_or_else(|| SizeError::out_of_range("--reserved", format!("{reserved} GB"), wanted))?;
    let tries = memory_search(most, step, 4);
    let mut sizing = Sizing::new(
        format!("memory of one large virtual machine on a host of {total} GB"),
        VCF,
    )
    .step("max", format!("{total} GB - {reserved} GB"), most, "GB")
    .step(
        "reserved_share",
        format!("{reserved} / {total} x 100"),
        reserved as f64 / total as f64 * 100.0,
        "%",
    );
    for (nth, size) in (1..).zip(tries) {
        let how = if nth == 1 {
            format!("{most} - 1")
        } else {
            format!("then {step} GB less")
        };
        sizing = sizing.step(&format!("try_{nth}"), how, size, "GB");
    }
    Ok(sizing
        .trap("the limit that is shown does not power on: overhead memory of the virtual machine comes on top")
        .trap(
            "1 GB pages need sched.mem.lpage.enable1GPage = \"TRUE\" and the whole memory reserved; \
             free 1 GB pages (`memstats -r buddy-stats`) are another limit",
        ))
}

/// How well 1 GB pages back a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backing {
    /// GB behind the two counts.
    pub backed_gb: f64,
    /// GB that neither count accounts for.
    pub missing_gb: f64,
    /// Per cent of the memory on 1 GB pages.
    pub percent_1g: f64,
    /// Is all of it on 1 GB pages?
    pub optimal: bool,
}

impl Backing {
    /// From the two counts that ESX shows for a virtual machine of `memory_gb`.
    pub fn new(memory_gb: u64, pages_1g: u64, pages_2m: u64) -> Self {
        let backed_gb = pages_1g as f64 + pages_2m as f64 * 2.0 / 1024.0;
        Self {
            backed_gb,
            missing_gb: memory_gb as f64 - backed_gb,
            percent_1g: pages_1g as f64 / memory_gb.max(1) as f64 * 100.0,
            optimal: pages_1g == memory_gb && pages_2m == 0,
        }
    }
}

/// `size esx-backing`.
pub fn backing(memory_gb: u64, pages_1g: u64, pages_2m: u64) -> Sizing {
    let backing = Backing::new(memory_gb, pages_1g, pages_2m);
    let verdict = if backing.optimal {
        "optimal: all of it is on 1 GB pages"
    } else {
        "suboptimal: not all of it is on 1 GB pages"
    };
    Sizing::new(
        format!("backing of a virtual machine of {memory_gb} GB: {verdict}"),
        VCF,
    )
    .step(
        "backed",
        format!("{pages_1g} x 1 GB + {pages_2m} x 2 MB / 1024"),
        backing.backed_gb,
        "GB",
    )
    .step(
        "missing",
        format!("{memory_gb} GB - {} GB", backing.backed_gb),
        backing.missing_gb,
        "GB",
    )
    .step(
        "share_1g",
        format!("{pages_1g} / {memory_gb} x 100"),
        backing.percent_1g,
        "%",
    )
    .trap("the counts are in `vsish`, /memory/lpage/vmLPage/WORLD, while the machine runs")
    .trap("1 GB pages are given as far as they are there: a machine that powers on may still be on smaller ones")
}

/// Tiers of the memory that ESX keeps free: per cent of so many GB; the last one is the rest.
const TIERS: [(f64, u64); 4] = [(6.0, 4), (4.0, 8), (2.0, 16), (1.0, u64::MAX >> 30)];

/// minFree of ESXi 5 and later for so much memory, in bytes: a sliding share.
pub fn min_free(memory: Bytes) -> f64 {
    tiers(memory)
        .iter()
        .map(|(percent, bytes)| percent / 100.0 * bytes)
        .sum()
}

fn tiers(memory: Bytes) -> Vec<(f64, f64)> {
    let mut left = memory.0;
    let tier = |(percent, gib): (f64, u64)| {
        let part = left.min(gib << 30);
        left -= part;
        (percent, part as f64)
    };
    TIERS.into_iter().map(tier).collect()
}

/// Edges of the memory states of ESXi 6 and later, in per cent of minFree, and what happens below each.
const STATES: [(&str, f64, &str); 5] = [
    (
        "high",
        400.0,
        "below it large pages are broken up for sharing at the next scan",
    ),
    (
        "clear",
        100.0,
        "below it large pages are broken up, and sharing starts at once",
    ),
    ("soft", 64.0, "below it memory is taken by ballooning"),
    ("hard", 32.0, "below it by compression and swapping"),
    ("low", 16.0, "below it allocations block as well"),
];

/// `size esx-minfree`.
pub fn min_free_sizing(memory: Bytes) -> Sizing {
    let mib = |bytes: f64| bytes / (1u64 << 20) as f64;
    let least = min_free(memory);
    let source = "vmwarebits.com (Mem.MemMinFreePct); states: D. Epping, running-system.com";
    let mut sizing = Sizing::new(format!("minFree of an ESX host with {memory}"), source);
    for (percent, bytes) in tiers(memory).into_iter().filter(|(_, bytes)| *bytes > 0.0) {
        let how = format!("{percent} % of {:.3} GiB", bytes / GIB);
        sizing = sizing.step(&format!("tier_{percent}"), how, mib(percent / 100.0 * bytes), "MiB");
    }
    sizing = sizing.step("min_free", "the sum", mib(least), "MiB");
    for (name, percent, what) in STATES {
        sizing = sizing.step(
            name,
            format!("{percent} % of minFree: {what}"),
            mib(least * percent / 100.0),
            "MiB",
        );
    }
    sizing
        .trap("the 899 MB for the first 28 GB that is often quoted is 901.12 MB: the sum of the tiers")
        .trap("a host that stays below the high edge breaks large pages: leave four times minFree free to keep them")
}

/// Adjusted shares per page: the client with the least is taken from first.
pub fn shares_per_page(shares: f64, pages: f64, active: f64, tax: f64) -> f64 {
    let cost = 1.0 / (1.0 - tax);
    shares / (pages * (active + cost * (1.0 - active)))
}

/// `size idle-tax`.
///
/// # Errors
/// When a share is not from 0 to 1, or there are no pages.
pub fn idle_tax(shares: f64, pages: f64, active: f64, tax: f64) -> Result<Sizing, SizeError> {
    if !(pages > 0.0 && shares >= 0.0) {
        return Err(SizeError::out_of_range("--pages", pages, "a number of pages above 0"));
    }
    if !(0.0..=1.0).contains(&active) {
        return Err(SizeError::out_of_range(
            "--active",
            active,
            "the part of the pages in use, from 0 to 1",
        ));
    }
    if !(0.0..1.0).contains(&tax) {
        return Err(SizeError::out_of_range("--tax", tax, "from 0 to below 1; ESX has 0.75"));
    }
    let cost = 1.0 / (1.0 - tax);
    Ok(Sizing::new(
        "idle memory tax",
        "C. Waldspurger, Memory Resource Management in VMware ESX Server (OSDI 2002), section 5.2",
    )
    .step("idle_cost", format!("1 / (1 - {tax})"), cost, "")
    .step(
        "shares_per_page",
        format!("{shares} / ({pages} x ({active} + {cost} x {:.4}))", 1.0 - active),
        shares_per_page(shares, pages, active, tax),
        "",
    )
    .trap("memory is taken from the machine with the smallest value first: idle large pages are expensive to hold"))
}
