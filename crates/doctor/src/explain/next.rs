//! What to do next: steps from here to huge pages, or from huge pages to a verdict. None of them ends with an error.

use host::groups::TooLow;
use host::processes::{Coverage, Reason};
use model::Bytes;
use model::findings::Finding;
use programs::{Area, Kind, Listens, Target};

use super::demand::{self, HEAP_AT, Limited, of_allocators};
use super::heap::largest_heap;
use super::{Command, InUse, Needs, Part, PartKind, Server, Step, Why};
use crate::facts::{container, service};

/// Less anonymous memory is not worth a comparison in place.
const WORTH: Bytes = Bytes::mib(16);

/// What the steps depend on.
pub(super) struct State<'a> {
    pub(super) target: &'a Target,
    pub(super) kind: Option<Kind>,
    pub(super) in_use: InUse,
    pub(super) why: &'a [Why],
    pub(super) parts: &'a [Part],
    pub(super) findings: &'a [Finding],
    /// May this user not read its mappings?
    pub(super) is_denied: bool,
    /// The page that private memory of a running process can be collapsed into; `None` if this kernel cannot do that.
    pub(super) collapsed: Option<Bytes>,
    /// Can it see which pages of a running process are huge, as a comparison in place does?
    pub(super) is_scanned: bool,
    /// Limits of control groups that forbid its pages.
    pub(super) limited: Option<&'a Limited>,
}

/// The steps, in order; none where there is nothing to gain.
pub(super) fn next(state: &State<'_>) -> Vec<Step> {
    let State {
        target, in_use, why, ..
    } = *state;
    if state.is_denied {
        return vec![Step::ExplainAsRoot];
    }
    if let Some((needs, limits)) = state.limited {
        return state.raised(*needs, limits);
    }
    let restart = || state.restart();
    let plan = || state.goal().map(|goal| Step::Plan { goal }).into_iter();
    match why.first() {
        Some(Why::NoRoomToGrow { .. }) => plan().chain([Step::Explain]).collect(),
        Some(Why::Lowered { .. }) => plan().chain([restart(), Step::Explain]).collect(),
        _ if in_use == InUse::Yes => state.compare(),
        Some(Why::Restart { .. }) => vec![restart(), Step::Explain],
        Some(Why::Barred { .. }) if state.kind == Some(Kind::Jvm) => {
            vec![state.may_take_segments(), restart(), Step::Explain]
        }
        Some(Why::PoolShort { .. } | Why::Barred { .. }) => plan().chain([restart(), Step::Explain]).collect(),
        Some(Why::NotAsked { setting }) => {
            let place = demand::place(target, setting)
                .or_else(|| target.configuration())
                .unwrap_or_else(|| target.main.file("cmdline"));
            // A plan is refused while the command line stands against it.
            let is_typed = setting == demand::MMAP && place == target.main.file("cmdline");
            let set = Step::Set {
                setting: setting.clone(),
                place,
            };
            let anew = plan().filter(|_| !is_typed).chain([set, restart(), Step::Explain]);
            anew.chain(state.in_place()).collect()
        }
        Some(Why::HeapFile { .. }) => vec![state.without(HEAP_AT), restart(), Step::Explain],
        Some(Why::SwitchedOff { option }) => {
            let is_short = why.iter().any(|why| matches!(why, Why::PoolShort { .. }));
            let plan = plan().filter(|_| is_short);
            plan.chain([state.without(option), restart(), Step::Explain]).collect()
        }
        Some(Why::Thp {
            part: PartKind::JavaHeap,
            reason,
            ..
        }) => heap(*reason, restart())
            .or_else(|| state.of_findings())
            .unwrap_or_else(|| state.in_place()),
        Some(Why::Thp {
            part: PartKind::SharedMemory,
            reason: Reason::SharedNever,
            ..
        }) => state.shared(),
        _ => state.of_findings().unwrap_or_else(|| state.in_place()),
    }
}

/// The findings about rights to segments: of the group, and of the limit that was one before Linux 5.16.
const RIGHTS: [&str; 2] = ["B01", "B02"];

impl State<'_> {
    /// The right that a JVM lacks whose pages come by shmget().
    fn may_take_segments(&self) -> Step {
        let own = self
            .findings
            .iter()
            .find(|finding| RIGHTS.contains(&finding.id.as_str()));
        Step::Set {
            setting: "vm.hugetlb_shm_group to a group of its user, or give it CAP_IPC_LOCK".to_owned(),
            place: own.map_or_else(
                || "/proc/sys/vm/hugetlb_shm_group".to_owned(),
                |own| format!("finding {}", own.id),
            ),
        }
    }

    /// Without an option of its command line.
    fn without(&self, option: &str) -> Step {
        Step::LeaveOut {
            setting: option.to_owned(),
            place: self.target.main.file("cmdline"),
        }
    }

    fn restart(&self) -> Step {
        Step::Restart {
            unit: service(&self.target.main).map(str::to_owned),
        }
    }

    fn goal(&self) -> Option<String> {
        let pid = self.target.main.pid();
        match self.kind {
            Some(kind) if kind.server().is_some() => Some(format!("{}:pid={pid}", kind.word())),
            // A plan needs the heap's maximum.
            Some(Kind::Jvm) => largest_heap(&self.target.main).map(|_| format!("jvm:pid={pid}")),
            Some(kind) if kind.is_hypervisor() => Some(format!("vm:pid={pid}")),
            _ => None,
        }
    }

    /// First the limits, and then what is to do without them.
    fn raised(&self, needs: Needs, limits: &[TooLow]) -> Vec<Step> {
        let raise = limits.iter().map(|limit| Step::Raise {
            file: limit.file.clone(),
            bytes: needs.bytes(),
            page: needs.page,
        });
        let asks_first = |why: &&Why| {
            matches!(
                why,
                Why::PoolShort { .. } | Why::NotAsked { .. } | Why::SwitchedOff { .. }
            )
        };
        let left = self.why.iter().filter(asks_first).cloned().collect::<Vec<_>>();
        let rest = match (self.in_use, left.is_empty()) {
            (InUse::Yes, _) => vec![Step::Explain],
            // The pool has room for it.
            (_, true) => vec![self.restart(), Step::Explain],
            (_, false) => next(&State {
                why: &left,
                limited: None,
                ..*self
            }),
        };
        raise.chain(rest).collect()
    }

    /// See whether it helped: pages of a pool cannot change under a running program, other memory can.
    fn compare(&self) -> Vec<Step> {
        let Self { target, kind, .. } = self;
        match kind {
            Some(kind) if kind.is_hypervisor() => {
                let is_emulated = target.vm.as_ref().and_then(|vm| vm.kvm.known()) == Some(&false);
                (!is_emulated).then_some(Step::MeasureGuest).into_iter().collect()
            }
            // The host has not the files that a container starts from. Of a program that no switch keeps off its pool, no arm would be
            // on base pages.
            _ if self.is_on_a_pool() && (container(&target.main).is_some() || !self.has_switch()) => Vec::new(),
            _ if self.is_on_a_pool() => vec![Step::Compare {
                server: server(target, *kind),
                command: command(target),
            }],
            _ => {
                let steps = self.in_place().into_iter();
                steps.filter(|step| *step != Step::Collapse).collect()
            }
        }
    }

    /// Can a comparison start it without pages of a pool? It has switches of databases and JVMs, and leaves out the variables of allocators.
    fn has_switch(&self) -> bool {
        let has_own = self
            .kind
            .is_some_and(|kind| kind.server().is_some() || kind == Kind::Jvm);
        let is_private = self
            .parts
            .first()
            .is_some_and(|part| part.what == PartKind::PrivateMemory);
        has_own || is_private && of_allocators(self.target).next().is_some()
    }

    fn is_on_a_pool(&self) -> bool {
        self.parts.first().is_some_and(|part| part.hugetlb.is_some())
    }

    /// The policy under which its shared memory gets huge pages: memory for which it asks needs no more than `advise`.
    fn shared(&self) -> Vec<Step> {
        let areas = self.target.main.areas().unwrap_or_default();
        let shared = areas
            .iter()
            .filter(|area| area.is_shared_memory() && !area.is_hugetlb());
        let largest = shared.max_by_key(|area| area.range.end - area.range.start);
        let policy = match largest.and_then(|area| area.has("hg")) {
            Some(true) => "advise",
            _ => "within_size",
        };
        let goal = format!("thp:shmem_enabled={policy}");
        vec![Step::Plan { goal }, self.restart(), Step::Explain]
    }

    /// The plan that a finding of this program has.
    fn of_findings(&self) -> Option<Vec<Step>> {
        let planned = self.findings.iter().find_map(|finding| finding.plan.as_ref())?;
        let plan = Step::Plan {
            goal: planned.goal.clone(),
        };
        Some(vec![plan, self.restart(), Step::Explain])
    }

    fn live(&self) -> Step {
        let Listens { port, socket } = listens(self.target);
        Step::CompareLive { port, socket }
    }

    /// The ways without a restart: anonymous memory of a running process can change its pages, unless it switched THP off.
    fn in_place(&self) -> Vec<Step> {
        let main = &self.target.main;
        let Some(page) = self.collapsed else { return Vec::new() };
        let areas = main.areas().unwrap_or_default();
        let holds_a_page = |area: &&Area| area.range.start.next_multiple_of(page.0) + page.0 <= area.range.end;
        let anonymous = areas.iter().filter(|area| {
            area.is_private_data() && area.is_anonymous() && !area.is_hugetlb() && area.has("nh") != Some(true)
        });
        let bytes = Coverage::of(anonymous.filter(holds_a_page)).private.total();
        // A comparison is refused where less than half of the memory can change.
        let shared = areas.iter();
        let shared = shared.filter(|area| area.is_shared_memory() && !area.is_hugetlb());
        let is_most = bytes >= Coverage::of(shared).shared.total();
        let is_hypervisor = self.kind.is_some_and(Kind::is_hypervisor);
        let is_switched_off = main.pages.thp_enabled.known() == Some(&false);
        let can = bytes >= WORTH && is_most && !is_switched_off && main.pid() != 1 && !is_hypervisor;
        let compare = (can && self.is_scanned).then(|| self.live());
        let collapse = (can && self.in_use != InUse::Yes).then_some(Step::Collapse);
        compare.into_iter().chain(collapse).collect()
    }
}

/// Where a load reaches it.
fn listens(target: &Target) -> Listens {
    target.listens.clone().unwrap_or_default()
}

/// The steps that bring a heap of ZGC to transparent huge pages, where the policy or the start stood in their way.
fn heap(reason: Reason, restart: Step) -> Option<Vec<Step>> {
    let policy = || Step::Plan {
        goal: "thp:shmem_enabled=advise".to_owned(),
    };
    match reason {
        Reason::SharedNever => Some(vec![policy(), restart, Step::Explain]),
        Reason::HeapNotAdvised => Some(vec![restart, Step::Explain]),
        _ => None,
    }
}

/// A database whose process says how it was started. One that another user than root started has rights of its own.
fn server(target: &Target, kind: Option<Kind>) -> Option<Server> {
    let database = kind.filter(|kind| kind.server().is_some())?.word();
    let Listens { port, socket } = listens(target);
    let Command { arguments, ids } = command(target)?;
    Some(Server {
        database: database.to_owned(),
        ids,
        port,
        socket,
        arguments,
    })
}

fn command(target: &Target) -> Option<Command> {
    let program = &target.main;
    let arguments = program.arguments.known()?;
    // From the directory of another process it is not found.
    let is_relative = |word: &String| word.contains('/') && !word.starts_with('/');
    if arguments.first().is_none_or(is_relative) {
        return None;
    }
    Some(Command {
        arguments: arguments.clone(),
        ids: (*program.pages.uid.known()?, *program.groups.known()?.first()?),
    })
}
