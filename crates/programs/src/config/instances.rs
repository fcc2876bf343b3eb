//! Instances of Oracle, as the files of their parameters have them: those that were given, and those below a root that is no running machine.

use model::{Bytes, Unread};

use super::Setting;
use super::files::{Line, all_in, listed, said};
use crate::vms::configured::size;
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
            let is_own = |name: &str| name.starts_with("init") && name.ends_with(".ora");
            for (_, path, text) in all_in(source, &directory, is_own)? {
                instances.extend(Parameters::of(&path, &text).instance());
            }
        }
    }
    Ok(instances)
}

/// What the file of an instance sets (init.ora, or the text of an spfile).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    pub path: String,
    settings: Vec<Setting>,
}

impl Parameters {
    pub(super) fn of(path: &str, text: &str) -> Self {
        let setting = |line: Line<'_>| {
            let (name, value) = line.pair()?;
            // A name of the instance may be before it: `*.sga_target`.
            let name = name.to_ascii_lowercase();
            let name = name.rsplit('.').next()?;
            let value = value.split('#').next()?.trim().trim_matches(['\'', '"']);
            Some(line.setting(name, value.to_ascii_uppercase()))
        };
        Self {
            path: path.to_owned(),
            settings: said(path, text, &['#']).filter_map(setting).collect(),
        }
    }

    /// Has a text such a line?
    pub(super) fn is_in(text: &str) -> bool {
        let names = ["sga_target", "sga_max_size", "memory_target", "use_large_pages"];
        let settings = Self::of("", text).settings;
        settings.iter().any(|set| names.contains(&set.name.as_str()))
    }

    fn last(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rfind(|line| line.name == name)
    }

    /// A size that is not 0.
    fn sized(&self, name: &str) -> Option<(Bytes, &Setting)> {
        let set = self.last(name)?;
        let bytes = size(&set.value, 1)?;
        (bytes.0 > 0).then_some((bytes, set))
    }

    /// Automatic memory management, whose SGA no huge pages back.
    pub fn memory_target(&self) -> Option<&Setting> {
        let target = self.sized("memory_target").or_else(|| self.sized("memory_max_target"));
        target.map(|(_, set)| set)
    }

    /// Does it take pages of the pool as it is? With AUTO it makes the pool larger by itself.
    pub fn takes_pages(&self) -> bool {
        let large = self.last("use_large_pages").map(|set| set.value.as_str());
        !matches!(large, Some("FALSE" | "AUTO" | "AUTO_ONLY")) && self.memory_target().is_none()
    }

    /// The name by which its processes are called: an instance reads the file that has it (`initNAME.ora`).
    pub fn sid(&self) -> Option<String> {
        let file = self.path.rsplit('/').next()?;
        let of_file = file.strip_prefix("init").and_then(|rest| rest.strip_suffix(".ora"));
        let of_file = of_file.filter(|name| !name.is_empty()).map(str::to_ascii_uppercase);
        of_file.or_else(|| Some(self.last("instance_name")?.value.clone()))
    }

    pub fn is_strict(&self) -> bool {
        self.last("use_large_pages").is_some_and(|set| set.value == "ONLY")
    }

    /// The instance, where its SGA has a size. sga_max_size is not below sga_target.
    pub fn instance(&self) -> Option<Instance> {
        let sizes = [self.sized("sga_target"), self.sized("sga_max_size")];
        let (sga, setting) = sizes.into_iter().flatten().max_by_key(|(sga, _)| *sga)?;
        Some(Instance {
            sga,
            setting: setting.clone(),
            is_strict: self.is_strict(),
        })
    }
}

impl Instance {
    /// The SGA in whole granules: Oracle rounds it up to them.
    pub fn in_granules(&self) -> Bytes {
        self.sga.round_up_to(granule(self.sga))
    }

    /// The largest SGA of whole granules that is no larger than that.
    pub fn within(sga: Bytes) -> Bytes {
        let granule = granule(sga);
        Bytes(sga.0 / granule.0 * granule.0)
    }
}

/// Granules are of 4M up to an SGA of 1G, of 16M up to 8G, and double from there on.
fn granule(sga: Bytes) -> Bytes {
    match sga.0 {
        size if size <= Bytes::gib(1).0 => Bytes::mib(4),
        size => Bytes(
            (size.checked_next_power_of_two().unwrap_or(u64::MAX) >> 9).clamp(Bytes::mib(16).0, Bytes::mib(512).0),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Instance, Parameters};
    use model::Bytes;

    #[test]
    fn parameters_of_any_form_are_read() {
        let text = "# of DBCA\nORCL.__sga_target=9G\n*.SGA_Target=1025M # bytes\norcl1.use_large_pages='only'\n*.memory_target=0\n";
        let own = Parameters::of("initORCL.ora", text);
        let instance = own.instance().expect("an SGA");
        assert_eq!(
            (instance.sga, instance.in_granules()),
            (Bytes::mib(1025), Bytes::mib(1040))
        );
        assert!(instance.is_strict && own.takes_pages() && Parameters::is_in(text));
        assert_eq!(own.sid().as_deref(), Some("ORCL"));
        let large = Parameters::of("a", "sga_target=100100M\n").instance();
        assert_eq!(large.map(|own| own.in_granules()), Some(Bytes::mib(100_352)));
        assert_eq!(Instance::within(Bytes::mib(100_100)), Bytes::mib(100_096));
        let own = Parameters::of(
            "a",
            "sga_max_size=1073741824\nsga_target = 512M\nuse_large_pages=\"FALSE\"\n",
        );
        assert_eq!(own.instance().map(|own| own.in_granules()), Some(Bytes::gib(1)));
        assert!(!own.takes_pages());
        assert_eq!(own.sid(), None);
        let own = Parameters::of("a", "*.memory_target=4G\n");
        assert_eq!((own.instance(), own.takes_pages()), (None, false));
        assert!(!Parameters::is_in("ALTER SYSTEM SET sga_target=4G;\n"));
    }
}
