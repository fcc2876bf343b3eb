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
use std::ffi::OsStr;
use std::path::PathBuf;

use host::Snapshot;
use host::snapshot::Thp;
use model::PageKind;

use self::custom::Custom;
use crate::Error;
use crate::live::Arm;
use crate::place::{Bound, Ground, Place};
use crate::policy::Policy;
use crate::program::{self, Program};
use crate::request::Request;
use crate::runlog::{BUILD, FILE_OF, RunLog, Way};
use crate::technique::{Collapse, Setup, Technique, ThpSwitch};

pub(crate) struct Arms {
    /// The program that they run, unless one has its own.
    pub(crate) program: Program,
    /// The files of programs, with what each is: runs of another build are answers to another question.
    pub(crate) files: Vec<(String, PathBuf)>,
    /// The reference first.
    pub(crate) live: Vec<Arm>,
}

impl Arms {
    pub(crate) fn names(&self) -> Vec<String> {
        self.live.iter().map(|arm| arm.name.clone()).collect()
    }

    /// Takes the ways that finished runs were made by, as others would be another arm.
    ///
    /// # Errors
    /// If what is typed leaves another way only.
    pub(crate) fn take_ways(&mut self, log: &RunLog<'_>) -> Result<(), Error> {
        for arm in &mut self.live {
            let Some(Way { technique, words }) = log.way(&arm.name) else {
                continue;
            };
            let others = std::mem::take(&mut arm.others);
            let mut all = std::iter::once(std::mem::take(&mut arm.setup)).chain(others);
            let same = all.find(|setup| setup.way.is_some_and(|way| way.to_string() == *technique));
            let Some(same) = same else {
                let how = if *technique == Technique::Switch.to_string() {
                    "by the THP mode (set `always` or write --technique switch, as before; or begin anew with --log)"
                        .to_owned()
                } else {
                    format!(
                        "by {technique}, and not otherwise (write --technique {technique}, or leave it out; or begin anew with --log)"
                    )
                };
                let why = format!("the finished runs of the arm {} are {how}", arm.name);
                return Err(Error::asked("--resume", why));
            };
            arm.setup = Setup {
                words: words.clone(),
                ..same
            };
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
        // Those that turn switches of the machine, which all programs that are alive share.
        self.lent().iter().any(|kind| kind.mthp().is_some())
    }

    /// The reference's program on base pages, which starts without a pool and shows how large it is.
    pub(crate) fn plain(&self) -> Result<Arm, Error> {
        let reference = self.live.first().cloned().unwrap_or_default();
        if reference.lent.is_empty() {
            return Ok(reference);
        }
        let mut base = technique::setups(Policy::Of(PageKind::Base), &self.program, None, &|name| {
            std::env::var_os(name)
        })?;
        Ok(Arm {
            setup: base.pop().unwrap_or_default(),
            others: Vec::new(),
            kind: None,
            lent: Vec::new(),
            ..reference
        })
    }
}

impl Arm {
    /// The arm on this machine: it must have the THP size, and pages of the largest one are those that smaps shows.
    fn on(mut self, snapshot: &Snapshot) -> Result<Self, Error> {
        for size in self.lent.iter().filter_map(|kind| kind.mthp()) {
            policy::must_have(size, &snapshot.thp)?;
        }
        // Where every fault takes huge pages, only collapsing may: a kernel without that switch refuses.
        let largest = snapshot.pmd_page();
        let is_always = snapshot.thp.known().and_then(Thp::pmd_policy).as_deref() == Some("always");
        if is_always && matches!(self.setup.collapse, Some(Collapse::Share(_))) {
            self.setup.thp = ThpSwitch::ExceptAdvised;
        }
        if !is_always && self.setup.way == Some(Technique::Switch) && !self.others.is_empty() {
            self.setup = self.others.remove(0);
        }
        let is_largest = |kind: PageKind| kind.mthp().is_some_and(|size| largest.known() == Some(&size));
        self.kind = self
            .kind
            .map(|kind| if is_largest(kind) { PageKind::Thp } else { kind });
        Ok(self)
    }
}

/// Those that need a pool.
fn pools(kinds: impl IntoIterator<Item = PageKind>) -> Vec<PageKind> {
    kinds.into_iter().filter(|kind| kind.pool().is_some()).collect()
}

pub(crate) fn resolve(request: &Request, snapshot: &Snapshot) -> Result<Arms, Error> {
    let program = program_of(request)?;
    let mut own = custom::of_file(request)?;
    own.extend(request.commands.iter().cloned());
    let places = places(request, snapshot)?;
    let mut arms = Arms {
        files: vec![(BUILD.to_owned(), program.path.clone())],
        program,
        live: Vec::new(),
    };
    for name in &request.arms {
        let own = own.get(name);
        let arm = one(name, own, request, &arms.program)?.on(snapshot)?;
        let file = own.and_then(|own| own.file(name));
        arms.files.extend(file.map(|file| (format!("{FILE_OF}{name}"), file)));
        for (place, bound) in &places {
            let name = place
                .as_ref()
                .map_or_else(|| name.clone(), |place| format!("{name}@{place}"));
            if arms.live.iter().any(|arm| arm.name == name) {
                let why = "this arm is there twice (the reference is run twice anyway)";
                return Err(Error::asked(format!("--arms {name}"), why));
            }
            arms.live.push(Arm {
                name,
                place: place.as_ref().map(ToString::to_string),
                bound: bound.clone(),
                ..arm.clone()
            });
        }
    }
    if arms.live.len() < 2 {
        let why = "one arm alone cannot be compared (write a reference first, such as base)";
        return Err(Error::asked(format!("--arms {}", request.arms.join(",")), why));
    }
    must_be_used(request, &own, &arms)?;
    Ok(arms)
}

/// Options about arms of a sort that none of these is of would do nothing.
fn must_be_used(request: &Request, own: &BTreeMap<String, Custom>, arms: &Arms) -> Result<(), Error> {
    let (file, technique) = (&request.arms_file, &request.technique);
    let unused = if file.is_some() && !request.arms.iter().any(|name| own.contains_key(name)) {
        let names: Vec<&str> = own.keys().map(String::as_str).collect();
        (
            "--arms-file",
            format!("none of its arms is in --arms (name some, of {})", names.join(", ")),
        )
    } else if request.pool.is_some() && pools(arms.lent()).is_empty() {
        let why = "no arm takes pages of a pool (leave it out, or name an arm such as hugetlb-2M in --arms)";
        ("--pool", why.to_owned())
    } else if technique.is_some() && arms.live.iter().all(|arm| arm.setup.way != *technique) {
        let why = "no arm gets its pages by a technique (leave it out, or name an arm such as thp in --arms)";
        ("--technique", why.to_owned())
    } else {
        return Ok(());
    };
    Err(Error::asked(unused.0, unused.1))
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
    let mut nodes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &cpu in cores.iter().flatten() {
        let node = snapshot.topology.node_of(cpu).unwrap_or(0);
        nodes.entry(node).or_default().push(cpu);
    }
    Ok(Ground { cores, nodes })
}
