//! The arms of a comparison from what was typed: policies and arms of one's own, at every place.

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::{Context, bail};
use host::{CpuList, Snapshot};
use lab::compare::Named;
use lab::compare::live::Arm;
use lab::compare::place::{Bound, Ground, Place};
use lab::compare::policy::Policy;
use lab::compare::program::Program;
use lab::compare::technique::{self, Setup};
use model::PageKind;
use serde::Deserialize;

use crate::cli::typed;

/// Arms as results name them, and as runs need them, in the same order.
pub(super) struct Arms {
    pub(super) named: Vec<Named>,
    pub(super) live: Vec<Arm>,
}

/// An arm of one's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Custom {
    /// The policy that it starts from.
    like: Option<String>,
    /// The page kind that shows whether it took effect.
    kind: Option<PageKind>,
    /// Instead of the program and its arguments.
    command: Vec<String>,
    /// Variables to set.
    env: BTreeMap<String, String>,
    /// Variables to leave out.
    unset: Vec<String>,
    /// A command of the shell before each run.
    before: Option<String>,
    /// A command of the shell after each run.
    after: Option<String>,
}

impl Arms {
    pub(super) fn names(&self) -> Vec<String> {
        self.named.iter().map(|named| named.name.clone()).collect()
    }

    /// Page kinds that need a pool.
    pub(super) fn pools(&self) -> Vec<PageKind> {
        let mut kinds: Vec<PageKind> = self.named.iter().filter_map(|named| named.kind).collect();
        kinds.retain(|kind| kind.pool().is_some());
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

/// Every arm at every place.
pub(super) fn resolve(
    typed: &typed::Compare,
    command: &[OsString],
    program: &Program,
    snapshot: &Snapshot,
) -> anyhow::Result<Arms> {
    let own = own_arms(typed)?;
    let places = places(typed, snapshot)?;
    let mut arms = Arms {
        named: Vec::new(),
        live: Vec::new(),
    };
    for name in &typed.arms {
        let (kind, arm) = one(name, own.get(name), typed, command, program)?;
        for (place, bound) in &places {
            let name = place
                .as_ref()
                .map_or_else(|| name.clone(), |place| format!("{name}@{place}"));
            if arms.named.iter().any(|named| named.name == name) {
                bail!("--arms {name}: this arm is there twice (the reference is run twice anyway)");
            }
            arms.named.push(Named {
                name: name.clone(),
                technique: arm.setup.words.clone(),
                kind,
            });
            arms.live.push(Arm {
                name,
                bound: bound.clone(),
                ..arm.clone()
            });
        }
    }
    if arms.named.len() < 2 {
        bail!(
            "--arms {}: one arm alone cannot be compared (write a reference first, such as base)",
            typed.arms.join(",")
        );
    }
    Ok(arms)
}

fn own_arms(typed: &typed::Compare) -> anyhow::Result<BTreeMap<String, Custom>> {
    let Some(file) = &typed.arms_file else {
        return Ok(BTreeMap::new());
    };
    toml::from_str(&super::read(file)?).with_context(|| format!("--arms-file {}", file.display()))
}

fn one(
    name: &str,
    own: Option<&Custom>,
    typed: &typed::Compare,
    command: &[OsString],
    program: &Program,
) -> anyhow::Result<(Option<PageKind>, Arm)> {
    let given = |name: &str| std::env::var_os(name);
    let setup = |policy| technique::setup(policy, program.memory, typed.technique, &given);
    let Some(own) = own else {
        let policy: Policy = name.parse()?;
        let arm = Arm {
            command: command.to_vec(),
            setup: setup(policy)?,
            ..Arm::default()
        };
        return Ok((policy.kind(), arm));
    };
    let policy = own.like.as_ref().map(|like| like.parse::<Policy>()).transpose()?;
    let mut setup = policy.map(setup).transpose()?.unwrap_or_else(as_it_is);
    setup.words += " and --arms-file";
    setup
        .env
        .extend(own.env.iter().map(|(name, value)| (name.into(), value.into())));
    let words = own.command.iter().map(OsString::from).collect();
    let arm = Arm {
        command: if own.command.is_empty() {
            command.to_vec()
        } else {
            words
        },
        setup,
        unset: own.unset.clone(),
        before: own.before.clone(),
        after: own.after.clone(),
        ..Arm::default()
    };
    Ok((own.kind.or(policy.and_then(Policy::kind)), arm))
}

fn as_it_is() -> Setup {
    Setup {
        words: "as the machine is set".to_owned(),
        ..Setup::default()
    }
}

/// The places typed, with what they mean here; one without a name if none was.
fn places(typed: &typed::Compare, snapshot: &Snapshot) -> anyhow::Result<Vec<(Option<Place>, Bound)>> {
    if typed.place.is_empty() {
        return Ok(vec![(None, Bound::default())]);
    }
    let ground = ground(snapshot)?;
    let on = |place: &Place| {
        let bound = place
            .on(&ground)
            .map_err(|why| anyhow::anyhow!("--place {place}: {why}"))?;
        Ok((Some(place.clone()), bound))
    };
    typed.place.iter().map(on).collect()
}

/// What of this machine this process may use.
fn ground(snapshot: &Snapshot) -> anyhow::Result<Ground> {
    let allowed = rustix::thread::sched_getaffinity(None).context("which CPUs may be used")?;
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
