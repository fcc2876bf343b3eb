//! Amounts of resources, and volumes of hugetlb pages, with the page sizes that their names stand for.

use host::parse;
use model::{Bytes, Unread};

use super::super::units::{factor, number_and_unit};
use super::super::yaml::Node;

/// So much of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// `FILE:LINE`.
    pub place: String,
    /// `memory`, `hugepages-2Mi`, ...
    pub resource: String,
    /// The file's own key, where it is another one.
    pub key: Option<&'static str>,
    pub written: String,
    /// In units of the resource: bytes of memory. Parts of a unit (`500m` of a CPU) are left out.
    pub amount: u64,
}

/// A volume that is meant to be on hugetlbfs: `emptyDir: {medium: HugePages-2Mi}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// `FILE:LINE`.
    pub place: String,
    pub name: String,
    /// `HugePages`, `HugePages-2Mi`, ...
    pub medium: String,
}

impl Quantity {
    /// The page size of a hugetlb resource, which kubelets name by its largest binary unit.
    pub fn page(&self) -> Option<Bytes> {
        self.meant()
            .filter(|page| format!("hugepages-{}i", page.exact()) == self.resource)
    }

    /// The page size that its name stands for, whatever the unit.
    pub fn meant(&self) -> Option<Bytes> {
        meant(&self.resource)
    }

    /// As the file has it, with the resource that it stands for.
    pub fn field(&self) -> String {
        match self.key.filter(|key| *key != self.resource) {
            Some(key) => format!("{key} (as {})", self.resource),
            None => self.resource.clone(),
        }
    }
}

impl Volume {
    /// The page size that it names.
    pub fn page(&self) -> Option<Bytes> {
        amount(self.medium.strip_prefix("HugePages-")?).map(Bytes)
    }

    /// The page size that it stands for, whatever the unit.
    pub fn meant(&self) -> Option<Bytes> {
        meant(&self.medium)
    }

    /// Is it a medium that kubelets know?
    pub fn is_known(&self) -> bool {
        self.medium == "HugePages" || self.medium.starts_with("HugePages-")
    }
}

/// The page size at the end of a name: of `hugepages-2M`, `HugePages-2048Ki`.
fn meant(name: &str) -> Option<Bytes> {
    let size = name.rsplit('-').next()?.trim_end_matches(['i', 'I', 'b', 'B']);
    size.parse().ok().filter(|page: &Bytes| page.is_page())
}

pub(in crate::config::given) fn quantities(node: Option<&Node>) -> Result<Vec<Quantity>, Unread> {
    let entries = node.map_or(&[][..], Node::entries).iter();
    entries.map(|(resource, node)| quantity(resource, node)).collect()
}

pub(in crate::config::given) fn quantity(resource: &str, node: &Node) -> Result<Quantity, Unread> {
    let written = node.text().unwrap_or_default();
    let known = amount(written).ok_or_else(|| node.garbled("a quantity such as 512Mi"));
    Ok(Quantity {
        place: node.place(),
        resource: resource.to_owned(),
        key: None,
        written: written.to_owned(),
        amount: known?,
    })
}

/// `2Gi`, `512Mi`, `1.5G`, `250m`, `100`.
pub(in crate::config::given) fn amount(text: &str) -> Option<u64> {
    if let Some(milli) = text.strip_suffix('m') {
        return milli.parse::<u64>().ok().map(|milli| milli / 1000);
    }
    let (number, unit) = number_and_unit(text);
    let factor = factor(unit)?;
    match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => Some((parse::amount(number)? * factor as f64) as u64),
    }
}
