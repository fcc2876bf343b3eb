//! Instances of Oracle, as the files of their parameters have them: those that were given, and those below a root that is no running machine.

use model::{Bytes, Unread};

use super::Setting;
use super::files::{Line, all_in, listed, said};
use super::given::is_template;
use crate::oracle::granule;
use crate::vms::configured::size;
use host::Source;

/// What an instance is to have as its SGA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub sga: Bytes,
    /// `sga_max_size` or `sga_target`, with its place, or the pools that are set one by one.
    pub setting: Setting,
    /// `use_large_pages=ONLY`: it does not start where the pool cannot hold all of it.
    pub is_strict: bool,
}

/// Where Oracle's guides put its homes.
const PRODUCTS: &str = "/u01/app/oracle/product";

/// Those of text files (init.ora). On a running machine their owner decides what stands at such a path: there none is read.
pub(super) fn read(source: &Source) -> Result<Vec<Parameters>, Unread> {
    if source.is_live() {
        return Ok(Vec::new());
    }
    let mut instances = Vec::new();
    for version in listed(source, PRODUCTS)? {
        for home in listed(source, &format!("{PRODUCTS}/{version}"))? {
            let directory = format!("{PRODUCTS}/{version}/{home}/dbs");
            let is_own = |name: &str| name.starts_with("init") && name.ends_with(".ora");
            for (_, path, text) in all_in(source, &directory, is_own)? {
                instances.push(Parameters::of(&path, &text));
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

const SIZES: [&str; 4] = ["sga_target", "sga_max_size", "memory_target", "memory_max_target"];
/// Parts of an SGA that is managed by hand. Those that are not set have defaults of their own.
const POOLS: [&str; 16] = [
    "db_cache_size",
    "db_keep_cache_size",
    "db_recycle_cache_size",
    "db_2k_cache_size",
    "db_4k_cache_size",
    "db_8k_cache_size",
    "db_16k_cache_size",
    "db_32k_cache_size",
    "shared_pool_size",
    "large_pool_size",
    "java_pool_size",
    "streams_pool_size",
    "memoptimize_pool_size",
    "inmemory_size",
    "vector_memory_size",
    "log_buffer",
];
const USES: [&str; 5] = ["TRUE", "FALSE", "ONLY", "AUTO", "AUTO_ONLY"];

impl Parameters {
    /// `ORCL1.sga_target` is of that instance alone and wins over `*.sga_target` and `sga_target`, wherever they stand. In a file that has a line of
    /// its own instance, those of others are left out; in others each may be meant.
    pub(super) fn of(path: &str, text: &str) -> Self {
        let lines: Vec<_> = said(path, text, &['#']).flat_map(|line| settings(&line)).collect();
        let own = of_file(path);
        let is_own = |prefix: &String| Some(prefix) == own.as_ref();
        let has_own = lines.iter().any(|(prefix, _)| is_own(prefix));
        let (all, named): (Vec<_>, Vec<_>) = lines
            .into_iter()
            .filter(|(prefix, _)| !has_own || is_all(prefix) || is_own(prefix))
            .partition(|(prefix, _)| is_all(prefix));
        Self {
            path: path.to_owned(),
            settings: all.into_iter().chain(named).map(|(_, setting)| setting).collect(),
        }
    }

    /// Has a text such a line?
    pub(super) fn is_in(text: &str) -> bool {
        let decides = |name: &str| name == "use_large_pages" || is_size(name);
        Self::of("", text).settings.iter().any(|set| decides(&set.name))
    }

    fn last(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rfind(|line| line.name == name)
    }

    /// A size that is not 0.
    fn sized(&self, name: &str) -> Option<(Bytes, &Setting)> {
        let set = self.last(name)?;
        let bytes = bytes(&set.value)?;
        (bytes.0 > 0).then_some((bytes, set))
    }

    /// Values with which the instance does not start.
    pub(super) fn refused(&self) -> impl Iterator<Item = Unread> {
        let own = self.settings.iter().filter(|set| !is_template(&set.value));
        own.filter_map(|set| match set.name.as_str() {
            name if is_size(name) && bytes(&set.value).is_none() => {
                Some(set.garbled("a size such as 8G: the instance does not start with it"))
            }
            "use_large_pages" if !USES.contains(&set.value.as_str()) => {
                Some(set.garbled("TRUE, FALSE, ONLY, AUTO or AUTO_ONLY: the instance does not start with it"))
            }
            _ => None,
        })
    }

    /// Automatic memory management, whose SGA no huge pages back.
    pub fn memory_target(&self) -> Option<&Setting> {
        let target = self.sized("memory_target").or_else(|| self.sized("memory_max_target"));
        target.map(|(_, set)| set)
    }

    /// Is its SGA to be locked? One in files of /dev/shm cannot be (ORA-00847).
    pub fn locks_sga(&self) -> Option<&Setting> {
        let set = self.last("lock_sga").filter(|set| set.value == "TRUE");
        set.filter(|_| self.memory_target().is_none())
    }

    /// May it take huge pages?
    pub fn allows_pages(&self) -> bool {
        self.last("use_large_pages").is_none_or(|set| set.value != "FALSE")
    }

    /// Does it ask for pages of the pool as it is? With AUTO it makes the pool larger by itself.
    fn wants_pages(&self) -> bool {
        let large = self.last("use_large_pages").map(|set| set.value.as_str());
        !matches!(large, Some("FALSE" | "AUTO" | "AUTO_ONLY"))
    }

    /// Does it take them?
    pub fn takes_pages(&self) -> bool {
        self.wants_pages() && self.memory_target().is_none()
    }

    /// The name by which its processes are called: an instance reads the file that has it (`initNAME.ora`).
    pub fn sid(&self) -> Option<String> {
        of_file(&self.path).or_else(|| Some(self.last("instance_name")?.value.clone()))
    }

    /// Does it manage disks for databases (ASM)? Its own memory is small, and is best managed automatically.
    pub fn is_asm(&self) -> bool {
        self.last("instance_type").is_some_and(|set| set.value == "ASM")
    }

    pub fn is_strict(&self) -> bool {
        self.last("use_large_pages").is_some_and(|set| set.value == "ONLY")
    }

    /// The instance, where its SGA has a size. sga_max_size is not below sga_target.
    pub fn instance(&self) -> Option<Instance> {
        let sizes = [self.sized("sga_target"), self.sized("sga_max_size")];
        let (sga, setting) = sizes.into_iter().flatten().max_by_key(|(sga, _)| *sga)?;
        Some(self.with(sga, setting.clone()))
    }

    /// The instance with as much of its SGA as is set: all of it, or else the pools of one that is managed by hand.
    pub fn at_least(&self) -> Option<Instance> {
        let by_hand = || {
            let (sizes, lines): (Vec<Bytes>, Vec<&Setting>) = POOLS.iter().filter_map(|pool| self.sized(pool)).unzip();
            let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
            let sga: Bytes = sizes.into_iter().sum();
            let setting = Setting::new(&lines.first()?.place, names.join(" + "), sga.to_string());
            Some(self.with(sga, setting))
        };
        self.instance().or_else(by_hand)
    }

    fn with(&self, sga: Bytes, setting: Setting) -> Instance {
        Instance {
            sga,
            setting,
            is_strict: self.is_strict(),
        }
    }
}

fn is_size(name: &str) -> bool {
    SIZES.contains(&name) || POOLS.contains(&name)
}

/// A number of bytes, or with one letter for its unit.
fn bytes(value: &str) -> Option<Bytes> {
    let number = value.strip_suffix(['K', 'M', 'G', 'T', 'P', 'E']).unwrap_or(value);
    let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| size(value, 1))?
}

/// The instance that reads a file of that name.
fn of_file(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?.strip_prefix("init")?.strip_suffix(".ora")?;
    (!name.is_empty()).then(|| name.to_ascii_uppercase())
}

/// Is a parameter with that prefix of every instance?
fn is_all(prefix: &str) -> bool {
    matches!(prefix, "" | "*")
}

/// What a line sets, each with its prefix: several parameters may stand on one, with blanks between them.
fn settings(line: &Line<'_>) -> Vec<(String, Setting)> {
    let text = line.text.split('#').next().unwrap_or_default();
    // Where each name begins, and its `=`.
    let mut starts = Vec::new();
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '=') => {
                let name = text[..at].trim_end();
                starts.push((name.rfind([' ', '\t', ',']).map_or(0, |blank| blank + 1), at));
            }
            _ => {}
        }
    }
    if starts.first().is_some_and(|&(start, _)| start > 0) {
        return Vec::new();
    }
    let ends = starts.iter().skip(1).map(|&(start, _)| start).chain([text.len()]);
    let pair = |(&(start, equals), end): (&(usize, usize), usize)| {
        let name = text.get(start..equals)?.trim().to_ascii_lowercase();
        let value = text
            .get(equals + 1..end)?
            .trim()
            .trim_end_matches(',')
            .trim_matches(['\'', '"']);
        let (prefix, name) = name.rsplit_once('.').unwrap_or(("", &name));
        Some((
            prefix.to_ascii_uppercase(),
            line.setting(name, value.to_ascii_uppercase()),
        ))
    };
    starts.iter().zip(ends).filter_map(pair).collect()
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

#[cfg(test)]
mod tests {
    use super::{Instance, Parameters};
    use model::Bytes;

    #[test]
    fn parameters_of_any_form_are_read() {
        let text = "# of DBCA\nORCL.__sga_target=9G\n*.SGA_Target=1025M # bytes\norcl.use_large_pages='only'\n*.memory_target=0\n";
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

    #[test]
    fn an_sga_by_hand_has_at_least_its_pools() {
        let own = Parameters::of(
            "a",
            "ORCL.__db_cache_size=9G\nsga_target=0\ndb_cache_size=8G\nshared_pool_size=2G\nlarge_pool_size=0\n",
        );
        let least = own.at_least().expect("pools");
        assert_eq!((own.instance(), least.sga), (None, Bytes::gib(10)));
        assert_eq!(least.setting.name, "db_cache_size + shared_pool_size");
        let whole = Parameters::of("a", "sga_target=16G\ndb_cache_size=8G\n");
        assert_eq!(whole.at_least(), whole.instance());
        assert!(Parameters::is_in("*.db_cache_size=8G\n"));
        assert_eq!(Parameters::of("a", "db_cache_size=8GB\n").refused().count(), 1);
    }

    #[test]
    fn an_instance_s_own_lines_win_and_those_of_others_are_not_its() {
        let sga = |path: &str, text: &str| Parameters::of(path, text).instance().map(|own| own.sga);
        let both = "ORCL1.sga_target=48G\n*.sga_target=8G\nORCL2.sga_target=16G\n";
        assert_eq!(sga("dbs/initORCL1.ora", both), Some(Bytes::gib(48)));
        assert_eq!(sga("dbs/initORCL2.ora", both), Some(Bytes::gib(16)));
        assert_eq!(sga("spfile.txt", both), Some(Bytes::gib(16)), "of one of them");
        let line = "db_name=ORCL sga_target = 48G, sga_max_size=50G use_large_pages='ONLY'\n";
        let own = Parameters::of("a", line);
        assert_eq!(
            own.instance().map(|own| (own.sga, own.is_strict)),
            Some((Bytes::gib(50), true))
        );
        assert!(Parameters::of("a", "*.instance_type='asm'\n").is_asm());
        let wrong = Parameters::of(
            "a",
            "sga_target=8GB\nuse_large_pages=YES\nsga_max_size=9G\nmemory_target={{ amm }}\n",
        );
        assert_eq!(wrong.refused().count(), 2);
    }
}
