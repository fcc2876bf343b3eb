//! Kata Containers' configuration: sandboxes whose memory is on huge pages.

use model::Bytes;
use toml::{Table, Value};

use super::guest::{Backing, Guest, Manager, started};
use crate::config::files::{Line, said};
use crate::vms::configured::Asked;

/// The memory of a sandbox without a setting, or with 0.
const DEFAULT_MIB: u64 = 2048;

/// What a file's sandboxes are called: each gets an id when it starts.
pub const SANDBOX: &str = "a sandbox of Kata Containers";

/// The hypervisor of `[hypervisor.qemu]`.
fn section(line: &str) -> Option<&str> {
    line.trim().strip_prefix("[hypervisor.")?.strip_suffix(']')
}

pub(super) fn is_kata(text: &str) -> bool {
    text.lines().any(|line| section(line).is_some())
}

/// One guest for each hypervisor that takes huge pages. `unresolved` gets those of which it is not known how they do.
pub(super) fn guests(path: &str, text: &str, unresolved: &mut Vec<String>) -> Vec<Guest> {
    let lines: Vec<Line<'_>> = said(path, text, &['#']).collect();
    let mut guests = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(hypervisor) = section(line.text) else { continue };
        let own = lines[at + 1..].iter().take_while(|line| !line.text.starts_with('['));
        match guest(hypervisor, &own.collect::<Vec<_>>()) {
            Ok(guest) => guests.extend(guest),
            Err(why) => unresolved.push(why),
        }
    }
    guests
}

/// The guest of a hypervisor, by the lines of its section.
fn guest(hypervisor: &str, lines: &[&Line<'_>]) -> Result<Option<Guest>, String> {
    let switch = last(lines, "enable_hugepages", "true or false", Value::as_bool)?;
    let Some((switch, true)) = switch else { return Ok(None) };
    let from = match hypervisor {
        "qemu" | "dragonball" => Backing::Path("/dev/hugepages".to_owned()),
        "clh" | "cloud-hypervisor" => Backing::Hugetlb(None),
        other => {
            return Err(format!(
                "{}: enable_hugepages of {other} is not judged: which pages it takes is not known",
                switch.place()
            ));
        }
    };
    let whole = |value: &Value| u64::try_from(value.as_integer()?).ok();
    let memory = last(lines, "default_memory", "a whole number of MiB", whole)?;
    let mib = memory.map(|(_, mib)| mib).filter(|mib| *mib > 0);
    let asked = Asked {
        name: Some(SANDBOX.to_owned()),
        memory: vec![(Bytes::mib(mib.unwrap_or(DEFAULT_MIB)), from)],
        prealloc: true,
        ..Asked::default()
    };
    let place = memory.map_or(switch, |(line, _)| line).place();
    Ok(Some(started(&place, asked, Manager::Kata, false)))
}

/// The last setting of a name, and its value.
///
/// # Errors
/// If the value is of another type: Kata Containers does not take the file then.
fn last<'l, 't, T>(
    lines: &[&'l Line<'t>],
    name: &str,
    wanted: &str,
    of: impl Fn(&Value) -> Option<T>,
) -> Result<Option<(&'l Line<'t>, T)>, String> {
    let is_it = |line: &Line<'_>| line.pair().is_some_and(|(key, _)| key == name);
    let Some(line) = lines.iter().rev().copied().find(|line| is_it(line)) else {
        return Ok(None);
    };
    // A line is TOML by itself.
    let table: Option<Table> = line.text.parse().ok();
    match table.as_ref().and_then(|table| of(table.get(name)?)) {
        Some(value) => Ok(Some((line, value))),
        None => {
            let value = line.pair().map_or("", |(_, value)| value);
            Err(format!(
                "{}: {name}: `{value}` is not {wanted}: Kata Containers refuses the file, and this hypervisor is not judged",
                line.place()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Backing, guests};
    use model::Bytes;

    #[test]
    fn a_sandbox_takes_its_memory_from_the_pool_where_it_is_switched_on() {
        let file = |hypervisor: &str, lines: &str| {
            let text =
                format!("[hypervisor.{hypervisor}]\npath = \"/opt/x\"\n{lines}\n[runtime]\nenable_hugepages = false\n");
            let mut unresolved = Vec::new();
            let read = guests("a.toml", &text, &mut unresolved);
            let memory: Vec<_> = read.into_iter().flat_map(|guest| guest.memory).collect();
            (memory, unresolved.len())
        };
        let by_path = |mib| vec![(Bytes::mib(mib), Backing::Path("/dev/hugepages".to_owned()))];
        assert_eq!(
            file("qemu", "default_memory = 512 # MiB\nenable_hugepages = true"),
            (by_path(512), 0)
        );
        assert_eq!(
            file("dragonball", "enable_hugepages=true\n#default_memory = 512"),
            (by_path(2048), 0)
        );
        let by_size = vec![(Bytes::mib(2048), Backing::Hugetlb(None))];
        assert_eq!(file("clh", "enable_hugepages = true\ndefault_memory = 0"), (by_size, 0));
        assert_eq!(file("firecracker", "enable_hugepages = true"), (Vec::new(), 1));
        assert_eq!(
            file("qemu", "enable_hugepages = true\ndefault_memory = 4_096"),
            (by_path(4096), 0)
        );
        for wrong in [
            "enable_hugepages = \"true\"",
            "enable_hugepages = true\ndefault_memory = \"4096\"",
            "enable_hugepages = true\ndefault_memory = 4 GiB",
        ] {
            assert_eq!(file("qemu", wrong), (Vec::new(), 1), "{wrong}");
        }
        assert_eq!(
            file("qemu", "#enable_hugepages = true\ndefault_memory = 8192"),
            (Vec::new(), 0)
        );
    }
}
