//! What `--live PID` and `--design flip` share: base and thp in one process, whoever started it.

use std::time::Duration;

use anyhow::{Context, bail};
use compare::flip::{self, Span, To};
use compare::inplace::{Length, Plan, Process, SETTLE, Whose};
use compare::metric::Asked;
use compare::{Error, Named, Spec};
use host::Snapshot;
use model::compare::Method;
use model::{Bytes, PageKind};

use crate::cli::typed;

/// Long enough for a thousand timer ticks, short enough that drift stays out of a block.
const SLICE: Duration = Duration::from_secs(2);
/// A piece of which less is in use stays on base pages: collapsing would make memory of the rest, as in `hugewise collapse`.
const USED: f64 = 0.5;

/// A comparison in place, but for its process.
#[derive(Clone, Debug)]
pub(super) struct InPlace<'a> {
    typed: &'a typed::Compare,
    whose: Whose,
    arms: Vec<(To, Named)>,
    plan: Plan,
    length: Length,
    base_page: Bytes,
    page: Bytes,
}

impl<'a> InPlace<'a> {
    /// What was typed, with what is judged and the load that is run in every slice.
    ///
    /// # Errors
    /// If it cannot be compared in place, with what to write instead.
    pub(super) fn new(
        typed: &'a typed::Compare,
        whose: Whose,
        asked: &[Asked],
        load: Option<&str>,
        snapshot: &Snapshot,
    ) -> anyhow::Result<Self> {
        if typed.range == Span::Text {
            bail!(
                "--range text: code belongs to files, whose large pages cannot be cut in place (write anon, heap or addresses)"
            );
        }
        let arms = arms(&typed.arms)?;
        let length = match load {
            Some(load) => Length::Load(load.to_owned()),
            None => Length::Time(typed.slice.unwrap_or(SLICE)),
        };
        let turns = arms.iter().map(|(to, _)| *to).collect();
        Ok(Self {
            plan: Plan::new(turns, asked.to_vec(), length.clone(), whose)?,
            typed,
            whose,
            arms,
            length,
            base_page: snapshot.base_page().into_result().context("the size of base pages")?,
            page: snapshot
                .pmd_page()
                .into_result()
                .context("this kernel has no transparent large pages to collapse into")?,
        })
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.arms.iter().map(|(_, named)| named.name.clone()).collect()
    }

    /// The experiment, of a process that is known by now.
    pub(super) fn spec(&self, pid: u32, spec: Spec) -> Spec {
        let slice_seconds = match &self.length {
            Length::Time(time) => Some(time.as_secs_f64()),
            Length::Load(_) => None,
        };
        Spec {
            method: Method::Flip,
            arms: self.arms.iter().map(|(_, named)| named.clone()).collect(),
            in_place: Some(model::compare::InPlace {
                pid,
                started: self.whose == Whose::Own,
                range: self.typed.range.to_string(),
                threads: self.typed.threads.to_string(),
                slice_seconds,
                settle_seconds: SETTLE.as_secs_f64(),
            }),
            ..spec
        }
    }

    /// Which of its memory changes.
    fn memory_of(&self, pid: u32) -> flip::Spec {
        flip::Spec {
            pid,
            span: self.typed.range.clone(),
            used: USED,
            budget: None,
            base_page: self.base_page,
            page: self.page,
        }
    }

    /// The process, opened.
    ///
    /// # Errors
    /// If it cannot be reached, or has no such memory or threads.
    pub(super) fn open<'s>(&self, pid: u32, stop: &'s dyn Fn() -> bool) -> Result<Process<'s>, Error> {
        Process::open(self.memory_of(pid), self.typed.threads.clone(), stop)
    }
}

/// The two arms that pages in place can have.
fn arms(names: &[String]) -> anyhow::Result<Vec<(To, Named)>> {
    let arm = |name: &String| {
        let (to, kind) = match name.as_str() {
            "base" => (To::Base, PageKind::Base),
            "thp" => (To::Large, PageKind::Thp),
            _ => {
                bail!("--arms {name}: memory of a living process can be flipped to base and thp only (write base,thp)")
            }
        };
        let named = Named {
            name: name.clone(),
            technique: to.technique().to_owned(),
            kind: Some(kind),
        };
        Ok((to, named))
    };
    let arms: Vec<(To, Named)> = names.iter().map(arm).collect::<anyhow::Result<_>>()?;
    match arms.as_slice() {
        [(first, _), (second, _)] if first != second => Ok(arms),
        _ => bail!(
            "--arms {}: a flip in place is between two arms (write base,thp)",
            names.join(",")
        ),
    }
}
