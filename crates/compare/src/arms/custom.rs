//! An arm of one's own: one of a file, or a command that is compared with others.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use model::{PageKind, line_of};
use rustix::thread::CapabilitySet;
use serde::Deserialize;
use toml::Spanned;

use super::pools;
use crate::Error;
use crate::live::Arm;
use crate::policy::Policy;
use crate::preload::Layout;
use crate::program::{self, Program};
use crate::request::Request;
use crate::technique::{self, Collapse, Setup, Technique};

/// An arm of one's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Custom {
    /// The policy that it starts from.
    pub(crate) like: Option<String>,
    /// The page kind that shows whether it took effect.
    pub(crate) kind: Option<PageKind>,
    /// How it gets its pages, instead of what `like` chooses by the program.
    pub(crate) technique: Option<Spanned<String>>,
    /// Which pages which part of its own mappings gets from the LD_PRELOAD library, such as `base,0-512M=hugetlb-2M`.
    pub(crate) layout: Option<String>,
    /// This percent of the 2 MiB ranges of its private memory is collapsed from outside; which ones, chance decides in each run.
    pub(crate) share: Option<u8>,
    /// Instead of the program and its arguments.
    pub command: Vec<String>,
    /// Variables to set.
    pub(crate) env: BTreeMap<String, String>,
    /// Variables to leave out.
    pub(crate) unset: Vec<String>,
    /// A command of the shell before each run.
    pub(crate) before: Option<String>,
    /// A command of the shell after each run.
    pub(crate) after: Option<String>,
    #[serde(skip)]
    pub(crate) is_typed: bool,
}

impl Custom {
    /// A command in place of the program, and commands of the shell before and after each of its runs.
    pub fn of_command(command: Vec<String>, before: Option<String>, after: Option<String>) -> Self {
        Self {
            command,
            before,
            after,
            is_typed: true,
            ..Self::default()
        }
    }

    /// Its program and arguments, and what is run around it: what a log has to have been made with.
    pub(crate) fn identity(&self) -> String {
        format!("{:?}", (&self.command, &self.before, &self.after))
    }

    /// A program of its own that is not there is reported before any run, unless a command before its runs may make it.
    pub(super) fn must_be_there(&self) -> Result<(), Error> {
        let is_made = self.before.is_some() || self.unset.iter().any(|name| name == "PATH");
        let Some(name) = self.command.first().filter(|name| !is_made && !name.contains("{arm}")) else {
            return Ok(());
        };
        match program::look(OsStr::new(name), self.path().as_deref()) {
            Err(nowhere @ program::LookError::Nowhere(_)) => Err(nowhere.into()),
            _ => Ok(()),
        }
    }

    /// Where its programs are looked for.
    fn path(&self) -> Option<OsString> {
        let own = self.env.get("PATH").map(Into::into);
        own.or_else(|| std::env::var_os("PATH"))
    }

    /// The file of a program of its own; of a line of the shell that of its first word. None where a command before each run may make it.
    pub(super) fn file(&self, arm: &str) -> Option<PathBuf> {
        let name = match &self.command[..] {
            [_, .., option, line] if option == "-c" => line.split_whitespace().next()?,
            words => words.first()?,
        };
        let name = name.replace("{arm}", arm);
        let is_made = self.before.is_some();
        let found = (!is_made).then(|| program::find(OsStr::new(&name), self.path().as_deref()).ok());
        found.flatten()
    }

    /// The first way to the pages of its policy, until another turns out to reach more.
    pub(super) fn arm(&self, request: &Request, program: &Program) -> Result<Arm, Error> {
        let policy = self.like.as_ref().map(|like| like.parse::<Policy>()).transpose()?;
        let asked = self.asked(policy, request)?;
        self.must_be_there()?;
        let command = if self.command.is_empty() {
            request.task.command.clone()
        } else {
            self.command.iter().map(OsString::from).collect()
        };
        let ways = policy.map(|policy| self.ways((policy, asked), request, &command, program));
        let mut ways = ways.transpose()?.unwrap_or_else(|| vec![as_it_is()]).into_iter();
        let kind = self.kind.or(policy.and_then(Policy::kind));
        let size = policy.and_then(Policy::kind).filter(|kind| kind.mthp().is_some());
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

    /// The technique that is typed, of a policy that has several; one that would do nothing is refused.
    fn asked(&self, policy: Option<Policy>, request: &Request) -> Result<Option<Technique>, Error> {
        let Some(typed) = self.technique.as_ref().filter(|_| self.share.is_none()) else {
            return Ok(request.technique);
        };
        let asked = typed
            .get_ref()
            .parse::<Technique>()
            .map_err(|why| self.wrong(request, why))?;
        match policy {
            Some(policy) if technique::are_several(policy) => Ok(Some(asked)),
            Some(policy) => Err(self.wrong(request, format!("`{policy}` takes no technique (leave technique out)"))),
            None if self.layout.is_some() && asked == Technique::Preload => Ok(Some(asked)),
            None => {
                let why = "it chooses how the arm gets the pages of `like`, which is missing (write like = \"thp\" too, or leave technique out)";
                Err(self.wrong(request, why))
            }
        }
    }

    /// What is wrong with its technique, or that of the command line.
    fn wrong(&self, request: &Request, why: impl Into<String>) -> Error {
        let place = match (&self.technique, &request.arms_file) {
            (Some(typed), Some(file)) => {
                format!("line {}: technique", line_of(&file.text, typed.span().start))
            }
            _ => "--technique".to_owned(),
        };
        Error::asked(place, why)
    }

    /// The ways to the pages of a policy for the program that this arm runs, with the variables that it has.
    fn ways(
        &self,
        (policy, asked): (Policy, Option<Technique>),
        request: &Request,
        command: &[OsString],
        program: &Program,
    ) -> Result<Vec<Setup>, Error> {
        let own = |name: &str| self.env.get(name).map(OsString::from);
        let given = |name: &str| own(name).or_else(|| std::env::var_os(name));
        let is_other = !self.command.is_empty() || !self.env.is_empty();
        let other = is_other.then(|| program::of_command(command, &given)).transpose()?;
        let program = other.as_ref().unwrap_or(program);
        let asked_of_several = asked.filter(|_| technique::are_several(policy));
        match asked_of_several.and_then(|asked| self.in_vain(asked, command, program)) {
            Some(why) => Err(self.wrong(request, why)),
            None => technique::setups(policy, program, asked, &given),
        }
    }

    /// Why a technique does nothing in this program, unless the program is there to start another.
    fn in_vain(&self, asked: Technique, command: &[OsString], program: &Program) -> Option<String> {
        let why = technique::in_vain(asked, program)?;
        let may_start = match asked {
            Technique::Jvm => program::may_start_java,
            _ => program::may_start_another,
        };
        let other = "of a program that it starts itself, write the variables, such as JAVA_TOOL_OPTIONS, in env of an arm in --arms-file";
        (!may_start(command, self.path().as_deref())).then(|| format!("{why} (leave the technique out; {other})"))
    }

    /// An arm with the variables and the layout of this one.
    pub(super) fn with_own(&self, mut arm: Arm) -> Result<Arm, Error> {
        let layout = self.layout.as_ref().map(|layout| layout.parse::<Layout>()).transpose();
        let layout = layout.map_err(|why| Error::asked("layout", why))?;
        let is_chosen = self.like.is_some() || self.technique.is_some() || self.layout.is_some();
        let refused = match self.share {
            Some(0 | 100..) => Some("expected 1 to 99, percent of the 2 MiB ranges"),
            Some(_) if is_chosen => {
                Some("the rest of the memory is on base pages, so that it goes with no like, technique or layout")
            }
            Some(_) if !may_collapse() => Some("memory is collapsed from outside, which takes root (CAP_SYS_NICE)"),
            _ => None,
        };
        if let Some(why) = refused {
            return Err(Error::asked("share", why));
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
            if setup.way == Some(Technique::Switch) {
                setup.way = Some(Technique::Preload);
            }
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

/// The arms of `--arms-file`.
pub(super) fn of_file(request: &Request) -> Result<BTreeMap<String, Custom>, Error> {
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
        let _ = arm.technique.as_ref().map(|name| name.get_ref().parse::<Technique>());
        if let Some(Ok(layout)) = arm.layout.as_ref().map(|layout| layout.parse::<Layout>()) {
            assert_eq!(layout.to_string().parse::<Layout>().as_ref(), Ok(&layout));
        }
    }
}
