//! Scenarios as TOML files; a mistake in one is named with its line and with what is expected.

use model::Bytes;
use serde::Deserialize;
use toml::Spanned;

use super::engine::SECOND;
use super::scenario::{LONGEST, MOST_VMS, check_host, check_vm};
use super::{Host, Khugepaged, Ksm, Pages, Policy, Scenario, Translation, Vm};
use crate::tables::{Flag, Part, Whole, Word, tables};
use translation::Mode;
use translation::machine::Machine;
use translation::patterns::Pattern;
use translation::toml_file::{FileError, Scale, TomlFile, numbered};

tables! {
    Typed {
        seconds, step_ms, idle_tax, compressible, least_share: Part;
        cold_minutes: Whole;
        states: Word;
        policies: Option<Vec<Spanned<String>>>;
        host: Spanned<TypedHost>;
        rates: Option<TypedRates>;
        ksm: Option<TypedKsm>;
        khugepaged: Option<TypedKhugepaged>;
        translation: Option<Spanned<TypedTranslation>>;
        vm: Vec<Spanned<TypedVm>>;
    }
    TypedHost {
        memory: Spanned<String>;
        used: Word;
        large_pages: Flag;
        fragmented: Part;
    }
    TypedRates {
        scan_mb_s, rush_mb_s, swap_mb_s, balloon_mb_s, compact_mb_s: Part;
    }
    TypedKsm {
        pages_to_scan, sleep_millisecs, max_page_sharing, page_ns: Whole;
        use_zero_pages, split_frees_zeros: Flag;
    }
    TypedKhugepaged {
        pages_to_scan, scan_sleep_millisecs, max_ptes_none, max_ptes_shared, max_ptes_swap: Whole;
    }
    TypedTranslation {
        machine, mode, pattern, guest_page: Word;
        other_cycles: Part;
    }
    TypedVm {
        name: String;
        memory: Spanned<String>;
        count, shares, vcpus: Whole;
        used, touch_mb_s, active, zero, common, volatile, clustered, rewritten_per_hour: Part;
        content, salt: Option<String>;
        large_pages: Flag;
        pages, reservation: Word;
    }
}

/// Accesses simulated for each page size and working set.
const ACCESSES: u64 = 300_000;
/// A CPU whose rows are complete, if the file names none.
const CPU: &str = "xeon-8452y";

/// The text of a scenario file, which errors call `name`. `policies` replace the file's if there are any.
///
/// # Errors
/// With the line, if it is not of that shape or does not add up.
pub fn parse(name: &str, text: &str, policies: &[Policy], seed: u64) -> Result<Scenario, FileError> {
    let file = TomlFile { name, text };
    scenario(file, &file.read()?, policies, seed)
}

fn size(file: TomlFile<'_>, name: &str, typed: &Spanned<String>) -> Result<Bytes, FileError> {
    let size = typed.get_ref().parse::<Bytes>();
    size.or_else(|error| file.fail(typed, format!("{name}: {error}")))
}

fn scenario(file: TomlFile<'_>, typed: &Typed, policies: &[Policy], seed: u64) -> Result<Scenario, FileError> {
    let mut scenario = Scenario::new(host(file, &typed.host)?, Vec::new(), seed);
    if let Some(words) = &typed.policies {
        scenario.policies = words.iter().map(|word| file.word(word)).collect::<Result<_, _>>()?;
    }
    if !policies.is_empty() {
        scenario.policies = policies.to_vec();
    }
    if let Some(states) = &typed.states {
        scenario.states = file.word(states)?;
    }
    for vm in &typed.vm {
        vms(file, vm, &mut scenario.vms)?;
    }
    times(file, typed, &mut scenario)?;
    costs(file, typed, &mut scenario)?;
    if let Some(ksm) = &typed.ksm {
        merging(file, ksm, &mut scenario.ksm)?;
    }
    if let Some(khugepaged) = &typed.khugepaged {
        collapsing(file, khugepaged, &mut scenario.khugepaged)?;
    }
    if let Some(typed) = &typed.translation {
        scenario.translation = translation(file, typed)?;
    }
    match scenario.check() {
        Ok(()) => Ok(scenario),
        Err(error) => file.fail(&typed.host, error),
    }
}

fn host(file: TomlFile<'_>, at: &Spanned<TypedHost>) -> Result<Host, FileError> {
    let typed = at.get_ref();
    let used = typed.used.as_ref();
    let mut host = Host {
        memory: size(file, "memory", &typed.memory)?,
        used: used.map_or(Ok(Bytes(0)), |used| size(file, "used", used))?,
        large_pages: typed.large_pages.unwrap_or(true),
        fragmented: 0,
    };
    file.set_part("fragmented", &typed.fragmented, &mut host.fragmented)?;
    check_host(&host).or_else(|error| file.fail(&typed.memory, error))?;
    Ok(host)
}

fn times(file: TomlFile<'_>, typed: &Typed, scenario: &mut Scenario) -> Result<(), FileError> {
    const TIME: Scale = ([1e-3, LONGEST as f64], SECOND as f64);
    const STEP: Scale = ([1.0, 60_000.0], 1e6);
    file.set_scaled("seconds", &typed.seconds, TIME, &mut scenario.duration_ns)?;
    file.set_scaled("step_ms", &typed.step_ms, STEP, &mut scenario.step_ns)
}

/// MiB a second, in pages.
const MIB_S: Scale = ([0.0, 1e6], 256.0);

fn costs(file: TomlFile<'_>, typed: &Typed, scenario: &mut Scenario) -> Result<(), FileError> {
    if let Some(tax) = &typed.idle_tax {
        scenario.idle_tax = (file.number("idle_tax", tax, [0.0, 0.99])? * 100.0).round() as u32;
    }
    file.set_part("compressible", &typed.compressible, &mut scenario.compressible)?;
    file.set_part("least_share", &typed.least_share, &mut scenario.least_share)?;
    let minutes = &mut scenario.cold_minutes;
    file.set_whole("cold_minutes", &typed.cold_minutes, [10, 100_000], minutes)?;
    let Some(typed) = &typed.rates else {
        return Ok(());
    };
    let rates = &mut scenario.rates;
    if typed.scan_mb_s.is_some() {
        file.set_scaled("scan_mb_s", &typed.scan_mb_s, MIB_S, rates.scan.get_or_insert_default())?;
    }
    file.set_scaled("rush_mb_s", &typed.rush_mb_s, MIB_S, &mut rates.rush)?;
    file.set_scaled("swap_mb_s", &typed.swap_mb_s, MIB_S, &mut rates.swap)?;
    file.set_scaled("balloon_mb_s", &typed.balloon_mb_s, MIB_S, &mut rates.balloon)?;
    file.set_scaled("compact_mb_s", &typed.compact_mb_s, MIB_S, &mut rates.compact)
}

/// Most of what is a plain number.
const MOST: u32 = 1_000_000_000;

fn merging(file: TomlFile<'_>, typed: &TypedKsm, ksm: &mut Ksm) -> Result<(), FileError> {
    file.set_whole("pages_to_scan", &typed.pages_to_scan, [1, MOST], &mut ksm.pages_to_scan)?;
    let sleep = &mut ksm.sleep_millisecs;
    file.set_whole("sleep_millisecs", &typed.sleep_millisecs, [0, MOST], sleep)?;
    ksm.use_zero_pages = typed.use_zero_pages.unwrap_or(ksm.use_zero_pages);
    ksm.split_frees_zeros = typed.split_frees_zeros.unwrap_or(ksm.split_frees_zeros);
    let sharing = &mut ksm.max_page_sharing;
    file.set_whole("max_page_sharing", &typed.max_page_sharing, [2, MOST], sharing)?;
    file.set_whole("page_ns", &typed.page_ns, [1, 1_000_000], &mut ksm.page_ns)
}

fn collapsing(file: TomlFile<'_>, typed: &TypedKhugepaged, to: &mut Khugepaged) -> Result<(), FileError> {
    const PTES: [u32; 2] = [0, 511];
    file.set_whole("pages_to_scan", &typed.pages_to_scan, [0, MOST], &mut to.pages_to_scan)?;
    let (name, sleep) = ("scan_sleep_millisecs", &mut to.scan_sleep_millisecs);
    file.set_whole(name, &typed.scan_sleep_millisecs, [0, MOST], sleep)?;
    file.set_whole("max_ptes_none", &typed.max_ptes_none, PTES, &mut to.max_ptes_none)?;
    file.set_whole("max_ptes_shared", &typed.max_ptes_shared, PTES, &mut to.max_ptes_shared)?;
    file.set_whole("max_ptes_swap", &typed.max_ptes_swap, PTES, &mut to.max_ptes_swap)
}

fn translation(file: TomlFile<'_>, at: &Spanned<TypedTranslation>) -> Result<Translation, FileError> {
    let typed = at.get_ref();
    let id = typed.machine.as_ref().map_or(CPU, |id| id.get_ref());
    let machine = match (Machine::by_id(id), &typed.machine) {
        (Ok(machine), _) => machine,
        (Err(error), Some(at)) => return file.fail(at, error.to_string()),
        (Err(error), None) => return file.fail(at, error.to_string()),
    };
    let (mode, pattern) = (typed.mode.as_ref(), typed.pattern.as_ref());
    let (page, cycles) = (typed.guest_page.as_ref(), typed.other_cycles.as_ref());
    Ok(Translation::Pattern {
        machine: Box::new(machine),
        mode: mode.map_or(Ok(Mode::Nested), |mode| file.word(mode))?,
        pattern: pattern.map_or(Ok(Pattern::Zipf), |pattern| file.word(pattern))?,
        guest_page: page.map_or(Ok(Bytes::mib(2)), |page| guest_page(file, page))?,
        other_cycles: cycles.map_or(Ok(0.0), |cycles| file.number("other_cycles", cycles, [0.0, 1e6]))?,
        accesses: ACCESSES,
    })
}

fn guest_page(file: TomlFile<'_>, typed: &Spanned<String>) -> Result<Bytes, FileError> {
    let page = size(file, "guest_page", typed)?;
    match page == Bytes::kib(4) || page == Bytes::mib(2) {
        true => Ok(page),
        false => file.fail(typed, format!("guest_page is {page}: expected 4K or 2M")),
    }
}

fn vms(file: TomlFile<'_>, at: &Spanned<TypedVm>, all: &mut Vec<Vm>) -> Result<(), FileError> {
    let typed = at.get_ref();
    let mut count = 1;
    file.set_whole("count", &typed.count, [1, MOST_VMS as u32], &mut count)?;
    let mut vm = Vm::new(&typed.name, size(file, "memory", &typed.memory)?);
    vm.is_reserved = is_reserved(file, typed)?;
    vm.pages = pages(file, typed, vm.is_reserved)?;
    file.set_part("used", &typed.used, &mut vm.used)?;
    file.set_part("active", &typed.active, &mut vm.active)?;
    file.set_scaled("touch_mb_s", &typed.touch_mb_s, MIB_S, &mut vm.touch)?;
    file.set_part("zero", &typed.zero, &mut vm.content.zero)?;
    file.set_part("common", &typed.common, &mut vm.content.common)?;
    file.set_part("volatile", &typed.volatile, &mut vm.content.volatile)?;
    file.set_part("clustered", &typed.clustered, &mut vm.content.clustered)?;
    vm.group = typed.content.clone().unwrap_or(vm.group);
    vm.salt.clone_from(&typed.salt);
    file.set_part("rewritten_per_hour", &typed.rewritten_per_hour, &mut vm.rewritten)?;
    vm.shares = vm.shares.clamp(1, u32::MAX.into());
    file.set_whole("shares", &typed.shares, [1, MOST], &mut vm.shares)?;
    vm.large_pages = typed.large_pages.unwrap_or(true);
    file.set_whole("vcpus", &typed.vcpus, [1, 4096], &mut vm.vcpus)?;
    check_vm(&vm).or_else(|error| file.fail(at, error))?;
    if all.len() + count as usize > MOST_VMS {
        let why = format!("more than {MOST_VMS} virtual machines: expected at most so many");
        return file.fail(at, why);
    }
    all.extend(numbered(&typed.name, count).map(|name| Vm { name, ..vm.clone() }));
    Ok(())
}

fn is_reserved(file: TomlFile<'_>, typed: &TypedVm) -> Result<bool, FileError> {
    match &typed.reservation {
        None => Ok(false),
        Some(at) => match at.get_ref().as_str() {
            "full" => Ok(true),
            "none" => Ok(false),
            other => file.fail(at, format!("reservation is `{other}`: expected full or none")),
        },
    }
}

/// 1 GiB pages and pools are there for reserved memory alone.
fn pages(file: TomlFile<'_>, typed: &TypedVm, is_reserved: bool) -> Result<Pages, FileError> {
    let Some(at) = &typed.pages else {
        return Ok(Pages::Any);
    };
    let pages = match at.get_ref().as_str() {
        "any" => return Ok(Pages::Any),
        "1G" => Pages::Giant,
        "pool" => Pages::Pool,
        other => return file.fail(at, format!("pages is `{other}`: expected any, 1G or pool")),
    };
    match is_reserved {
        true => Ok(pages),
        false => {
            let word = at.get_ref();
            let why = format!("pages = \"{word}\" needs all memory reserved: expected reservation = \"full\"");
            file.fail(at, why)
        }
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
