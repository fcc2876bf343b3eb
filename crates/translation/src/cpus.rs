//! The table of known CPUs: TLBs, caches and latencies, each with its public source; `None` where no source is known. The file has
//! more than is read here: remarks, clocks, what else is published.

use std::sync::OnceLock;

use model::tlb::{Known, Ways};
use model::{Bytes, PageKind};
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Cpu {
    /// Stable short name, such as `epyc-9654`.
    pub id: String,
    pub name: String,
    pub vendor: String,
    /// CPU family as `/proc/cpuinfo` shows it; none on Arm, or where no source is known.
    #[serde(default)]
    pub family: Option<u32>,
    /// Models of that family, or Arm part numbers, with these TLBs.
    #[serde(default)]
    pub models: Vec<u32>,
    pub page_sizes: Option<Vec<PageSize>>,
    pub page_levels: Option<u8>,
    /// Levels that a hypervisor gives the second dimension of its guests, where they are fewer.
    #[serde(default)]
    pub host_page_levels: Option<u8>,
    /// What it offers for virtual machines.
    pub virt: Option<Virt>,
    /// Its TLBs; empty when unknown.
    pub tlb: Vec<TlbRow>,
    pub caches: Vec<Cache>,
    /// Load-to-use latencies in core cycles.
    pub latency_cycles: Latencies,
    /// What a first-level miss that hits the second level costs, in core cycles.
    pub l2tlb_hit_penalty_cycles: Option<f64>,
    /// Where the numbers are published.
    pub source: Vec<String>,
}

/// Hardware support for virtual machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Virt {
    /// EPT or NPT.
    pub nested_paging: bool,
}

/// One TLB, or one view of it: rows of one `group` are the same physical array.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TlbRow {
    /// 1 or 2.
    pub level: u8,
    /// Which accesses it serves.
    pub kind: TlbKind,
    pub pages: Vec<PageSize>,
    pub entries: u32,
    /// Associativity; `None` when unknown.
    pub ways: Option<Ways>,
    /// Rows with the same group share one array, so their entries must not be added.
    #[serde(default)]
    pub group: Option<String>,
}

/// Which accesses a TLB serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlbKind {
    /// Loads and stores.
    Data,
    DataLoad,
    DataStore,
    Instruction,
    Unified,
}

impl TlbKind {
    /// Does it serve loads of data?
    pub fn serves_loads(self) -> bool {
        matches!(self, Self::Data | Self::DataLoad | Self::Unified)
    }
}

/// A page size as the table writes it (`4K`), in JSON text with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct PageSize(pub Bytes);

impl TryFrom<String> for PageSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Cache {
    /// 1 to 3.
    pub level: u8,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    /// Size in KiB.
    pub kib: Option<u64>,
    pub ways: Option<Ways>,
}

/// Load-to-use latencies in core cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Latencies {
    /// First-level cache.
    pub l1: Option<f64>,
    /// Second-level cache.
    pub l2: Option<f64>,
    /// Third-level cache.
    pub l3: Option<f64>,
    pub mem: Option<f64>,
}

#[derive(Deserialize)]
struct Table {
    cpus: Vec<Cpu>,
}

fn read() -> serde_json::Result<Vec<Cpu>> {
    serde_json::from_slice(include_bytes!("../data/cpus.json")).map(|Table { cpus }| cpus)
}

/// The table that comes with hugewise.
pub fn table() -> &'static [Cpu] {
    static TABLE: OnceLock<Vec<Cpu>> = OnceLock::new();
    // A test reads the same bytes, so a broken table cannot be built into a release; without it nothing is known.
    TABLE.get_or_init(|| read().unwrap_or_default())
}

pub fn by_id(id: &str) -> Option<&'static Cpu> {
    table().iter().find(|cpu| cpu.id == id)
}

/// What a machine says of its CPU, as `/proc/cpuinfo` has it; parts that it does not say are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<'a> {
    /// `AuthenticAMD`, `GenuineIntel`, or an Arm implementer such as `0x41`.
    pub vendor: Option<&'a str>,
    /// Family (x86 only).
    pub family: Option<u32>,
    /// Model, or Arm part number.
    pub model: Option<u32>,
    pub name: Option<&'a str>,
}

/// The CPU of the table that a machine has: by vendor, family and model, which all products of a core share. The number in the
/// marketing name decides only between several rows of one model, and where no row has the model.
pub fn of_machine(machine: Identity<'_>) -> Option<&'static Cpu> {
    let words = words_of(machine.name.unwrap_or_default());
    let same: Vec<&Cpu> = table().iter().filter(|cpu| cpu.is_of(machine)).collect();
    let named = |cpu: &&&Cpu| cpu.is_named_in(&words);
    match same[..] {
        [] => table()
            .iter()
            .find(|cpu| cpu.models.is_empty() && cpu.is_named_in(&words)),
        [only] => Some(only),
        [first, ..] => {
            let alike = same.iter().all(|cpu| cpu.tlb == first.tlb);
            same.iter().find(named).copied().or(alike.then_some(first))
        }
    }
}

fn words_of(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .map(str::to_ascii_lowercase)
        .collect()
}

impl Cpu {
    /// Does the row hold for the machine's vendor, family and model?
    fn is_of(&self, machine: Identity<'_>) -> bool {
        let vendor = match machine.vendor {
            Some("AuthenticAMD") => "AMD",
            Some("GenuineIntel") => "Intel",
            Some("0x41") => "Arm",
            Some("0xc0") => "Ampere",
            _ => return false,
        };
        let model = machine.model.is_some_and(|model| self.models.contains(&model));
        self.vendor == vendor && self.family == machine.family && model
    }

    /// Does the number of its id stand in a name as a word?
    fn is_named_in(&self, words: &[String]) -> bool {
        self.id.split('-').next_back().is_some_and(|number| {
            number.len() >= 4
                && number.contains(|c: char| c.is_ascii_digit())
                && words.iter().any(|word| word == number)
        })
    }

    /// What the table says about the TLBs that serve loads of a page kind, to stand beside a measurement.
    pub fn known(&self, kind: PageKind) -> Vec<Known> {
        let page = PageSize(kind.x86_size());
        let mut levels: Vec<Known> = Vec::new();
        let rows = self
            .tlb
            .iter()
            .filter(|row| row.kind.serves_loads() && row.pages.contains(&page));
        for row in rows {
            match levels.iter_mut().find(|known| known.level == row.level) {
                // Two arrays of one level that both hold the size: their entries add up, each with its own ways.
                Some(known) => {
                    known.entries += row.entries;
                    if known.ways != row.ways {
                        known.ways = None;
                    }
                }
                None => levels.push(Known {
                    source: format!("cpu table: {}", self.id),
                    kind,
                    level: row.level,
                    entries: row.entries,
                    ways: row.ways,
                }),
            }
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, by_id, of_machine, read, table};
    use model::PageKind;
    use model::tlb::Ways;

    #[test]
    fn the_table_that_is_built_in_can_be_read_and_names_its_sources() {
        let cpus = read().expect("a readable table");
        assert_eq!(table(), cpus);
        for cpu in &cpus {
            assert!(!cpu.source.is_empty(), "{}", cpu.id);
            assert!(
                by_id(&cpu.id).is_some_and(|found| found == cpu),
                "ids are unique: {}",
                cpu.id
            );
            assert!(
                cpu.tlb.iter().all(|row| row.entries > 0 && !row.pages.is_empty()),
                "{}",
                cpu.id
            );
        }
    }

    #[test]
    fn entries_of_one_level_add_up_over_arrays_but_not_over_views_of_one_array() {
        let known = |id: &str, kind| {
            let cpu = by_id(id).expect("in the table");
            cpu.known(kind)
                .iter()
                .map(|known| (known.level, known.entries, known.ways))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            known("xeon-8452y", PageKind::Base),
            [(1, 64, Some(Ways::Count(4))), (2, 2048, Some(Ways::Count(8)))]
        );
        assert_eq!(
            known("xeon-8452y", PageKind::Thp),
            [(1, 32, Some(Ways::Count(4))), (2, 1024, Some(Ways::Count(8)))]
        );
        assert_eq!(
            known("epyc-9654", PageKind::HUGETLB_2M),
            [(1, 72, Some(Ways::Full)), (2, 3072, Some(Ways::Count(6)))]
        );
        assert_eq!(known("neoverse-v1", PageKind::Base), []);
    }

    #[test]
    fn vendor_family_and_model_find_a_cpu_whatever_its_product_is_called() {
        let find = |vendor, family, model, name| {
            let machine = Identity {
                vendor: Some(vendor),
                family,
                model: Some(model),
                name: Some(name),
            };
            of_machine(machine).map(|cpu| cpu.id.as_str())
        };
        let (amd, intel, arm) = ("AuthenticAMD", "GenuineIntel", "0x41");
        assert_eq!(
            find(amd, Some(25), 17, "AMD EPYC 9554 64-Core Processor"),
            Some("epyc-9654")
        );
        assert_eq!(
            find(amd, Some(25), 1, "AMD EPYC"),
            Some("epyc-7713"),
            "a guest's masked name"
        );
        assert_eq!(find(amd, Some(26), 2, "AMD EPYC"), Some("epyc-9655"));
        assert_eq!(
            find(intel, Some(6), 143, "Intel(R) Xeon(R) Platinum 8480+"),
            Some("xeon-8452y")
        );
        assert_eq!(
            find(intel, Some(6), 85, "Intel(R) Xeon(R) Gold 6248"),
            Some("skylake-sp")
        );
        assert_eq!(
            find(intel, Some(6), 26, "Intel(R) Xeon(R) CPU X5570 @ 2.93GHz"),
            Some("xeon-x5570")
        );
        assert_eq!(find(arm, None, 0xd0c, "Neoverse-N1"), Some("neoverse-n1"));
        for (vendor, family, model, id) in [
            (intel, Some(6), 63, "haswell-ep"),
            (intel, Some(6), 79, "broadwell-ep"),
            (intel, Some(6), 207, "xeon-8570"),
            (intel, Some(6), 173, "granite-rapids"),
            (intel, Some(6), 175, "sierra-forest"),
            (amd, Some(23), 1, "epyc-7551"),
            (amd, Some(26), 17, "epyc-9965"),
            ("0xc0", None, 0xac3, "ampereone"),
        ] {
            assert_eq!(find(vendor, family, model, "a masked name"), Some(id));
        }
        assert_eq!(
            find(intel, Some(25), 1, "AMD EPYC 9654"),
            None,
            "another vendor's model"
        );
        assert_eq!(
            find(amd, Some(25), 97, "AMD EPYC 9654"),
            None,
            "a model that no row has"
        );
        assert_eq!(find(amd, Some(15), 33, "Dual Core AMD Opteron(tm) Processor 885"), None);
        assert_eq!(of_machine(Identity::default()), None);
    }

    #[test]
    fn every_row_with_known_tlbs_but_one_is_found_by_family_and_model() {
        let lost = table()
            .iter()
            .filter(|cpu| !cpu.tlb.is_empty() && cpu.models.is_empty());
        assert_eq!(lost.map(|cpu| cpu.id.as_str()).collect::<Vec<_>>(), ["opteron-885"]);
    }
}
