//! Instances and profiles of Incus and LXD, as `incus config show` and `incus profile show` print them, or in a file for `init --preseed`.

use model::{Bytes, Cause, Unread};

use super::garbled::empty;
use super::guest::{Backing, Guest, Manager};
use super::units::{factor, number_and_unit};
use super::yaml::{self, Node};

const HUGE: &str = "limits.memory.hugepages";
const OF_CONTAINER: &str = "limits.hugepages.";

/// Lines that only such files have.
pub(super) fn is_instance(text: &str) -> bool {
    let is_ours = |line: &str| line.starts_with(HUGE) || line.starts_with(OF_CONTAINER);
    text.lines().any(|line| is_ours(line.trim_start()))
}

/// Virtual machines on huge pages; limits of containers that come to nothing go to `bad`. A machine of unknown size is an error only where
/// nothing else was found: its memory may be in another profile.
pub(super) fn parse(path: &str, text: &str, bad: &mut Vec<Unread>) -> Result<Vec<Guest>, Unread> {
    let (mut guests, mut is_any, mut unknown, known_bad) = (Vec::new(), false, None, bad.len());
    let documents = yaml::documents(path, text)?;
    for holder in documents.iter().flat_map(holders) {
        // What profiles set is in the expanded one as well.
        let Some(config) = holder.get("expanded_config").or_else(|| holder.get("config")) else {
            continue;
        };
        is_any = true;
        let name = holder.text_of("name").unwrap_or("the instance");
        let is_on = |node: &Node| {
            let word = node.text().unwrap_or_default().to_ascii_lowercase();
            ["true", "1", "yes", "on"].contains(&word.as_str())
        };
        // A container takes no notice of it.
        let may_take = holder.text_of("type") != Some("container");
        if let Some(huge) = config.get(HUGE).filter(|node| may_take && is_on(node)) {
            match machine(name, config, huge) {
                Ok(guest) => guests.push(guest),
                Err(why) => unknown = Some(why),
            }
        }
        let limits = config
            .entries()
            .iter()
            .filter_map(|(key, node)| Some((key.strip_prefix(OF_CONTAINER)?, node)));
        bad.extend(limits.filter_map(|(size, node)| too_small(size, node)));
    }
    match unknown {
        Some(why) if guests.is_empty() && bad.len() == known_bad => Err(why),
        _ if is_any => Ok(guests),
        _ => Err(empty(
            path,
            "it has no `config:`, as an instance or a profile of Incus has",
        )),
    }
}

/// A node and all below it: an instance or a profile is a document of its own, or one of a list that a preseed or an answer of the API holds.
fn holders(node: &Node) -> Vec<&Node> {
    let items = node.items().iter();
    let below = items.chain(node.entries().iter().map(|(_, node)| node));
    std::iter::once(node).chain(below.flat_map(holders)).collect()
}

/// QEMU gets whole MiB, and takes them all at start from the first hugetlbfs that is mounted.
fn machine(name: &str, config: &Node, huge: &Node) -> Result<Guest, Unread> {
    // It may be one of a profile, which counts as its own does.
    let unknown = || {
        let why = "limits.memory is not in it, and says how many pages it takes: give `incus config show --expanded` of an instance";
        Unread::new(Cause::Garbled, huge.place(), why)
    };
    let node = config.get("limits.memory").ok_or_else(unknown)?;
    let wanted = "an amount such as 12GiB: a share is one of the host's memory, which is not known here";
    let memory = node.text().and_then(amount).ok_or_else(|| node.garbled(wanted))?;
    let memory = Bytes(memory.0 >> 20 << 20);
    Ok(Guest {
        place: huge.place(),
        name: name.to_owned(),
        memory: vec![(memory, Backing::Hugetlb(None))],
        bound: vec![None],
        prealloc: true,
        manager: Manager::Qemu,
        ..Guest::default()
    })
}

/// A limit in bytes that was meant to be a count of pages: less than one page is none.
fn too_small(size: &str, node: &Node) -> Option<Unread> {
    let page: Bytes = size.trim_end_matches('B').parse().ok()?;
    let written = node.text()?;
    let limit = amount(written).filter(|limit| limit.0 > 0 && *limit < page)?;
    let why = format!(
        "limits.hugepages.{size} is in bytes: {} are less than one page, so the container gets none; write it with a unit, such as 1GiB",
        limit.0
    );
    Some(Unread::new(Cause::Garbled, node.place(), why))
}

/// Decimal and binary units (`instances-limit-units`); a number alone is bytes.
fn amount(written: &str) -> Option<Bytes> {
    let (number, unit) = number_and_unit(written.trim());
    let factor = match unit {
        "" | "bytes" => 1,
        unit => factor(unit.strip_suffix('B')?)?,
    };
    number.trim().parse::<u64>().ok()?.checked_mul(factor).map(Bytes)
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::{amount, parse};

    #[test]
    fn units_are_decimal_or_binary() {
        assert_eq!(amount("12GB"), Some(Bytes(12_000_000_000)));
        assert_eq!(amount("12GiB"), Some(Bytes::gib(12)));
        assert_eq!(amount("512"), Some(Bytes(512)));
        assert_eq!(amount("50%"), None);
    }

    #[test]
    fn a_limit_without_a_unit_is_less_than_a_page() {
        let mut bad = Vec::new();
        let text =
            "config:\n  limits.hugepages.2MB: \"512\"\n  limits.hugepages.1GB: 4GiB\n  limits.hugepages.64KB: 0\n";
        assert!(parse("p.yaml", text, &mut bad).expect("a profile").is_empty());
        assert_eq!(bad.len(), 1, "{bad:?}");
        assert!(bad[0].why.contains("512 are less than one page"), "{bad:?}");
    }

    #[test]
    fn a_preseed_holds_profiles_and_instances() {
        let mut bad = Vec::new();
        let text = "config:\n  core.https_address: '[::]:8443'\nprofiles:\n- name: huge\n  config:\n    limits.hugepages.2MB: \"512\"\n\
                    instances:\n- name: vm\n  config:\n    limits.memory: 4GiB\n    limits.memory.hugepages: \"true\"\n";
        let guests = parse("preseed.yaml", text, &mut bad).expect("a preseed");
        let named: Vec<&str> = guests.iter().map(|guest| guest.name.as_str()).collect();
        assert_eq!((named, guests[0].place.as_str()), (vec!["vm"], "preseed.yaml:11"));
        assert_eq!(bad.len(), 1, "{bad:?}");
        let profiles = "profiles:\n- name: huge\n  config:\n    limits.memory.hugepages: \"true\"\n";
        assert!(
            parse("alone.yaml", profiles, &mut bad).is_err(),
            "how many is not known"
        );
        let more = format!("{profiles}- name: few\n  config:\n    limits.hugepages.2MB: \"512\"\n");
        assert_eq!(parse("preseed.yaml", &more, &mut bad).expect("a preseed"), []);
        assert_eq!(bad.len(), 2, "{bad:?}");
        let list = "- name: vm\n  config: {}\n  expanded_config:\n    limits.memory: 4GiB\n    limits.memory.hugepages: \"true\"\n";
        assert_eq!(parse("list.yaml", list, &mut bad).expect("a list").len(), 1);
        let of_type = |kind: &str, bad: &mut Vec<_>| parse("c.yaml", &format!("{list}  type: {kind}\n"), bad);
        let counts = ["virtual-machine", "container"].map(|kind| of_type(kind, &mut bad).expect("a list").len());
        assert_eq!(counts, [1, 0]);
    }
}
