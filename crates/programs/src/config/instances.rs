//! Instances of Oracle, as the files of their parameters have them below a root that is no running machine.

use model::{Bytes, Unread};

use super::Setting;
use super::files::{listed, taken};
use host::Source;

/// What an instance is to have as its SGA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub sga: Bytes,
    /// `sga_max_size` or `sga_target`, with its place.
    pub setting: Setting,
    /// `use_large_pages=ONLY`: it does not start where the pool cannot hold all of it.
    pub is_strict: bool,
}

/// Where Oracle's guides put its homes.
const PRODUCTS: &str = "/u01/app/oracle/product";

/// Those of text files (init.ora). On a running machine their owner decides what stands at such a path: there none is read.
pub(super) fn read(source: &Source) -> Result<Vec<Instance>, Unread> {
    if source.is_live() {
        return Ok(Vec::new());
    }
    let mut instances = Vec::new();
    for version in listed(source, PRODUCTS)? {
        for home in listed(source, &format!("{PRODUCTS}/{version}"))? {
            let directory = format!("{PRODUCTS}/{version}/{home}/dbs");
            for name in listed(source, &directory)? {
                if name.starts_with("init") && name.ends_with(".ora") {
                    instances.extend(of_file(source, format!("{directory}/{name}"))?);
                }
            }
        }
    }
    Ok(instances)
}

fn of_file(source: &Source, path: String) -> Result<Option<Instance>, Unread> {
    let lines = taken(source, [path], &['#'], |line| {
        let (name, value) = line.pair()?;
        let name = name.to_ascii_lowercase();
        // A name of the instance may be before it: `*.sga_target`.
        let name = name.rsplit('.').next()?;
        Some(line.setting(name, value.to_ascii_uppercase()))
    })?;
    let last = |name: &str| lines.iter().rfind(|line| line.name == name);
    let sga = |line: &Setting| {
        let written = line.value.as_str();
        let sga: Bytes = written.parse().map(Bytes).ok().or_else(|| written.parse().ok())?;
        (sga.0 > 0).then(|| Instance {
            sga,
            setting: line.clone(),
            is_strict: last("use_large_pages").is_some_and(|line| line.value == "ONLY"),
        })
    };
    Ok(last("sga_max_size").or_else(|| last("sga_target")).and_then(sga))
}
