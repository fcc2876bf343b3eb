//! Around the table of processes: sums by group, NUMA nodes, pages that no process maps, reasons.

use host::processes::{Held, Holder, Missed, NodePages};
use model::{Bytes, Reading};

use super::cells::{amount, by_kind, kinds_in_words, share};
use crate::results::ps::{Group, Groups, ProcessRow};
use draw::{Lines, Sheet, columns, counted, lines, or, or_empty};

/// One row for each group; control groups by depth.
pub(super) fn groups(groups: &Groups) -> Sheet {
    let asked = groups.groups.iter().any(|group| group.missed.0 > 0);
    let first = columns![|group| &Group;
        (groups.by.clone()) => name(groups, group), "#processes" => group.totals.processes,
        "#resident" => group.totals.resident,
    ];
    let huge = columns![|group| &Group; "#huge, %" => share(Some(&group.totals.backing))];
    let missed = columns![|group| &Group; "#could be huge" => amount(group.missed)];
    let last = columns![|group| &Group; "#page tables" => group.totals.page_tables];
    let fields = first
        .into_iter()
        .chain(by_kind(&groups.groups, |group| Some(&group.totals.backing)));
    let missed = missed.into_iter().filter(|_| asked);
    let fields = fields.chain(huge).chain(missed).chain(last);
    let mut sheet = Sheet::of(&format!("Page kinds by {}", groups.by), fields, groups.groups.iter());
    if groups.by == "cgroup" {
        sheet.note("a control group counts those below it too");
    }
    sheet
}

/// Below the root a control group shows its own name only, further in by its depth.
fn name(groups: &Groups, group: &Group) -> String {
    let Some(name) = &group.name else {
        return "(none)".to_owned();
    };
    match name.rsplit_once('/') {
        Some((above, own)) if groups.by == "cgroup" && name != "/" => {
            format!("{}{own}", "  ".repeat(above.matches('/').count() + 1))
        }
        _ => name.clone(),
    }
}

/// The same for scripts, with whole paths.
pub(super) fn groups_csv(groups: &Groups) -> Lines<'_> {
    let fields = columns![|group| &Group;
        name => group.name.as_ref()?, processes => group.totals.processes, resident => group.totals.resident.0,
        hugetlb => group.totals.hugetlb.0, page_tables => group.totals.page_tables.0,
        large => group.totals.backing.large().0, backing => group.totals.backing, unread => group.totals.unread,
        missed => group.missed.0,
    ];
    lines(fields, groups.groups.iter())
}

/// Where the pages of each process lie; nothing where that was not asked for.
pub(super) fn nodes(rows: &[ProcessRow]) -> Option<Sheet> {
    let fields = columns![|(row, node)| (&ProcessRow, &NodePages);
        "#pid" => row.pages.pid, "name" => row.pages.name, "#node" => node.node, "#resident" => node.total(),
        "backing" => kinds_in_words(&node.backing), "#base or thp" => amount(node.base_or_thp),
    ];
    let asked = rows.iter().filter_map(|row| Some((row, row.nodes.as_ref()?)));
    let known = asked.clone().flat_map(|(row, nodes)| {
        let nodes = nodes.known().into_iter().flatten();
        nodes.map(move |node| (row, node))
    });
    let mut sheet = Sheet::of("NUMA nodes", fields, known);
    for (row, why) in asked.clone().filter_map(|(row, nodes)| Some((row, nodes.unread()?))) {
        sheet.note(format!("{} ({}): not known: {why}", row.pages.name, row.pages.pid));
    }
    (asked.count() > 0).then_some(sheet)
}

/// Holders of pages of a pool that no process maps; empty if there are none.
pub(super) fn held(held: &Reading<Held>) -> Option<Sheet> {
    let held = match held {
        Reading::Known(held) => held,
        // A kernel without pools has nothing to hold.
        Reading::Unread(why) if why.unread == model::Cause::Absent => return None,
        Reading::Unread(why) => {
            let mut sheet = Sheet::new("Pool pages that no process maps", ["held by"]);
            sheet.note(format!("not known: {why}"));
            return Some(sheet);
        }
    };
    if held.holders.is_empty() {
        return None;
    }
    let fields = columns![|holder| &Holder;
        "held by" => format!("{}{}", holder.kind.title(), if holder.sure { "" } else { " (?)" }),
        "name" => holder.name, "#bytes" => holder.bytes, "#page" => or(holder.page.map(Bytes::exact), "?"),
        "#uid" => holder.uid, "#pid" => holder.pid?,
    ];
    let mut sheet = Sheet::of("Pool pages that no process maps", fields, held.holders.iter());
    sheet.note(held_note(held));
    if held.holders.iter().any(|holder| !holder.sure) {
        sheet.note(
            "(?) may as well be on base pages: the kernel does not say, and the pool's account does not prove it",
        );
    }
    Some(sheet)
}

fn held_note(held: &Held) -> String {
    let denied = (held.denied > 0).then(|| {
        let denied = counted(held.denied as usize, "process");
        format!("; the mappings of {denied} could not be read, and may hold some of it")
    });
    let denied = or_empty(denied);
    format!("{} of {} in use in pools{denied}", held.total(), held.used)
}

/// Every reason for base pages of one process in a sentence, and what the kernel counted.
pub(super) fn reasons(sheet: &mut Sheet, missed: Option<&Reading<Missed>>, hints: &[String]) {
    let missed = missed.and_then(Reading::known).into_iter();
    for (reason, bytes) in missed.flat_map(|missed| &missed.why) {
        sheet.note(format!("huge pages could back {bytes}: {reason}"));
    }
    hints.iter().for_each(|hint| sheet.note(hint));
}
