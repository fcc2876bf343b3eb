//! Publications and measurements beside what is simulated: minFree, KSM over transparent huge pages, and the study of ESX 3.5.

use model::{Bytes, names};

use super::engine::SECOND;
use super::result::{HostMemory, Outcome, simulate};
use super::scenario::WHOLE;
use super::states::States;
use super::{Content, Host, Khugepaged, Ksm, Policy, Scenario, Vm};
use crate::paging::{Preset as Study, preset as study};
use crate::size::esx::{min_free, shares_per_page};
use crate::size::ksm::scan_rate;
use translation::study::{Published, Simulation};

names! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Preset, "a preset" {
        /// The memory that ESX keeps free, its states, and the idle memory tax.
        Minfree = "minfree",
        /// Same-page merging over transparent huge pages, as measured on Linux 6.18.
        KsmThp = "ksm-thp",
        /// VMware's study of huge pages on ESX Server 3.5.
        Esx35LargePages = "esx35-large-pages",
    }
}

/// Simulates it.
///
/// # Errors
/// None but a mistake in what it is made of.
pub fn preset(preset: Preset, seed: u64) -> Result<HostMemory, String> {
    let result = match preset {
        Preset::Minfree => HostMemory {
            published: min_free_rows(),
            ..HostMemory::default()
        },
        Preset::KsmThp => ksm_thp(seed)?,
        Preset::Esx35LargePages => esx35(seed)?,
    };
    Ok(HostMemory {
        input: preset.name().to_owned(),
        ..result
    })
}

const OSDI: &str = "C. Waldspurger, Memory Resource Management in VMware ESX Server (OSDI 2002)";
const TIERS: &str = "running-system.com, memory states";

/// What ESX keeps free, by the sources that give numbers.
fn min_free_rows() -> Vec<Published> {
    const BITS: &str = "vmwarebits.com, Mem.MemMinFreePct";
    let of = |source, what: &str, published, memory| {
        let mib = min_free(memory) / f64::from(1 << 20);
        Published::exact(source, format!("minFree of {what}"), "MB", &[published], mib)
    };
    let quoted = "28 GB (its 899 is quoted widely; the tiers add up to 901.12)";
    let thousands = "100 GB (it counts a GB of the rest as 1000 MB)";
    let mut rows = vec![
        of(BITS, "130607 MB", 1920.47, Bytes::mib(130_607)),
        of(TIERS, quoted, 899.0, Bytes::gib(28)),
        of(TIERS, thousands, 1619.0, Bytes::gib(100)),
    ];
    let names = ["high", "clear", "soft", "hard", "low"];
    let esx6 = names.into_iter().zip([400.0, 100.0, 64.0, 32.0, 16.0]);
    let esx2002 = names.into_iter().skip(2).zip([4.0, 2.0, 1.0]);
    rows.extend(edges(TIERS, States::Esx6, "% of minFree", esx6));
    rows.extend(edges(OSDI, States::Esx2002, "% of memory", esx2002));
    // An example of the published formula: the numbers are ours.
    rows.extend([1.0, 0.5, 0.0].map(|active| {
        let what = format!("1000 shares, 250 pages, {:.0} % active, tax 75 %", active * 100.0);
        let each = shares_per_page(1000.0, 250.0, active, 0.75);
        Published::exact(OSDI, what, "shares per page", &[], each)
    }));
    rows
}

/// Where each state of free memory ends, with what is published for it.
fn edges<'a>(
    source: &'a str,
    states: States,
    unit: &'a str,
    published: impl Iterator<Item = (&'a str, f64)> + 'a,
) -> impl Iterator<Item = Published> + 'a {
    // Large, so that whole pages do not show.
    let memory = Bytes(1 << 45);
    states
        .edges(memory)
        .into_iter()
        .zip(published)
        .map(move |(edge, (name, share))| {
            let simulated = edge.below as f64 * 4096.0 / states.unit(memory) * 100.0;
            let what = format!("{}: edge of {name}", states.name());
            Published::exact(source, what, unit, &[share], simulated)
        })
}

fn measured(what: impl Into<String>, unit: &str, published: &[f64], simulated: f64) -> Published {
    const SOURCE: &str = "measured on Linux 6.18: 2 x 512 MiB on THP, KSM at 5000 pages / 10 ms";
    Published::exact(SOURCE, what, unit, published, simulated)
}

/// Two machines of 512 MiB backed by huge pages, with so many equal pages in each region.
fn two_equal(equal: u32, seconds: u64, khugepaged: Khugepaged, seed: u64) -> Scenario {
    let mut vm = Vm::new("region", Bytes::mib(512));
    vm.touch = 1 << 24;
    vm.active = WHOLE;
    vm.content = Content {
        zero: 0,
        common: equal * (WHOLE / 512),
        volatile: 0,
        clustered: 0,
    };
    let ksm = Ksm {
        pages_to_scan: 5000,
        sleep_millisecs: 10,
        ..Ksm::default()
    };
    let host = Host {
        memory: Bytes::gib(4),
        used: Bytes::mib(512),
        large_pages: true,
        fragmented: 0,
    };
    Scenario {
        policies: vec![Policy::Ksm],
        ksm,
        khugepaged,
        duration_ns: seconds * SECOND,
        step_ns: SECOND / 10,
        ..Scenario::new(host, vec![vm.clone(), vm], seed)
    }
}

fn only(scenario: &Scenario) -> Result<Outcome, String> {
    let mut outcomes = simulate(scenario)?.outcomes;
    outcomes.pop().ok_or_else(|| "no policy".to_owned())
}

/// Splits and savings without khugepaged, and what it makes of them within an hour.
fn ksm_thp(seed: u64) -> Result<HostMemory, String> {
    let off = Khugepaged {
        pages_to_scan: 0,
        ..Khugepaged::default()
    };
    let mut rows = Vec::new();
    for (name, equal, saved) in [("all", 512, 1024.0), ("10 %", 51, 102.0), ("1 in 512", 1, 2.0)] {
        let totals = only(&two_equal(equal, 10, off, seed))?.totals;
        let each = totals.most_saved.0 as f64 / 1024.0 / totals.broken.max(1) as f64;
        let split = format!("{name} pages equal: THPs split of 512");
        rows.push(measured(split, "THPs", &[512.0], totals.broken as f64));
        let saves = format!("{name} pages equal: saved for each split THP");
        rows.push(measured(saves, "KiB", &[saved], each));
    }
    rows.extend(zero_rows(off, seed)?);
    let mut shown = None;
    for equal in [1, 51, 256, 257, 512] {
        let scenario = two_equal(equal, 3600, Khugepaged::default(), seed);
        let mut result = simulate(&scenario)?;
        let collapsed = result.outcomes.first().map_or(0, |outcome| outcome.totals.collapsed);
        let is_below = equal <= scenario.khugepaged.max_ptes_shared;
        let expected = if is_below { "again and again" } else { "never again" };
        let what = format!("{equal} of 512 pages equal: collapsed {expected} (max_ptes_shared 256)");
        let published: &[f64] = if is_below { &[] } else { &[0.0] };
        rows.push(measured(what, "THPs an hour", published, collapsed as f64));
        result.published = Vec::new();
        shown.get_or_insert(result);
    }
    let usual = Ksm::default();
    let rate = scan_rate(u64::from(usual.pages_to_scan), f64::from(usual.sleep_millisecs));
    rows.push(measured("default rate of the scan", "MiB/s", &[19.5], rate));
    let pages = Bytes::gib(64).0 / super::PAGE;
    let hours = 2.0 * pages as f64 * usual.each_page() as f64 / SECOND as f64 / 3600.0;
    rows.push(measured("64 GiB at that rate, seen twice", "h", &[2.0], hours));
    Ok(HostMemory {
        published: rows,
        ..shown.unwrap_or_default()
    })
}

/// Huge pages of zeros, with the kernel's page of zeros and without it.
fn zero_rows(off: Khugepaged, seed: u64) -> Result<Vec<Published>, String> {
    let mut rows = Vec::new();
    for (use_zero_pages, published) in [(true, &[100.0][..]), (false, &[])] {
        let mut scenario = two_equal(0, 10, off, seed);
        scenario.ksm.use_zero_pages = use_zero_pages;
        scenario.vms.iter_mut().for_each(|vm| vm.content.zero = WHOLE);
        let freed = only(&scenario)?.totals.most_saved.0 as f64 / Bytes::gib(1).0 as f64 * 100.0;
        let expected = if use_zero_pages { "all at once" } else { "hardly any" };
        let what = format!(
            "zeros, use_zero_pages = {}: freed in 10 s, {expected}",
            u8::from(use_zero_pages)
        );
        rows.push(Published {
            // That KSM frees no zeros otherwise was put into the model after it had been seen.
            is_fitted: !use_zero_pages,
            ..measured(what, "%", published, freed)
        });
    }
    Ok(rows)
}

/// The host of the study: does its one machine of 16 GB get huge pages, and what are they worth?
fn esx35(seed: u64) -> Result<HostMemory, String> {
    const SOURCE: &str = "VMware, Large Page Performance: ESX Server 3.5 and ESX Server 3i v3.5 (2008)";
    let translated = study(Study::Esx35LargePages, 1_000_000, seed, &|_, _| {}).map_err(|error| error.to_string())?;
    let mut rows = translated.published.clone();
    let mut shown = None;
    for (what, host, machine) in [
        ("as it comes", true, true),
        ("Mem.AllocGuestLargePage = 0", false, true),
        ("monitor_control.disable_mmu_largepages = TRUE", true, false),
    ] {
        let result = simulate(&study_host(host, machine, seed))?;
        let last = result.outcomes.first().and_then(|outcome| outcome.vms.first());
        let large = last.and_then(|vm| vm.amounts.large_part()).unwrap_or(0.0);
        let backed = format!("{what}: backed by huge pages");
        let gain = format!("{what}: SPECjbb2005, 8 GB heap");
        rows.push(Published::exact(SOURCE, backed, "% of the VM", &[], large * 100.0));
        rows.push(Published::exact(
            SOURCE,
            gain,
            "% more",
            &[],
            partly(&translated, large),
        ));
        shown.get_or_insert(result);
    }
    Ok(HostMemory {
        published: rows,
        ..shown.unwrap_or_default()
    })
}

/// Its host and machine for 20 minutes, each with its switch for huge pages.
fn study_host(host: bool, machine: bool, seed: u64) -> Scenario {
    let vm = Vm {
        large_pages: machine,
        vcpus: 4,
        active: WHOLE / 2,
        ..Vm::new("SPECjbb2005", Bytes::gib(16))
    };
    let host = Host {
        memory: Bytes::gib(32),
        used: Bytes::gib(1),
        large_pages: host,
        fragmented: 0,
    };
    Scenario {
        policies: vec![Policy::NeverBreak],
        states: States::Esx2002,
        duration_ns: 1200 * SECOND,
        ..Scenario::new(host, vec![vm], seed)
    }
}

/// What huge pages behind a part of the largest heap are worth, in per cent. The last two cases are that heap, on base pages and on huge ones.
fn partly(translated: &Simulation, large: f64) -> f64 {
    let other = translated.published.first().map_or(0.0, |row| row.simulated.middle);
    let [.., base, huge] = &translated.cases[..] else {
        return 0.0;
    };
    let (base, huge) = (base.cycles.middle(), huge.cycles.middle());
    let part = huge * large + base * (1.0 - large);
    ((base + other) / (part + other) - 1.0) * 100.0
}
