//! Kata Containers' configuration: sandboxes whose memory is on huge pages.

use model::Bytes;

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
        let own: Vec<&Line<'_>> = own.collect();
        let Some((switch, _)) = last(&own, "enable_hugepages").filter(|(_, value)| *value == "true") else {
            continue;
        };
        let from = match hypervisor {
            "qemu" | "dragonball" => Backing::Path("/dev/hugepages".to_owned()),
            "clh" | "cloud-hypervisor" => Backing::Hugetlb(None),
            other => {
                let place = switch.place();
                unresolved.push(format!(
                    "{place}: enable_hugepages of {other} is not judged: which pages it takes is not known"
                ));
                continue;
            }
        };
        let memory = last(&own, "default_memory");
        let mib = memory
            .and_then(|(_, mib)| mib.parse::<u64>().ok())
            .filter(|mib| *mib > 0);
        let asked = Asked {
            name: Some(SANDBOX.to_owned()),
            memory: vec![(Bytes::mib(mib.unwrap_or(DEFAULT_MIB)), from)],
            prealloc: true,
            ..Asked::default()
        };
        let place = memory.map_or(switch, |(line, _)| line).place();
        guests.push(started(&place, asked, Manager::Kata, false));
    }
    guests
}

/// The last setting of a name, with its value.
fn last<'l, 't>(lines: &[&'l Line<'t>], name: &str) -> Option<(&'l Line<'t>, &'t str)> {
    lines.iter().rev().find_map(|line| {
        let (key, value) = line.pair()?;
        let value = value.split('#').next().unwrap_or_default().trim();
        (key == name).then_some((*line, value))
    })
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
            file("qemu", "#enable_hugepages = true\ndefault_memory = 8192"),
            (Vec::new(), 0)
        );
    }
}
