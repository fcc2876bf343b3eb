//! Pods of Kubernetes: what their containers ask of hugetlb pages, and which volumes bring them.

use model::{Bytes, Unread};

use super::garbled::garbled;
use super::ini::Server;
use super::java::Java;
use super::namespaces;
use super::shell::file_name;
use super::starts::Start;
use super::yaml::Node;
use crate::config::Setting;
use crate::{Kind, image_names, in_list};
use host::parse;

/// A pod, or the template of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// `FILE:LINE` of its specification.
    pub place: String,
    /// Its name, or that of what makes it.
    pub name: String,
    /// Its containers, those that run first included.
    pub containers: Vec<Container>,
    pub volumes: Vec<Volume>,
    /// Settings with which it does not start.
    pub(super) refused: Vec<Unread>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// `FILE:LINE`.
    pub place: String,
    pub name: String,
    /// Empty where its operator chooses it.
    pub image: String,
    /// What it starts, the program first.
    pub words: Vec<String>,
    /// `resources.requests`.
    pub requests: Vec<Quantity>,
    /// `resources.limits`.
    pub limits: Vec<Quantity>,
    /// Where its object has these two, in words.
    pub sized_in: &'static str,
    /// Volumes that it mounts, by name.
    pub mounts: Vec<String>,
    /// The directories at which it mounts them.
    pub directories: Vec<String>,
    /// Its environment, as far as it is written there.
    pub environment: Vec<Setting>,
    /// The program in it that is known to ask for hugetlb pages; a server of PostgreSQL may be told not to.
    pub asks: Option<Asks>,
    /// The JVM in it, as far as its command and variables show it.
    pub java: Option<Java>,
    /// The PostgreSQL server in it, with what its command sets.
    pub postgres: Option<Server>,
    /// The MySQL or MariaDB server in it, if its command has `--large-pages`.
    pub mysql: Option<Server>,
    /// `ulimit -l` in a hook of its start: it holds for the hook's shell alone.
    pub hook: Option<Setting>,
}

/// A program that asks for hugetlb pages when there are some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asks {
    /// `FILE:LINE` of what shows it.
    pub place: String,
    pub written: String,
    pub program: &'static str,
    /// How it is told not to ask.
    pub switch: &'static str,
}

/// So much of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// `FILE:LINE`.
    pub place: String,
    /// `memory`, `hugepages-2Mi`, ...
    pub resource: String,
    pub written: String,
    /// In units of the resource: bytes of memory. Parts of a unit (`500m` of a CPU) are left out.
    pub amount: u64,
}

/// A volume on hugetlbfs: `emptyDir: {medium: HugePages-2Mi}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// `FILE:LINE`.
    pub place: String,
    pub name: String,
    /// `HugePages`, `HugePages-2Mi`, ...
    pub medium: String,
}

impl Quantity {
    /// The page size of a hugetlb resource.
    pub fn page(&self) -> Option<Bytes> {
        amount(self.resource.strip_prefix("hugepages-")?).map(Bytes)
    }
}

impl Volume {
    /// The page size that it names.
    pub fn page(&self) -> Option<Bytes> {
        amount(self.medium.strip_prefix("HugePages-")?).map(Bytes)
    }
}

pub(super) const IN_RESOURCES: &str = "its limits and requests";

impl Container {
    /// Bytes of hugetlb pages by size: limits, and requests where there is none.
    pub fn hugetlb(&self) -> Vec<(Bytes, &Quantity)> {
        let limited = |asked: &&Quantity| self.limits.iter().any(|limit| limit.resource == asked.resource);
        let requests = self.requests.iter().filter(|asked| !limited(asked));
        let all = self.limits.iter().chain(requests);
        all.filter_map(|quantity| Some((quantity.page()?, quantity))).collect()
    }

    /// The value of an option of its command, as one word or two.
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut words = self.words.iter().map(String::as_str);
        let rest = words.find_map(|word| {
            word.strip_prefix(name)
                .filter(|rest| rest.is_empty() || rest.starts_with('='))
        })?;
        rest.strip_prefix('=').or_else(|| words.next())
    }
}

pub(super) fn pod(path: &str, object: &Node, spec: &Node) -> Result<Pod, Unread> {
    let lists = ["initContainers", "containers"].map(|key| spec.get(key).map_or(&[][..], Node::items));
    let volumes = spec.get("volumes").map_or(&[][..], Node::items);
    let of_host: Vec<String> = volumes.iter().filter(|node| is_of_host(node)).map(named).collect();
    let containers = lists.concat();
    let containers: Result<Vec<_>, _> = containers.iter().map(|node| container(path, node, &of_host)).collect();
    let sysctls = spec.at(&["securityContext", "sysctls"]).map_or(&[][..], Node::items);
    let refused = sysctls.iter().filter_map(|node| {
        let name = node.get("name")?.text()?;
        namespaces::refused(format!("{path}:{}", node.line), name)
    });
    Ok(Pod {
        refused: refused.collect(),
        place: format!("{path}:{}", spec.line),
        name: named(object.get("metadata").unwrap_or(object)),
        containers: containers?,
        volumes: volumes.iter().filter_map(|node| volume(path, node)).collect(),
    })
}

pub(super) fn named(node: &Node) -> String {
    let name = node.get("name").and_then(Node::text);
    name.unwrap_or("without a name").to_owned()
}

/// The host's own hugetlbfs, at the places and by the names that guides give it: /dev/hugepages, /mnt/hugepages-1G, /var/lib/hugetlbfs.
fn is_of_host(volume: &Node) -> bool {
    let path = volume
        .at(&["hostPath", "path"])
        .and_then(Node::text)
        .unwrap_or_default();
    let is_size =
        |rest: &str| rest.is_empty() || rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let is_name = |part: &str| part == "hugetlbfs" || part.strip_prefix("hugepages").is_some_and(is_size);
    let is_place = ["/dev/", "/mnt/", "/run/", "/var/lib/"]
        .iter()
        .any(|place| path.starts_with(place));
    is_place && path.split('/').any(is_name)
}

/// `of_host` are the volumes that are a hugetlbfs of the host.
fn container(path: &str, node: &Node, of_host: &[String]) -> Result<Container, Unread> {
    let mounts = node.get("volumeMounts").map_or(&[][..], Node::items);
    let variables = node.get("env").map_or(&[][..], Node::items);
    let environment: Vec<Setting> = variables.iter().filter_map(|node| variable(path, node)).collect();
    let lists = ["command", "args"].into_iter().filter_map(|key| node.get(key));
    let words: Vec<&Node> = lists.flat_map(Node::items).collect();
    let start = start(path, node, &words, &environment);
    let postgres = start.server(Kind::Postgres);
    let mysql = start.server(Kind::Mysql).filter(Server::asks);
    let of_mysql = mysql.as_ref().map(|_| Asks {
        place: start.place.clone(),
        written: "--large-pages".to_owned(),
        program: "the server",
        switch: "without --large-pages",
    });
    let asks = asks(path, node, &words, &start).or(of_mysql);
    let of_mount = || {
        let is_written = |mount: &Node| mount.get("readOnly").and_then(Node::text) != Some("true");
        let mount = mounts
            .iter()
            .find(|mount| of_host.contains(&named(mount)) && is_written(mount))?;
        Some(Asks {
            place: format!("{path}:{}", mount.line),
            written: "the host's hugetlbfs".to_owned(),
            program: "a program that maps files there",
            switch: "without that volume",
        })
    };
    let directories = mounts.iter().filter_map(|mount| mount.get("mountPath")?.text());
    Ok(Container {
        asks: asks.or_else(of_mount),
        java: start.java(),
        mysql,
        postgres,
        place: start.place,
        name: named(node),
        image: image(node).unwrap_or_default().to_owned(),
        words: start.words,
        requests: quantities(path, node.at(&["resources", "requests"]))?,
        limits: quantities(path, node.at(&["resources", "limits"]))?,
        sized_in: IN_RESOURCES,
        mounts: mounts.iter().map(named).collect(),
        directories: directories.map(str::to_owned).collect(),
        environment,
        hook: hook(path, node),
    })
}

fn hook(path: &str, node: &Node) -> Option<Setting> {
    let command = node.at(&["lifecycle", "postStart", "exec", "command"])?;
    let mut words = command.items().iter().filter_map(Node::text);
    let word = words.find(|word| word.contains("ulimit -l"))?;
    Some(Setting {
        place: format!("{path}:{}", command.line),
        name: "postStart".to_owned(),
        value: word.to_owned(),
    })
}

/// What it starts: words of a shell's command are words, and an image of PostgreSQL starts it with options alone.
fn start(path: &str, node: &Node, words: &[&Node], environment: &[Setting]) -> Start {
    let words = words.iter().filter_map(|node| node.text());
    let mut words: Vec<String> = words.flat_map(|word| shlex::split(word).unwrap_or_default()).collect();
    let is_option = words.first().is_none_or(|word| word.starts_with('-'));
    if let Some(program) = image(node).and_then(image_names::command).filter(|_| is_option) {
        words.insert(0, program.to_owned());
    }
    Start {
        place: format!("{path}:{}", node.line),
        words,
        environment: environment.to_vec(),
    }
}

fn image(node: &Node) -> Option<&str> {
    node.get("image")?.text()
}

const LARGE: &str = "-XX:+UseLargePages";

/// A JVM with the option in its command or environment; PostgreSQL and PHP's OPcache, which try by default.
fn asks(path: &str, node: &Node, words: &[&Node], start: &Start) -> Option<Asks> {
    let java = |place: String, written: &str| Asks {
        place,
        written: written.to_owned(),
        program: "the JVM",
        switch: "-XX:-UseLargePages",
    };
    let place = |node: &Node| format!("{path}:{}", node.line);
    if let Some(word) = words
        .iter()
        .find(|word| word.text().is_some_and(|text| text.contains(LARGE)))
    {
        return Some(java(place(word), LARGE));
    }
    if let Some(line) = start.environment.iter().find(|line| line.value.contains(LARGE)) {
        return Some(java(line.place.clone(), &format!("{}: {LARGE}", line.name)));
    }
    let by_malloc = start.environment.iter().find_map(|line| Some((line, malloc(line)?)));
    if let Some((line, switch)) = by_malloc {
        return Some(Asks {
            place: line.place.clone(),
            written: format!("{}={}", line.name, line.value),
            program: "malloc",
            switch,
        });
    }
    if let Some(asks) = by_program(node, words, start, place) {
        return Some(asks);
    }
    let image = node.get("image")?;
    let written = image.text()?;
    let (program, switch) = match image_names::program(written) {
        Some(Kind::Postgres) => ("PostgreSQL (huge_pages = try)", "huge_pages = off"),
        _ if words.is_empty() && image_names::has_opcache(written) => (
            "PHP's OPcache",
            "opcache.memory_consumption of an odd number of MB, such as 127 (OPcache asks for whole pages of 2M), or opcache.enable=0",
        ),
        _ => return None,
    };
    Some(Asks {
        place: place(image),
        written: written.to_owned(),
        program,
        switch,
    })
}

/// Programs that map RandomX's memory by MAP_HUGETLB where a pool is: their names, images that start them, and how each does not.
type OfRandomX = (&'static str, &'static [&'static str], &'static str, &'static str);
const OF_RANDOMX: [OfRandomX; 2] = [
    (
        "monerod",
        &["monerod", "simple-monerod"],
        "monerod",
        "MONERO_RANDOMX_UMASK=1 in its environment",
    ),
    ("xmrig", &["xmrig"], "XMRig", "--no-huge-pages"),
];

/// The program of a command, behind a shell or numactl; none where there are options alone.
fn called(command: &[String]) -> Option<&str> {
    let is_before = |word: &String| {
        word.starts_with('-')
            || word.contains('=')
            || ["sh", "bash", "ash", "exec", "numactl"].contains(&file_name(word))
    };
    let program = command.iter().find(|word| !is_before(word))?;
    Some(file_name(program)).filter(|_| !command[0].starts_with('-'))
}

/// By its command, or by its image where it has none: programs of RandomX, and Ray, whose object store is configured to take them.
fn by_program(node: &Node, words: &[&Node], start: &Start, place: impl Fn(&Node) -> String) -> Option<Asks> {
    let is_called = |name: &str| called(&start.words) == Some(name);
    let of_ray = words
        .iter()
        .find(|word| is_called("ray") && word.text().is_some_and(|text| text.contains("--huge-pages")));
    if let Some(word) = of_ray {
        return Some(Asks {
            place: place(word),
            written: "--huge-pages".to_owned(),
            program: "Ray's object store",
            switch: "without --huge-pages and --plasma-directory",
        });
    }
    let image = image(node).unwrap_or_default();
    let has_command = start.words.first().is_some_and(|word| !word.starts_with('-'));
    let is_image = |names: &[&str]| !has_command && names.contains(&image_names::name(image));
    let (name, _, program, switch) = OF_RANDOMX
        .into_iter()
        .find(|(name, images, ..)| is_called(name) || is_image(images))?;
    // Its first bit is that of huge pages. It may be hexadecimal.
    let masks = |line: &Setting| {
        let last = line.value.chars().next_back().and_then(|digit| digit.to_digit(16));
        line.name == "MONERO_RANDOMX_UMASK" && last.is_some_and(|digit| digit % 2 == 1)
    };
    if start.words.iter().any(|word| word == switch) || (name == "monerod" && start.environment.iter().any(masks)) {
        return None;
    }
    let written = if is_called(name) { name } else { image };
    Some(Asks {
        place: place(words.first().copied().or_else(|| node.get("image"))?),
        written: written.to_owned(),
        program,
        switch,
    })
}

/// Does a variable make malloc ask for pages of a pool? How it does not.
fn malloc(line: &Setting) -> Option<&'static str> {
    match line.name.as_str() {
        "HUGETLB_MORECORE" if !matches!(&*line.value, "no" | "thp") => Some("without HUGETLB_MORECORE"),
        // A size of its own may be that of another pool.
        "GLIBC_TUNABLES" if in_list(&line.value, "glibc.malloc.hugetlb") == Some("2") => {
            Some("glibc.malloc.hugetlb=1, which asks for THP")
        }
        _ => None,
    }
}

fn variable(path: &str, node: &Node) -> Option<Setting> {
    Some(Setting {
        place: format!("{path}:{}", node.line),
        name: node.get("name")?.text()?.to_owned(),
        value: node.get("value")?.text()?.to_owned(),
    })
}

fn volume(path: &str, node: &Node) -> Option<Volume> {
    let medium = node.at(&["emptyDir", "medium"])?;
    let text = medium.text()?;
    text.starts_with("HugePages").then(|| Volume {
        place: format!("{path}:{}", medium.line),
        name: named(node),
        medium: text.to_owned(),
    })
}

pub(super) fn quantities(path: &str, node: Option<&Node>) -> Result<Vec<Quantity>, Unread> {
    let entries = node.map_or(&[][..], Node::entries).iter();
    entries.map(|(resource, node)| quantity(path, resource, node)).collect()
}

pub(super) fn quantity(path: &str, resource: &str, node: &Node) -> Result<Quantity, Unread> {
    let written = node.text().unwrap_or_default();
    let known = amount(written).ok_or_else(|| garbled(path, node.line, written, "a quantity such as 512Mi"));
    Ok(Quantity {
        place: format!("{path}:{}", node.line),
        resource: resource.to_owned(),
        written: written.to_owned(),
        amount: known?,
    })
}

/// Suffixes of quantities, binary and decimal.
const SUFFIXES: [(&str, u64); 11] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("k", 1000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("", 1),
];

/// `2Gi`, `512Mi`, `1.5G`, `250m`, `100`.
pub(super) fn amount(text: &str) -> Option<u64> {
    if let Some(milli) = text.strip_suffix('m') {
        return milli.parse::<u64>().ok().map(|milli| milli / 1000);
    }
    let (suffix, unit) = SUFFIXES.into_iter().find(|(suffix, _)| text.ends_with(suffix))?;
    let number = text.strip_suffix(suffix)?;
    match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(unit),
        Err(_) => Some((parse::amount(number)? * unit as f64) as u64),
    }
}
