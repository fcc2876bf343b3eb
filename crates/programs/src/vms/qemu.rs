//! QEMU's command line, as users and libvirt write it. Pure. The options are documented in QEMU's `qemu-options.hx`.

use model::Bytes;
use serde_json::Value;

use super::configured::{Asked, Backing, is_on, options, parts, size, value};
use crate::kind::Known;

pub(crate) const KNOWN: Known = Known {
    has_signs: |name, _| is_program(name),
    is_hypervisor: true,
    ..Known::new("QEMU", &["qemu"], &[])
};

/// QEMU's memory without `-m`.
const DEFAULT: Bytes = Bytes::mib(128);
const MIB: u64 = 1 << 20;

/// Is a file of this name QEMU?
pub(crate) fn is_program(name: &str) -> bool {
    name.starts_with("qemu-system-") || name == "qemu-kvm" || name == "kvm"
}

pub(crate) fn parse(argv: &[String]) -> Asked {
    let mut objects: Vec<Object> = options(argv, "object").into_iter().filter_map(Object::parse).collect();
    // A machine's memory is either that of -m or all in backends. Those of DIMMs are beside it.
    let devices: Vec<_> = options(argv, "device").into_iter().filter_map(fields).collect();
    let device_of = |object: &Object| {
        let is_its = |device: &&Vec<(String, String)>| value(device, "memdev") == Some(object.id.as_str());
        devices.iter().find(is_its)
    };
    let is_a = |device: &[(String, String)], kind: &str| {
        let driver = value(device, "driver").or_else(|| bare(device));
        driver.is_some_and(|driver| driver.starts_with(kind))
    };
    // What guests share among themselves is no memory of theirs, and virtio-mem takes what is requested of it.
    objects.retain(|object| device_of(object).is_none_or(|device| !is_a(device, "ivshmem")));
    for object in &mut objects {
        if let Some(device) = device_of(object).filter(|device| is_a(device, "virtio-mem")) {
            let requested = value(device, "requested-size").and_then(|text| size(text, 1));
            object.size = requested.unwrap_or_default();
        }
    }
    objects.retain(|object| object.size.0 > 0);
    let is_beside = |object: &Object| device_of(object).is_some() || is_unused(argv, object);
    if objects.iter().all(is_beside) {
        objects.insert(0, Object::main(argv));
    }
    Asked {
        bound: objects.iter().map(|object| object.bound.clone()).collect(),
        name: options(argv, "name").last().map(|text| name(text)),
        memory: objects
            .iter()
            .map(|object| (object.size, object.from.clone()))
            .collect(),
        prealloc: argv.iter().any(|word| word.trim_start_matches('-') == "mem-prealloc")
            || objects.iter().any(|object| object.prealloc),
        shared: objects.iter().all(|object| object.shared),
    }
}

/// The first backend on huge pages that no part of the guest uses.
pub(crate) fn unused(argv: &[String]) -> Option<String> {
    let mut objects = options(argv, "object").into_iter().filter_map(Object::parse);
    objects.find(|object| is_unused(argv, object)).map(|object| object.id)
}

/// Is it on huge pages, and does no other option name it? QEMU makes the memory of -m itself then.
fn is_unused(argv: &[String], object: &Object) -> bool {
    // What a variable of the shell holds may be its name.
    let is_name = |part: &str| part == object.id || part.starts_with('$');
    let names = |word: &String| word.split([',', '=', ':', '"']).any(is_name);
    // A machine has an id of its own, such as `pc.ram`, and accepts that for its memory alone.
    let may_be = object.from != Backing::Any && !object.id.ends_with(".ram");
    may_be && !argv.iter().any(|word| !word.contains("memory-backend-") && names(word))
}

/// Why QEMU does not start, in its own words (hw/core/machine.c).
pub(crate) fn refused(argv: &[String]) -> Option<&'static str> {
    let machines = [options(argv, "machine"), options(argv, "M")].concat();
    let of_machine = |text: &&str| Some(value(&parts(text), "memory-backend")?.to_owned());
    let id = machines.iter().rev().find_map(of_machine)?;
    let mut objects = options(argv, "object").into_iter().filter_map(Object::parse);
    let backend = objects.find(|object| object.id == id)?;
    let memory = main_memory(options(argv, "m").last()?)?;
    (memory != backend.size).then_some("Machine memory size does not match the size of the memory backend")
}

/// `guest=NAME,...` or `NAME,...`.
fn name(text: &str) -> String {
    let parts = parts(text);
    let first = parts.first().map(|(key, _)| key.clone()).unwrap_or_default();
    value(&parts, "guest").map_or(first, str::to_owned)
}

/// `SIZE` or `size=SIZE,slots=..`, in MiB where no unit is written.
fn main_memory(text: &str) -> Option<Bytes> {
    let parts = parts(text);
    size(value(&parts, "size").or_else(|| bare(&parts))?, MIB)
}

/// What the first part says, if that is no pair.
fn bare(parts: &[(String, String)]) -> Option<&str> {
    let (key, value) = parts.first()?;
    value.is_empty().then_some(key)
}

/// A memory backend.
#[derive(Default)]
struct Object {
    id: String,
    size: Bytes,
    from: Backing,
    bound: Option<String>,
    prealloc: bool,
    shared: bool,
}

impl Object {
    /// That of -m, which QEMU makes itself.
    fn main(argv: &[String]) -> Self {
        let size = options(argv, "m").last().and_then(|text| main_memory(text));
        let path = options(argv, "mem-path").last().copied();
        Self {
            size: size.unwrap_or(DEFAULT),
            from: path.map_or(Backing::Any, |path| Backing::Path(path.to_owned())),
            ..Self::default()
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let parts = fields(text)?;
        let kind = value(&parts, "qom-type").or_else(|| bare(&parts))?;
        let kind = kind.strip_prefix("memory-backend-")?;
        let page = value(&parts, "hugetlbsize").and_then(|text| size(text, 1));
        let from = match kind {
            "file" => Backing::Path(value(&parts, "mem-path")?.to_owned()),
            "memfd" if is_on(&parts, "hugetlb") => Backing::Hugetlb(page),
            _ => Backing::Any,
        };
        Some(Self {
            id: value(&parts, "id").unwrap_or_default().to_owned(),
            size: size(value(&parts, "size")?, 1)?,
            from,
            bound: bound(&parts),
            prealloc: is_on(&parts, "prealloc"),
            // A memfd is shared unless it is said not to be, and shm always.
            shared: is_on(&parts, "share") || kind == "shm" || (kind == "memfd" && value(&parts, "share").is_none()),
        })
    }
}

/// The nodes of `host-nodes`, which QEMU writes once for each range; `preferred` binds to none.
fn bound(parts: &[(String, String)]) -> Option<String> {
    if value(parts, "policy") != Some("bind") {
        return None;
    }
    let nodes = parts.iter().filter(|(key, _)| key == "host-nodes");
    let nodes: Vec<String> = nodes
        .map(|(_, nodes)| nodes.trim_matches(['[', ']']).to_owned())
        .collect();
    Some(nodes.join(",")).filter(|nodes| !nodes.is_empty())
}

/// The parts of an option, which libvirt may write as JSON.
fn fields(text: &str) -> Option<Vec<(String, String)>> {
    match text.starts_with('{') {
        true => json(text),
        false => Some(parts(text)),
    }
}

/// libvirt writes objects as JSON.
fn json(text: &str) -> Option<Vec<(String, String)>> {
    let Value::Object(fields) = serde_json::from_str(text).ok()? else {
        return None;
    };
    let text = |value: Value| match value {
        Value::String(text) => text,
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    };
    Some(fields.into_iter().map(|(key, value)| (key, text(value))).collect())
}
