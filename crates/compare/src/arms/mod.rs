//! The arms of a comparison from what was typed: policies and arms of one's own, at every place.

pub(crate) mod custom;
pub(crate) mod glibc;
pub mod place;
pub mod policy;
pub mod preload;
pub(crate) mod room;
pub(crate) mod switches;
pub mod technique;
mod variables;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use host::snapshot::Thp;
use host::{CpuList, Snapshot};
use model::{Bytes, PageKind, line_of};
use rustix::thread::CapabilitySet;

use self::custom::Custom;
use crate::live::Arm;
use crate::place::{Bound, Ground, Place};
use crate::policy::Policy;
use crate::preload::Layout;
use crate::program::{self, Program};
use crate::request::Request;
use crate::runlog::{RunLog, Way};
use crate::technique::{Collapse, Setup, Technique, ThpSwitch};
use crate::{Error, Named};

/// Arms as results name them, and as runs need them, in the same order.
pub(crate) struct Arms {
    /// The program that they run, unless one has its own.
    pub(crate) program: Program,
    pub(crate) named: Vec<Named>,
    pub(crate) live: Vec<Arm>,
}

impl Arms {
    pub(crate) fn names(&self) -> Vec<String> {
        self.named.iter().map(|named| named.name.clone()).collect()
    }

    /// Takes the ways that finished runs were made by, as others would be another arm.
    ///
    /// # Errors
    /// If what is typed leaves another way only.
    pub(crate) fn take_ways(&mut self, log: &RunLog<'_>) -> Result<(), Error> {
        for (named, arm) in self.named.iter_mut().zip(&mut self.live) {
            let Some(Way { technique, words }) = log.way(&named.name) else {
                continue;
            };
            let others = std::mem::take(&mut arm.others);
            let mut all = std::iter::once(std::mem::take(&mut arm.setup)).chain(others);
            let same = all.find(|setup| setup.way.is_some_and(|way| way.to_string() == *technique));
            let Some(same) = same else {
                let why = format!(
                    "the finished runs of the arm {} are by {technique}, and not otherwise (write --technique {technique}, or \
                     leave it out; or begin anew with --log)",
                    named.name
                );
                return Err(Error::asked("--resume", why));
            };
            arm.setup = Setup {
                words: words.clone(),
                ..same
            };
            named.technique.clone_from(words);
        }
        Ok(())
    }

    /// Page kinds that need something on loan.
    pub(crate) fn lent(&self) -> Vec<PageKind> {
        let mut kinds: Vec<PageKind> = self.live.iter().flat_map(|arm| arm.lent.iter().copied()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// Must each of their programs run while no other does?
    pub(crate) fn are_alone(&self) -> bool {
        self.live.iter().any(Arm::is_alone)
    }

    /// The reference's program on base pages, which starts without a pool and shows how large it is.
    pub(crate) fn plain(&self) -> Result<Arm, Error> {
        let reference = self.live.first().cloned().unwrap_or_default();
        if reference.lent.is_empty() {
            return Ok(reference);
        }
        let mut base = technique::setups(Policy::Base, &self.program, None, &|name| std::env::var_os(name))?;
        Ok(Arm {
            setup: base.pop().unwrap_or_default(),
            others: Vec::new(),
            kind: None,
            lent: Vec::new(),
            ..reference
        })
    }
}

/// The THP size that an arm turns the machine's switches for.
fn size_of(kind: PageKind) -> Option<Bytes> {
    match kind {
        PageKind::Mthp(size) => Some(size),
        _ => None,
    }
}

impl Arm {
    /// The arm on this machine: it must have the THP size, and pages of the largest one are those that smaps shows.
    fn on(mut self, snapshot: &Snapshot) -> Result<Self, Error> {
        for size in self.lent.iter().filter_map(|kind| size_of(*kind)) {
            policy::must_have(size, &snapshot.thp)?;
        }
        // Where every fault takes huge pages, only collapsing may: a kernel without that switch refuses.
        let largest = snapshot.pmd_page();
        let policy = snapshot.thp.known().and_then(Thp::pmd_policy);
        if policy.as_deref() == Some("always") && matches!(self.setup.collapse, Some(Collapse::Share(_))) {
            self.setup.thp = ThpSwitch::ExceptAdvised;
        }
        let is_largest = |kind: PageKind| size_of(kind).is_some() && size_of(kind).as_ref() == largest.known();
        self.kind = self
            .kind
            .map(|kind| if is_largest(kind) { PageKind::Thp } else { kind });
        Ok(self)
    }

    /// Does it turn switches of the machine, which all programs that are alive share?
    fn is_alone(&self) -> bool {
        self.lent.iter().any(|kind| size_of(*kind).is_some())
    }
}

/// Those that need a pool.
fn pools(kinds: impl IntoIterator<Item = PageKind>) -> Vec<PageKind> {
    kinds.into_iter().filter(|kind| kind.pool().is_some()).collect()
}

pub(crate) fn resolve(request: &Request, snapshot: &Snapshot) -> Result<Arms, Error> {
    let program = program_of(request)?;
    let mut own = own_arms(request)?;
    own.extend(request.commands.iter().cloned());
    let places = places(request, snapshot)?;
    let mut arms = Arms {
        program,
        named: Vec::new(),
        live: Vec::new(),
    };
    for name in &request.arms {
        let arm = one(name, own.get(name), request, &arms.program)?.on(snapshot)?;
        for (place, bound) in &places {
            let name = place
                .as_ref()
                .map_or_else(|| name.clone(), |place| format!("{name}@{place}"));
            if arms.named.iter().any(|named| named.name == name) {
                let why = "this arm is there twice (the reference is run twice anyway)".to_owned();
                return Err(Error::Arm { arm: name, why });
            }
            arms.named.push(Named {
                name: name.clone(),
                technique: arm.setup.words.clone(),
                kind: arm.kind,
                place: place.as_ref().map(ToString::to_string),
                shortage: None,
            });
            arms.live.push(Arm {
                name,
                bound: bound.clone(),
                ..arm.clone()
            });
        }
    }
    if arms.named.len() < 2 {
        return Err(Error::Arm {
            arm: request.arms.join(","),
            why: "one arm alone cannot be compared (write a reference first, such as base)".to_owned(),
        });
    }
    Ok(arms)
}

/// The program that the arms run. Of a command nothing is asked but that it runs, and what is before its runs may make it.
fn program_of(request: &Request) -> Result<Program, Error> {
    let is_made = request
        .commands
        .first()
        .is_some_and(|(_, command)| command.before.is_some());
    let program = program::of_command(&request.task.command, &|name| std::env::var_os(name));
    Ok(match program {
        Err(program::LookError::Nowhere(_)) if is_made => program::look(OsStr::new("/bin/sh"), None),
        found => found,
    }?)
}

fn own_arms(request: &Request) -> Result<BTreeMap<String, Custom>, Error> {
    let Some(file) = &request.arms_file else {
        return Ok(BTreeMap::new());
    };
    let named = || format!("--arms-file {}", file.name);
    toml::from_str(&file.text).map_err(|error| Error::asked(named(), on_one_line(&file.text, &error)))
}

/// A mistake in TOML with its line, without the picture of several lines that a terminal message has no room for.
fn on_one_line(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| format!("line {}: ", line_of(text, span.start)));
    let line = line.unwrap_or_default();
    format!("{line}{}", error.message().replace('\n', ", "))
}

/// For the fuzz target: arms are read or refused, and so are the words in them.
pub(crate) fn read_any(text: &str) {
    let arms = toml::from_str::<BTreeMap<String, Custom>>(text).unwrap_or_default();
    for arm in arms.values() {
        let _ = arm.like.as_ref().map(|like| like.parse::<Policy>());
        let _ = arm.technique.as_ref().map(|name| name.parse::<Technique>());
        if let Some(Ok(layout)) = arm.layout.as_ref().map(|layout| layout.parse::<Layout>()) {
            assert_eq!(layout.to_string().parse::<Layout>().as_ref(), Ok(&layout));
        }
    }
}

/// An arm of the file, or one that is a policy and nothing else.
fn one(name: &str, own: Option<&Custom>, request: &Request, program: &Program) -> Result<Arm, Error> {
    let Some(own) = own else {
        let policy = Custom {
            like: Some(name.to_owned()),
            ..Custom::default()
        };
        return policy.arm(request, program);
    };
    if own.is_typed {
        return own.arm(request, program);
    }
    let arm = own.arm(request, program).and_then(|arm| own.with_own(arm));
    arm.map_err(|error| Error::asked(format!("the arm {name} of --arms-file"), error.to_string()))
}

impl Custom {
    /// The first way to the pages of its policy, until another turns out to reach more.
    fn arm(&self, request: &Request, program: &Program) -> Result<Arm, Error> {
        let policy = self.like.as_ref().map(|like| like.parse::<Policy>()).transpose()?;
        self.must_be_there()?;
        let command = if self.command.is_empty() {
            request.task.command.clone()
        } else {
            self.command.iter().map(OsString::from).collect()
        };
        let ways = policy.map(|policy| self.ways(policy, request, &command, program));
        let mut ways = ways.transpose()?.unwrap_or_else(|| vec![as_it_is()]).into_iter();
        let kind = self.kind.or(policy.and_then(Policy::kind));
        let size = policy.and_then(Policy::kind).filter(|kind| size_of(*kind).is_some());
        Ok(Arm {
            command,
            kind,
            lent: pools(kind).into_iter().chain(size).collect(),
            setup: ways.next().unwrap_or_default(),
            others: ways.collect(),
            unset: self.unset.clone(),
            shut_in: request.task.shut_in.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            ..Arm::default()
        })
    }

    /// The ways to the pages of a policy for the program that this arm runs, with the variables that it has.
    fn ways(
        &self,
        policy: Policy,
        request: &Request,
        command: &[OsString],
        program: &Program,
    ) -> Result<Vec<Setup>, Error> {
        let asked = self.technique.as_ref().map(|name| name.parse::<Technique>());
        let asked = asked.transpose().map_err(|why| Error::asked("technique", why))?;
        let own = |name: &str| self.env.get(name).map(OsString::from);
        let given = |name: &str| own(name).or_else(|| std::env::var_os(name));
        let is_other = !self.command.is_empty() || !self.env.is_empty();
        let other = is_other.then(|| program::of_command(command, &given)).transpose()?;
        technique::setups(
            policy,
            other.as_ref().unwrap_or(program),
            asked.or(request.technique),
            &given,
        )
    }

    /// An arm with the variables and the layout of this one.
    fn with_own(&self, mut arm: Arm) -> Result<Arm, Error> {
        let layout = self.layout.as_ref().map(|layout| layout.parse::<Layout>()).transpose();
        let layout = layout.map_err(|error| Error::asked("layout", error.to_string()))?;
        if self.share.is_some_and(|percent| !(1..=99).contains(&percent)) {
            return Err(Error::asked("share", "expected 1 to 99, percent of the 2 MiB ranges"));
        }
        if self.share.is_some() && (self.like.is_some() || self.technique.is_some() || self.layout.is_some()) {
            let why = "the rest of the memory is on base pages, so that it goes with no like, technique or layout";
            return Err(Error::asked("share", why));
        }
        if self.share.is_some() && !may_collapse() {
            return Err(Error::asked(
                "share",
                "memory is collapsed from outside, which takes root (CAP_SYS_NICE)",
            ));
        }
        for setup in std::iter::once(&mut arm.setup).chain(&mut arm.others) {
            self.add_to(setup, layout.as_ref());
        }
        if let Some(layout) = &layout {
            arm.kind = arm.kind.map_or_else(|| only_kind(layout), |kind| Ok(Some(kind)))?;
            arm.lent.extend(pools(arm.kind.into_iter().chain(layout.kinds())));
        }
        Ok(arm)
    }

    /// Variables first: what the policy sets already holds those of the same name.
    fn add_to(&self, setup: &mut Setup, layout: Option<&Layout>) {
        let own = self.env.iter().map(|(name, value)| (name.into(), value.into()));
        setup.env.splice(0..0, own);
        let words = &setup.words;
        setup.words = match layout {
            None => format!("{words} and --arms-file"),
            Some(layout) => format!(
                "{words} and --arms-file, with {layout} by {}",
                Technique::Preload.title()
            ),
        };
        if layout.is_some() {
            setup.preload = layout.cloned();
        }
        if let Some(percent) = self.share {
            setup.words = format!("{percent} % of the 2M ranges {}", Technique::Collapse.title());
            setup.collapse = Some(Collapse::Share(percent));
        }
    }
}

/// What a layout is about: what shows whether it took effect.
fn only_kind(layout: &Layout) -> Result<Option<PageKind>, Error> {
    let mut large: Vec<PageKind> = layout.kinds().filter(|kind| kind.is_large()).collect();
    large.sort();
    large.dedup();
    match large[..] {
        [] => Ok(Some(PageKind::Base)),
        [kind] => Ok(Some(kind)),
        _ => Err(Error::asked(
            format!("layout {layout}"),
            "it has several kinds of huge pages (name one with `kind`, to be proved by it)",
        )),
    }
}

/// May this process collapse memory of others?
pub fn may_collapse() -> bool {
    let sets = rustix::thread::capabilities(None);
    sets.is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE))
}

fn as_it_is() -> Setup {
    Setup {
        words: "as the machine is set".to_owned(),
        ..Setup::default()
    }
}

/// The places typed, with what they mean here; one without a name if none was.
fn places(request: &Request, snapshot: &Snapshot) -> Result<Vec<(Option<Place>, Bound)>, Error> {
    if request.places.is_empty() {
        return Ok(vec![(None, Bound::default())]);
    }
    let ground = ground(snapshot)?;
    let on = |place: &Place| {
        let bound = place
            .on(&ground)
            .map_err(|why| Error::asked(format!("--place {place}"), why))?;
        Ok((Some(place.clone()), bound))
    };
    request.places.iter().map(on).collect()
}

/// What of this machine this process may use.
fn ground(snapshot: &Snapshot) -> Result<Ground, Error> {
    let allowed = rustix::thread::sched_getaffinity(None);
    let allowed = allowed.map_err(|error| Error::asked("which CPUs may be used", error.to_string()))?;
    let cores: Vec<Vec<u32>> = snapshot
        .topology
        .cores()
        .iter()
        .map(|core| {
            core.iter()
                .filter(|&cpu| allowed.is_set(cpu as usize))
                .collect::<Vec<u32>>()
        })
        .filter(|core| !core.is_empty())
        .collect();
    let all: CpuList = cores.iter().flatten().copied().collect();
    let mut nodes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for cpu in all.iter() {
        nodes
            .entry(snapshot.topology.node_of(cpu).unwrap_or(0))
            .or_default()
            .push(cpu);
    }
    Ok(Ground {
        cores,
        nodes: nodes.into_iter().collect(),
    })
}
