//! ESX: what a large virtual machine can reserve, which pages back it, and what the host keeps free.

use model::Bytes;

use super::{SizeError, Sizing};

const VCF: &str = "VMware and Samsung, Modernizing EDA Infrastructure: Lessons from Samsung's VCF Deployment";
/// Sizes of memory to try.
const TRIES: u64 = 4;
const GIB: f64 = (1u64 << 30) as f64;

/// Cores that one virtual machine can have.
pub fn max_cores(cores: u64, reserved: f64) -> u64 {
    (cores as f64 - reserved).max(0.0).floor() as u64
}

/// `size esx-cpu`.
///
/// # Errors
/// When a number is not positive.
pub fn cpu(cores: u64, ghz: f64, reserved_mhz: f64) -> Result<Sizing, SizeError> {
    if !(ghz > 0.0 && ghz < 100.0) {
        let wanted = "the base frequency of a core, such as 2.99";
        return Err(SizeError::out_of_range("--ghz", ghz, wanted));
    }
    // Decimal, as the study counts.
    let mhz = ghz * 1000.0;
    let all = mhz * cores as f64;
    if !(0.0..=all).contains(&reserved_mhz) {
        let wanted = "resvMHz of the host's top group, at most cores x MHz";
        return Err(SizeError::out_of_range("--reserved-mhz", reserved_mhz, wanted));
    }
    let reserved = reserved_mhz / mhz;
    let most = max_cores(cores, reserved);
    let reservation = mhz * most as f64;
    let about = format!("CPU reservation of one large virtual machine on {cores} cores");
    let exactly = format!("{reserved_mhz} MHz / {mhz} MHz");
    let rounded = format!("{cores} - {reserved:.4}, rounded down");
    let left = format!("{all} MHz - {reservation} MHz - {reserved_mhz} MHz");
    Ok(Sizing::new(about, VCF)
        .step("mhz_per_core", format!("{ghz} GHz x 1000"), mhz, "MHz")
        .step("reserved_cores", exactly, reserved, "cores")
        .step("max_cores", rounded, most, "cores")
        .step("reservation", format!("{mhz} MHz x {most}"), reservation, "MHz")
        .step("left", left, all - reservation - reserved_mhz, "MHz")
        .trap("round only once, at the end: 4.00003 reserved cores are not 4.0")
        .trap("resvMHz is in the top row of `sched-stats -t groups` on the ESX shell"))
}

/// `size esx-cpu --vcpus`: the reservation that latency sensitivity high asks for.
pub fn latency_sensitive(vcpus: u64, smt: u64, ghz: f64) -> Sizing {
    // A virtual hyper-thread counts as its part of a core.
    let least = vcpus as f64 / smt.max(1) as f64 * ghz;
    let about = format!("least CPU reservation of {vcpus} vCPUs with latency sensitivity high");
    let how = format!("{vcpus} vCPUs / {smt} per core x {ghz} GHz");
    Sizing::new(about, "vSphere 8.0 Resource Management")
        .step("reservation", how, least, "GHz")
        .trap("latency sensitivity pins vCPUs; it does not turn on large pages")
}

/// `size esx-memory`: what can be reserved of `total` GB when ESX keeps `reserved`.
///
/// # Errors
/// When more is reserved than there is.
pub fn memory(total: u64, reserved: u64, step: u64) -> Result<Sizing, SizeError> {
    let most = total.checked_sub(reserved).filter(|_| total > 0);
    let wanted = "the memory that ESX keeps, less than --total";
    let most = most.ok_or_else(|| SizeError::out_of_range("--reserved", format!("{reserved} GB"), wanted))?;
    let share = reserved as f64 / total as f64 * 100.0;
    let about = format!("memory of one large virtual machine on a host of {total} GB");
    let mut sizing = Sizing::new(about, VCF)
        .step("max", format!("{total} GB - {reserved} GB"), most, "GB")
        .step("reserved_share", format!("{reserved} / {total} x 100"), share, "%");
    // Sizes to try until the machine powers on: one GB below the limit, then in steps.
    let first = most.saturating_sub(1);
    for nth in 0..TRIES {
        let Some(size) = first.checked_sub(nth.saturating_mul(step)) else {
            break;
        };
        let how = match nth {
            0 => format!("{most} - 1"),
            _ => format!("then {step} GB less"),
        };
        sizing = sizing.step(&format!("try_{}", nth + 1), how, size, "GB");
    }
    Ok(sizing
        .trap("the limit that is shown does not power on: overhead memory of the virtual machine comes on top")
        .trap(
            "1 GB pages need sched.mem.lpage.enable1GPage = \"TRUE\" and the whole memory reserved; \
             free 1 GB pages (`memstats -r buddy-stats`) are another limit",
        ))
}

/// `size esx-backing`.
pub fn backing(memory_gb: u64, pages_1g: u64, pages_2m: u64) -> Sizing {
    let backed = pages_1g as f64 + pages_2m as f64 * 2.0 / 1024.0;
    let share = pages_1g as f64 / memory_gb.max(1) as f64 * 100.0;
    let verdict = match pages_1g == memory_gb && pages_2m == 0 {
        true => "optimal: all of it is on 1 GB pages",
        false => "suboptimal: not all of it is on 1 GB pages",
    };
    let (counts, missing) = (
        format!("{pages_1g} x 1 GB + {pages_2m} x 2 MB / 1024"),
        memory_gb as f64 - backed,
    );
    Sizing::new(
        format!("backing of a virtual machine of {memory_gb} GB: {verdict}"),
        VCF,
    )
    .step("backed", counts, backed, "GB")
    .step("missing", format!("{memory_gb} GB - {backed} GB"), missing, "GB")
    .step("share_1g", format!("{pages_1g} / {memory_gb} x 100"), share, "%")
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
        let how = format!("{percent} % of minFree: {what}");
        sizing = sizing.step(name, how, mib(least * percent / 100.0), "MiB");
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
        let wanted = "the part of the pages in use, from 0 to 1";
        return Err(SizeError::out_of_range("--active", active, wanted));
    }
    if !(0.0..1.0).contains(&tax) {
        return Err(SizeError::out_of_range("--tax", tax, "from 0 to below 1; ESX has 0.75"));
    }
    let cost = 1.0 / (1.0 - tax);
    let source = "C. Waldspurger, Memory Resource Management in VMware ESX Server (OSDI 2002), section 5.2";
    let how = format!("{shares} / ({pages} x ({active} + {cost} x {:.4}))", 1.0 - active);
    let each = shares_per_page(shares, pages, active, tax);
    Ok(Sizing::new("idle memory tax", source)
        .step("idle_cost", format!("1 / (1 - {tax})"), cost, "")
        .step("shares_per_page", how, each, "")
        .trap("memory is taken from the machine with the smallest value first: idle large pages are expensive to hold"))
}
