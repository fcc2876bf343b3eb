//! Sums of processes by what they belong to.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use host::{Accounts, Membership, Source};
use model::Bytes;

use crate::cli::args::By;
use crate::cli::values::word;
use crate::results::ps::{Group, Groups, ProcessRow, Totals};
use draw::or;

/// Sums over groups of `rows`.
pub(super) fn sums(source: &Source, rows: &[ProcessRow], by: By) -> Groups {
    let accounts = match by {
        By::User => Accounts::read(source).into_result().unwrap_or_default(),
        _ => Accounts::default(),
    };
    let mut members: BTreeMap<Option<String>, Vec<&ProcessRow>> = BTreeMap::new();
    for row in rows {
        for name in names(source, row, by, &accounts) {
            members.entry(name).or_default().push(row);
        }
    }
    let mut groups: Vec<Group> = members.into_iter().map(|(name, rows)| group(name, &rows)).collect();
    if by != By::Cgroup {
        groups.sort_by_key(|group| (group.name.is_none(), Reverse(group.totals.resident)));
    }
    Groups { by: word(&by), groups }
}

fn group(name: Option<String>, rows: &[&ProcessRow]) -> Group {
    let missed = rows.iter().map(|row| row.missed_bytes());
    Group {
        name,
        totals: Totals::of(rows.iter().copied()),
        missed: Bytes(missed.fold(0, |sum, bytes| sum.saturating_add(bytes.0))),
    }
}

/// The groups of a process by name, `None` where it is in no such group; a control group and all above it.
fn names(source: &Source, row: &ProcessRow, by: By, accounts: &Accounts) -> Vec<Option<String>> {
    let membership = || Membership::read(source, row.pages.pid).into_result().ok();
    match by {
        By::Cgroup => match membership() {
            Some(membership) => membership.with_parents().into_iter().map(Some).collect(),
            None => vec![None],
        },
        By::Container => vec![membership().and_then(|membership| membership.container())],
        By::Unit => vec![membership().and_then(|membership| membership.unit().map(str::to_owned))],
        By::Vm => {
            let vm = programs::vms::vm(source, row.pages.pid);
            vec![vm.map(|vm| vm.name.unwrap_or_else(|| format!("{} {}", vm.program, vm.pid)))]
        }
        By::User => {
            let name = |uid: &u32| or(accounts.user(*uid).map(|user| &user.name), &uid.to_string());
            vec![row.pages.uid.known().map(name)]
        }
    }
}
