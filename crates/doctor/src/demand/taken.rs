//! Pages of the pools that running programs hold, beside those of the programs that the files start.

use std::collections::{BTreeMap, BTreeSet};

use host::CpuList;
use host::processes::taken_of_pool;
use host::snapshot::{NodePool, Pool};
use model::Bytes;
use programs::config::given::{FileKind, Guest, SANDBOX};
use programs::{Area, Evidence, Kind, Program};

use super::{Demand, Room, demands};
use crate::facts::{file_name, pages_for, running};

/// What others hold of the pools: a program that is started beside them gets the rest.
pub(super) struct Taken<'e> {
    pub(super) evidence: &'e Evidence,
    own: Own,
}

/// Pages in use that may be those of the files' programs, which may run already.
enum Own {
    /// So many that programs map, by size.
    Known(BTreeMap<Bytes, u64>),
    /// Those of a program of no known kind, or of a file: any of them may be.
    Perhaps,
    /// Processes could not be read. All in use count as those of others, and a shortage for them alone is a hint.
    Unread,
}

impl<'e> Taken<'e> {
    pub(super) fn of(evidence: &'e Evidence, demands: &[Demand]) -> Self {
        let programs = evidence.programs.known().filter(|programs| !programs.is_empty());
        let own = programs.map_or(Own::Unread, |programs| {
            own(programs, demands, evidence.config.is_inside)
        });
        Self { evidence, own }
    }

    /// Is it not known whether the pages in use are those of the files' programs?
    pub(super) fn is_unread(&self) -> bool {
        matches!(self.own, Own::Unread)
    }

    /// Pages in use or promised beside those of the files' programs; 0 where all of them may be theirs.
    pub(super) fn pages(&self, page: Bytes) -> u64 {
        let taken = self.evidence.snapshot.pool(page).and_then(Pool::taken);
        let taken = taken.zip(self.own_of(page));
        taken.map_or(0, |(taken, own)| taken.saturating_sub(own))
    }

    /// Likewise of one node's part, which counts no promised pages. On which nodes the files' programs have theirs is not known.
    pub(super) fn on_node(&self, page: Bytes, part: &NodePool) -> u64 {
        let counts = part
            .nr
            .known()
            .zip(part.free.known())
            .filter(|_| self.own_of(page) == Some(0));
        counts.map_or(0, |(pages, free)| pages.saturating_sub(*free))
    }

    fn own_of(&self, page: Bytes) -> Option<u64> {
        match &self.own {
            Own::Known(own) => Some(own.get(&page).copied().unwrap_or(0)),
            Own::Perhaps => None,
            Own::Unread => Some(0),
        }
    }

    /// The free pages of each node: where other demands were served, what they left.
    pub(super) fn free_by_node(&self, page: Bytes, left: impl Fn(u32) -> Option<u64>) -> Vec<(u32, u64)> {
        let pool = self.evidence.snapshot.pool(page);
        let parts = pool.and_then(|pool| pool.nodes.known()).into_iter().flatten();
        let free = |part: &NodePool| {
            left(part.node).or_else(|| Some(part.nr.known()?.saturating_sub(self.on_node(page, part))))
        };
        parts.filter_map(|part| Some((part.node, free(part)?))).collect()
    }
}

/// Pages that programs map which files may start. Untouched ones count, because the pool counts them as promised.
fn own(programs: &[Program], demands: &[Demand], is_inside: bool) -> Own {
    let (mut own, mut jvms): (Vec<&Area>, Vec<Vec<&Area>>) = (Vec::new(), Vec::new());
    // From within a container not all processes are seen.
    let (mut is_held, mut is_unread) = (false, is_inside);
    for program in programs {
        let hugetlb = program.hugetlb();
        let may_hold = hugetlb.as_ref().map_or(true, |has| has.0 > 0);
        is_held |= may_hold && hugetlb.is_ok();
        is_unread |= hugetlb.is_err();
        let kind = match program.kind.known() {
            Some(Some(kind)) => *kind,
            _ if !may_hold => continue,
            Some(None) if hugetlb.is_ok() => return Own::Perhaps,
            _ => return Own::Unread,
        };
        let is_own = |demand: &&Demand| demand.may_have_started(program, kind, programs);
        let mut askers = demands.iter().filter(is_own).map(|demand| demand.asker).peekable();
        if askers.peek().is_none() {
            continue;
        }
        let areas = program.areas().unwrap_or_default().iter();
        let areas: Vec<&Area> = areas.filter(|area| area.hugetlb_page().is_some()).collect();
        if may_hold && areas.is_empty() {
            return Own::Perhaps;
        }
        match askers.all(|asker| asker == FileKind::Java) {
            true => jvms.push(areas),
            false => own.extend(areas),
        }
    }
    match (is_held, is_unread) {
        (true, _) => {}
        (false, true) => return Own::Unread,
        // Pages without a program may be in files that the next start takes up or removes.
        (false, false) => return Own::Perhaps,
    }
    own.extend(of_jvms(jvms, demands));
    let sizes: BTreeSet<Bytes> = own.iter().filter_map(|area| area.hugetlb_page()).collect();
    // Processes of one program share segments.
    let pages = |page: Bytes| pages_for(taken_of_pool(own.iter().copied(), page), page);
    Own::Known(sizes.into_iter().map(|page| (page, pages(page))).collect())
}

/// The programs that run, and that files which were given may start.
pub(crate) fn programs_of_files(evidence: &Evidence) -> BTreeSet<u32> {
    let demands = Room::of(evidence).map_or_else(|_| Vec::new(), |room| demands(evidence, &room));
    let programs = evidence.programs.known().map_or(&[][..], Vec::as_slice);
    let is_of_files = |program: &&Program| {
        let kind = program.kind.known().copied().flatten();
        kind.is_some_and(|kind| {
            demands
                .iter()
                .any(|demand| demand.may_have_started(program, kind, programs))
        })
    };
    programs.iter().filter(is_of_files).map(Program::pid).collect()
}

/// Each JVM has memory of its own: of several that run, the files start no more than they have, at most the largest.
fn of_jvms<'a>(mut jvms: Vec<Vec<&'a Area>>, demands: &[Demand]) -> impl Iterator<Item = &'a Area> + use<'a> {
    let started = demands.iter().filter(|demand| demand.asker == FileKind::Java).count();
    jvms.sort_by_key(|areas| std::cmp::Reverse(areas.iter().map(|area| area.size()).sum::<Bytes>()));
    jvms.into_iter().take(started).flatten()
}

/// Does Proxmox VE run this guest now? It starts QEMU with `-id` and the number that names the guest's file.
pub(crate) fn runs_by_proxmox(evidence: &Evidence, guest: &Guest) -> bool {
    let file = file_name(&guest.place);
    let number = file.split('.').next().unwrap_or(file);
    let has_number = |words: &[String]| words.windows(2).any(|pair| pair[0] == "-id" && pair[1] == number);
    running(evidence).any(|program| {
        let words = program.arguments.known();
        words.is_some_and(|words| has_number(words)) || guest_name(program) == Some(&*guest.name)
    })
}

/// The name that a guest was started with (`-name guest=NAME,...` of QEMU).
fn guest_name(program: &Program) -> Option<&str> {
    let mut arguments = program.arguments.known()?.iter();
    arguments.find(|word| *word == "-name")?;
    let mut parts = arguments.next()?.split(',');
    let first = parts.clone().next()?;
    Some(parts.find_map(|part| part.strip_prefix("guest=")).unwrap_or(first))
}

impl Demand {
    /// The same, unless it was started as another one.
    fn may_have_started(&self, program: &Program, kind: Kind, all: &[Program]) -> bool {
        self.may_be(program, kind) && !self.is_other(program, all)
    }

    /// May this running program, of that kind, be the one that the file starts?
    fn may_be(&self, program: &Program, kind: Kind) -> bool {
        match self.asker {
            FileKind::Java => kind == Kind::Jvm,
            FileKind::Postgres => kind == Kind::Postgres,
            FileKind::Mysql => kind == Kind::Mysql,
            FileKind::Oracle => kind == Kind::Oracle,
            FileKind::Dpdk => kind == Kind::Dpdk,
            FileKind::Libvirt => kind.is_hypervisor() && self.may_be_guest(program),
            // What runs in a pod may be any; from within a container its group is the root.
            _ => {
                let groups = program.cgroup().ok().flatten();
                groups.is_none_or(|groups| groups.path == "/" || groups.path.contains("kubepods"))
                    && (!kind.is_hypervisor() || self.may_be_of_pod(program))
            }
        }
    }

    /// Was it, or its parent, started as another one of its kind: another instance, on another port, or with other data?
    fn is_other(&self, program: &Program, all: &[Program]) -> bool {
        if self.marks.is_empty() {
            return false;
        }
        let differs = |program: &Program| {
            let set = program.set_by_arguments();
            self.marks.iter().any(|(name, value)| {
                let own = set.iter().rfind(|(own, _)| own == name);
                own.is_some_and(|(_, own)| own.trim_end_matches('/') != value.trim_end_matches('/'))
            })
        };
        let parent = || all.iter().find(|other| program.parent.known() == Some(&other.pid()));
        differs(program) || parent().is_some_and(differs)
    }

    /// May a guest that runs be this one? Kata Containers calls its guests `sandbox-ID`.
    fn may_be_guest(&self, program: &Program) -> bool {
        let Some(name) = guest_name(program) else { return true };
        self.who == name || (self.who == SANDBOX && name.starts_with("sandbox-"))
    }

    /// May it be the guest of this pod? KubeVirt calls it `NAMESPACE_NAME`, and its pod `virt-launcher-NAME-...`.
    fn may_be_of_pod(&self, program: &Program) -> bool {
        let Some(whole) = guest_name(program) else { return true };
        let name = whole.rsplit('_').next().unwrap_or(whole);
        let is_rest = |rest: &str| rest.is_empty() || rest.starts_with('-');
        let is_it = |word: &str| {
            let of_pod = word.strip_prefix("virt-launcher-");
            word == name || of_pod.and_then(|pod| pod.strip_prefix(name)).is_some_and(is_rest)
        };
        self.who.split(' ').any(is_it)
    }
}

/// How a program that is bound to some nodes gets the pages of others, by the free ones of each.
pub(super) fn unbound(free: &[(u32, u64)], nodes: &CpuList, need: u64) -> Option<String> {
    let other = free
        .iter()
        .find(|(node, pages)| !nodes.contains(*node) && *pages >= need);
    let all = free.iter().fold(0_u64, |sum, (_, pages)| sum.saturating_add(*pages));
    match other {
        Some((node, pages)) => Some(format!("or bind it to node {node}, which has {pages} of them free")),
        None if all >= need => Some(format!(
            "or leave out what binds it to node {nodes}: all nodes together have {all} free"
        )),
        None => None,
    }
}
