//! Sums of processes by what they belong to.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use host::{Accounts, Membership, Source};
use model::{Bytes, Reading};

use crate::cli::args::By;
use crate::cli::values::word;
use crate::results::ps::{Group, Groups, ProcessRow, Totals};

/// Sums over groups of `rows`.
pub(super) fn sums(source: &Source, rows: &[ProcessRow], by: By) -> Groups {
    let names = Names::new(source, by);
    let mut members: BTreeMap<Option<String>, Vec<&ProcessRow>> = BTreeMap::new();
    for row in rows {
        for name in names.of(row) {
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

/// Names the groups of a process.
struct Names<'a> {
    source: &'a Source,
    by: By,
    accounts: Accounts,
}

impl<'a> Names<'a> {
    fn new(source: &'a Source, by: By) -> Self {
        let accounts = match by {
            By::User => Accounts::read(source).into_result().unwrap_or_default(),
            _ => Accounts::default(),
        };
        Self { source, by, accounts }
    }

    /// One name, `None` for a process that is in no such group; a control group and all above it.
    fn of(&self, row: &ProcessRow) -> Vec<Option<String>> {
        let membership = || Membership::read(self.source, row.pages.pid).into_result().ok();
        match self.by {
            By::Cgroup => match membership() {
                Some(membership) => membership.with_parents().into_iter().map(Some).collect(),
                None => vec![None],
            },
            By::Container => vec![membership().and_then(|membership| membership.container())],
            By::Unit => vec![membership().and_then(|membership| membership.unit().map(str::to_owned))],
            By::Vm => vec![self.vm(row)],
            By::User => vec![self.user(row)],
        }
    }

    fn vm(&self, row: &ProcessRow) -> Option<String> {
        let vm = programs::vms::vm(self.source, row.pages.pid)?;
        Some(vm.name.unwrap_or_else(|| format!("{} {}", vm.program, vm.pid)))
    }

    fn user(&self, row: &ProcessRow) -> Option<String> {
        match &row.pages.uid {
            Reading::Known(uid) => Some(
                self.accounts
                    .user(*uid)
                    .map_or_else(|| uid.to_string(), |user| user.name.clone()),
            ),
            Reading::Unread(_) => None,
        }
    }
}
