//! Scenarios as TOML files; a mistake in one is named with its line and with what is expected.

use model::Bytes;
use toml::Spanned;

use super::engine::SECOND;
use super::lost::Translation;
use super::scenario::{LONGEST, MOST_VMS, WHOLE, check_host, check_vm};
use super::typed::{Typed, TypedHost, TypedTranslation, TypedVm};
use super::{Content, Host, Khugepaged, Ksm, Pages, Policy, Scenario, Vm};
use crate::translation::machine::Machine;
use crate::typed_file::{FileError, TypedFile};

/// Accesses simulated for each page size and working set.
const ACCESSES: u64 = 300_000;
/// A CPU whose rows are complete, if the file names none.
const CPU: &str = "xeon-8452y";

/// The text of a scenario file, which errors call `name`. `policies` replace the file's if there are any.
///
/// # Errors
/// With the line, if it is not of that shape or does not add up.
pub fn parse(name: &str, text: &str, policies: &[Policy], seed: u64) -> Result<Scenario, FileError> {
    let file = TypedFile { name, text };
    Reader { file }.scenario(&file.read()?, policies, seed)
}

struct Reader<'a> {
    file: TypedFile<'a>,
}

impl Reader<'_> {
    fn whole(
        &self,
        name: &str,
        typed: Option<&Spanned<i64>>,
        usual: u32,
        [least, most]: [u32; 2],
    ) -> Result<u32, FileError> {
        typed.map_or(Ok(usual), |typed| self.file.whole(name, typed, least, most))
    }

    /// A part from 0 to 1, in 65,536ths.
    fn part(&self, name: &str, typed: Option<&Spanned<f64>>, usual: u32) -> Result<u32, FileError> {
        typed.map_or(Ok(usual), |typed| {
            Ok((self.file.number(name, typed, [0.0, 1.0])? * f64::from(WHOLE)).round() as u32)
        })
    }

    /// MiB a second, in pages.
    fn rate(&self, name: &str, typed: Option<&Spanned<f64>>, usual: u64) -> Result<u64, FileError> {
        typed.map_or(Ok(usual), |typed| {
            Ok((self.file.number(name, typed, [0.0, 1e6])? * 256.0).round() as u64)
        })
    }

    fn size(&self, name: &str, typed: &Spanned<String>) -> Result<Bytes, FileError> {
        let size = typed.get_ref().parse::<Bytes>();
        size.or_else(|error| self.file.fail(typed, format!("{name}: {error}")))
    }

    fn word<T: std::str::FromStr<Err = String>>(&self, typed: &Spanned<String>) -> Result<T, FileError> {
        typed.get_ref().parse().or_else(|error| self.file.fail(typed, error))
    }

    fn scenario(&self, typed: &Typed, policies: &[Policy], seed: u64) -> Result<Scenario, FileError> {
        let mut scenario = Scenario::new(self.host(&typed.host)?, Vec::new(), seed);
        if let Some(words) = &typed.policies {
            scenario.policies = words.iter().map(|word| self.word(word)).collect::<Result<_, _>>()?;
        }
        if !policies.is_empty() {
            scenario.policies = policies.to_vec();
        }
        if let Some(states) = &typed.states {
            scenario.states = self.word(states)?;
        }
        for vm in &typed.vm {
            self.vms(vm, &mut scenario.vms)?;
        }
        self.times(typed, &mut scenario)?;
        self.costs(typed, &mut scenario)?;
        self.kernel(typed, &mut scenario)?;
        scenario.translation = self.translation(typed.translation.as_ref())?;
        match scenario.check() {
            Ok(()) => Ok(scenario),
            Err(error) => self.file.fail(&typed.host, error),
        }
    }

    fn host(&self, at: &Spanned<TypedHost>) -> Result<Host, FileError> {
        let typed = at.get_ref();
        let host = Host {
            memory: self.size("memory", &typed.memory)?,
            used: typed
                .used
                .as_ref()
                .map_or(Ok(Bytes::mib(0)), |used| self.size("used", used))?,
            large_pages: typed.large_pages.unwrap_or(true),
            fragmented: self.part("fragmented", typed.fragmented.as_ref(), 0)?,
        };
        check_host(&host).or_else(|error| self.file.fail(&typed.memory, error))?;
        Ok(host)
    }

    fn times(&self, typed: &Typed, scenario: &mut Scenario) -> Result<(), FileError> {
        if let Some(seconds) = &typed.seconds {
            let seconds = self.file.number("seconds", seconds, [1e-3, LONGEST as f64])?;
            scenario.duration_ns = (seconds * SECOND as f64).round() as u64;
        }
        if let Some(step) = &typed.step_ms {
            let step = self.file.number("step_ms", step, [1.0, 60_000.0])?;
            scenario.step_ns = (step * 1e6).round() as u64;
        }
        Ok(())
    }

    fn costs(&self, typed: &Typed, scenario: &mut Scenario) -> Result<(), FileError> {
        if let Some(tax) = &typed.idle_tax {
            scenario.idle_tax = (self.file.number("idle_tax", tax, [0.0, 0.99])? * 100.0).round() as u32;
        }
        scenario.compressible = self.part("compressible", typed.compressible.as_ref(), scenario.compressible)?;
        scenario.least_share = self.part("least_share", typed.least_share.as_ref(), scenario.least_share)?;
        let minutes = typed.cold_minutes.as_ref();
        scenario.cold_minutes = self.whole("cold_minutes", minutes, scenario.cold_minutes, [10, 100_000])?;
        let Some(rates) = &typed.rates else {
            return Ok(());
        };
        let usual = scenario.rates;
        if let Some(scan) = &rates.scan_mb_s {
            scenario.rates.scan = Some(self.rate("scan_mb_s", Some(scan), 0)?);
        }
        scenario.rates.rush = self.rate("rush_mb_s", rates.rush_mb_s.as_ref(), usual.rush)?;
        scenario.rates.swap = self.rate("swap_mb_s", rates.swap_mb_s.as_ref(), usual.swap)?;
        scenario.rates.balloon = self.rate("balloon_mb_s", rates.balloon_mb_s.as_ref(), usual.balloon)?;
        scenario.rates.compact = self.rate("compact_mb_s", rates.compact_mb_s.as_ref(), usual.compact)?;
        Ok(())
    }

    fn kernel(&self, typed: &Typed, scenario: &mut Scenario) -> Result<(), FileError> {
        const ANY: [u32; 2] = [0, 1_000_000_000];
        const SOME: [u32; 2] = [1, 1_000_000_000];
        if let Some(ksm) = &typed.ksm {
            let usual = Ksm::default();
            scenario.ksm = Ksm {
                pages_to_scan: self.whole("pages_to_scan", ksm.pages_to_scan.as_ref(), usual.pages_to_scan, SOME)?,
                sleep_millisecs: self.whole(
                    "sleep_millisecs",
                    ksm.sleep_millisecs.as_ref(),
                    usual.sleep_millisecs,
                    ANY,
                )?,
                use_zero_pages: ksm.use_zero_pages.unwrap_or(usual.use_zero_pages),
                split_frees_zeros: ksm.split_frees_zeros.unwrap_or(usual.split_frees_zeros),
                max_page_sharing: self.whole(
                    "max_page_sharing",
                    ksm.max_page_sharing.as_ref(),
                    usual.max_page_sharing,
                    [2, ANY[1]],
                )?,
                page_ns: self.whole("page_ns", ksm.page_ns.as_ref(), usual.page_ns, [1, 1_000_000])?,
            };
        }
        if let Some(typed) = &typed.khugepaged {
            let usual = Khugepaged::default();
            let ptes = |name, typed: Option<&Spanned<i64>>, usual| self.whole(name, typed, usual, [0, 511]);
            scenario.khugepaged = Khugepaged {
                pages_to_scan: self.whole("pages_to_scan", typed.pages_to_scan.as_ref(), usual.pages_to_scan, ANY)?,
                scan_sleep_millisecs: self.whole(
                    "scan_sleep_millisecs",
                    typed.scan_sleep_millisecs.as_ref(),
                    usual.scan_sleep_millisecs,
                    ANY,
                )?,
                max_ptes_none: ptes("max_ptes_none", typed.max_ptes_none.as_ref(), usual.max_ptes_none)?,
                max_ptes_shared: ptes("max_ptes_shared", typed.max_ptes_shared.as_ref(), usual.max_ptes_shared)?,
                max_ptes_swap: ptes("max_ptes_swap", typed.max_ptes_swap.as_ref(), usual.max_ptes_swap)?,
            };
        }
        Ok(())
    }

    fn translation(&self, at: Option<&Spanned<TypedTranslation>>) -> Result<Translation, FileError> {
        let Some(at) = at else {
            return Ok(Translation::None);
        };
        let typed = at.get_ref();
        let id = typed.machine.as_ref().map_or(CPU, |id| id.get_ref());
        let machine = match (Machine::by_id(id), &typed.machine) {
            (Ok(machine), _) => machine,
            (Err(error), Some(at)) => return self.file.fail(at, error.to_string()),
            (Err(error), None) => return self.file.fail(at, error.to_string()),
        };
        let nested = crate::translation::Mode::Nested;
        let zipf = crate::translation::patterns::Pattern::Zipf;
        Ok(Translation::Pattern {
            machine: Box::new(machine),
            mode: typed.mode.as_ref().map_or(Ok(nested), |mode| self.word(mode))?,
            pattern: typed.pattern.as_ref().map_or(Ok(zipf), |pattern| self.word(pattern))?,
            guest_page: typed
                .guest_page
                .as_ref()
                .map_or(Ok(Bytes::mib(2)), |page| self.guest_page(page))?,
            other_cycles: typed
                .other_cycles
                .as_ref()
                .map_or(Ok(0.0), |cycles| self.file.number("other_cycles", cycles, [0.0, 1e6]))?,
            accesses: ACCESSES,
        })
    }

    fn guest_page(&self, typed: &Spanned<String>) -> Result<Bytes, FileError> {
        let page = self.size("guest_page", typed)?;
        match page == Bytes::kib(4) || page == Bytes::mib(2) {
            true => Ok(page),
            false => self
                .file
                .fail(typed, format!("guest_page is {page}: expected 4K or 2M")),
        }
    }

    fn vms(&self, at: &Spanned<TypedVm>, all: &mut Vec<Vm>) -> Result<(), FileError> {
        let typed = at.get_ref();
        let count = self.whole("count", typed.count.as_ref(), 1, [1, MOST_VMS as u32])?;
        let mut vm = Vm::new(&typed.name, self.size("memory", &typed.memory)?);
        vm.pages = self.pages(typed)?;
        vm.used = self.part("used", typed.used.as_ref(), vm.used)?;
        vm.active = self.part("active", typed.active.as_ref(), vm.active)?;
        vm.touch = self.rate("touch_mb_s", typed.touch_mb_s.as_ref(), vm.touch)?;
        vm.content = Content {
            zero: self.part("zero", typed.zero.as_ref(), vm.content.zero)?,
            common: self.part("common", typed.common.as_ref(), vm.content.common)?,
            volatile: self.part("volatile", typed.volatile.as_ref(), vm.content.volatile)?,
            clustered: self.part("clustered", typed.clustered.as_ref(), vm.content.clustered)?,
        };
        vm.group = typed.content.clone().unwrap_or(vm.group);
        vm.rewritten = self.part("rewritten_per_hour", typed.rewritten_per_hour.as_ref(), 0)?;
        let shares = u32::try_from(vm.shares).unwrap_or(u32::MAX).max(1);
        vm.shares = u64::from(self.whole("shares", typed.shares.as_ref(), shares, [1, 1_000_000_000])?);
        vm.large_pages = typed.large_pages.unwrap_or(true);
        vm.vcpus = self.whole("vcpus", typed.vcpus.as_ref(), 1, [1, 4096])?;
        check_vm(&vm).or_else(|error| self.file.fail(at, error))?;
        if all.len() + count as usize > MOST_VMS {
            return self.file.fail(
                at,
                format!("more than {MOST_VMS} virtual machines: expected at most so many"),
            );
        }
        for number in 1..=count {
            let name = if count == 1 {
                vm.name.clone()
            } else {
                format!("{}-{number}", vm.name)
            };
            all.push(Vm { name, ..vm.clone() });
        }
        Ok(())
    }

    /// 1 GiB pages and pools are there for reserved memory alone.
    fn pages(&self, typed: &TypedVm) -> Result<Pages, FileError> {
        let is_full = match &typed.reservation {
            None => false,
            Some(word) => match word.get_ref().as_str() {
                "full" => true,
                "none" => false,
                other => {
                    return self
                        .file
                        .fail(word, format!("reservation is `{other}`: expected full or none"));
                }
            },
        };
        let Some(word) = &typed.pages else {
            return Ok(Pages::Any);
        };
        let pages = match word.get_ref().as_str() {
            "any" => return Ok(Pages::Any),
            "1G" => Pages::Giant,
            "pool" => Pages::Pool,
            other => {
                return self
                    .file
                    .fail(word, format!("pages is `{other}`: expected any, 1G or pool"));
            }
        };
        match is_full {
            true => Ok(pages),
            false => self.file.fail(
                word,
                format!(
                    "pages = \"{}\" needs all memory reserved: expected reservation = \"full\"",
                    word.get_ref()
                ),
            ),
        }
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
