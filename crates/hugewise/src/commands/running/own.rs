//! The pool pages that the program of a goal has already, and whether it asks for such pages.

use host::Source;
use model::{Bytes, PageKind};
use plan::Facts;
use plan::goal::{DatabaseGoal, Want};
use programs::Target;
use programs::config::Settings;

/// What runs for a goal.
pub(in crate::commands) struct Own {
    running: Vec<Target>,
    pub(in crate::commands) asks: bool,
}

impl Own {
    /// Of the process that the goal was read from, or else of the programs that the goal describes.
    pub(in crate::commands) fn of(source: &Source, want: &Want, pid: Option<u32>) -> Self {
        let mut running = super::targets(source, want).unwrap_or_default();
        if let Some(pid) = pid {
            let is_it = |target: &Target| target.main.pid() == pid;
            if running.iter().any(is_it) {
                running.retain(is_it);
            }
        }
        let asks = match want {
            Want::Database(goal) => server_asks(source, goal, &running),
            // The default of use_large_pages.
            Want::Oracle(_) => true,
            _ => running.iter().any(is_asking),
        };
        Self { running, asks }
    }

    /// Pages of this size that it has, touched or reserved. Of several programs that could be meant it is the one with the most.
    pub(in crate::commands) fn pages(&self, page: Bytes) -> u64 {
        self.running.iter().map(|target| pages(target, page)).max().unwrap_or(0)
    }

    /// What a plan has to know of it.
    pub(in crate::commands) fn facts(&self, is_mariadb: bool) -> Facts {
        let groups = |target: &Target| Some(target.main.cgroup().ok()??.path.clone());
        Facts {
            groups: self.running.iter().filter_map(groups).collect(),
            is_mariadb,
            typed: self.typed(),
        }
    }

    /// What the command line of a running server sets.
    pub(in crate::commands) fn typed(&self) -> Settings {
        let first = self.running.first();
        first.map_or_else(Settings::default, |target| target.main.typed())
    }
}

fn pages(target: &Target, page: Bytes) -> u64 {
    let taken = match target.taken().known().map(|taken| taken.of(PageKind::Hugetlb(page))) {
        // Its mappings could not be read: what it has touched is known all the same.
        None | Some(Bytes(0)) => target.main.hugetlb().unwrap_or_default(),
        Some(taken) => taken,
    };
    taken.0 / page.0.max(1)
}

fn is_asking(target: &Target) -> bool {
    let is_java = target.main.jvm().ok().flatten().is_some_and(|jvm| jvm.large_pages);
    let is_guest = target.vm.as_ref().is_some_and(|vm| {
        let configured = vm.configured.known();
        configured.is_some_and(|asked| asked.memory.iter().any(|part| part.kind.is_some()))
    });
    is_java || is_guest || target.main.hugetlb().is_ok_and(|bytes| bytes.0 > 0)
}

/// By what it runs with, or else by its configuration file.
fn server_asks(source: &Source, goal: &DatabaseGoal, running: &[Target]) -> bool {
    let Some(server) = goal.kind.server() else { return false };
    let set = running
        .first()
        .and_then(|target| target.main.details.as_ref()?.setting.known());
    match set {
        Some(set) => (server.asks)(set.as_ref().map(|set| set.value.as_str())),
        None => (server.value_in)(source, &goal.file).is_ok_and(|value| (server.asks)(value.as_deref())),
    }
}
