//! Which processes were asked for.

use anyhow::bail;
use host::{Accounts, Membership, Source, glob};
use model::process::ProcessPages;
use model::{Cause, Reading, Unread};

use crate::cli::args;

/// A choice of processes; what was not typed fits all.
pub(super) struct Select<'a> {
    args: &'a args::Ps,
    user: Option<u32>,
}

impl<'a> Select<'a> {
    /// Names of users are looked up once.
    pub(super) fn new(source: &Source, args: &'a args::Ps) -> anyhow::Result<Self> {
        let user = args.user.as_deref().map(|user| id_of(source, user)).transpose()?;
        Ok(Self { args, user })
    }

    /// # Errors
    /// Why it could not be read whether the process fits.
    pub(super) fn fits(&self, source: &Source, process: &ProcessPages) -> Result<bool, Unread> {
        let (name, cgroup) = (self.args.name.as_deref(), self.args.cgroup.as_deref());
        // A name and a user are in one file.
        let uid = || process.uid.as_ref().into_result();
        let of_user = self.user.map(|user| Ok(*uid()? == user));
        let is_named = name.map(|pattern| match uid() {
            Err(why) if process.name.is_empty() => Err(why),
            _ => Ok(glob::fits(pattern, &process.name)),
        });
        let in_group = cgroup.map(|path| in_group(source, process.pid, path));
        let asked: Vec<Result<bool, Unread>> = [of_user, is_named, in_group].into_iter().flatten().collect();
        match asked.contains(&Ok(false)) {
            true => Ok(false),
            false => asked.into_iter().find(Result::is_err).unwrap_or(Ok(true)),
        }
    }

    /// The choice in words; `None` if all processes fit.
    pub(super) fn words(&self) -> Option<String> {
        let words = [
            ("user", &self.args.user),
            ("name", &self.args.name),
            ("control group", &self.args.cgroup),
        ];
        let words = words.into_iter();
        let words = words.filter_map(|(what, value)| Some(format!("{what} {}", value.as_ref()?)));
        Some(draw::joined(words, ", ")).filter(|words| !words.is_empty())
    }
}

fn id_of(source: &Source, user: &str) -> anyhow::Result<u32> {
    if let Ok(id) = user.parse() {
        return Ok(id);
    }
    let accounts = Accounts::read(source);
    let found = accounts.known().and_then(|accounts| accounts.user_named(user));
    match (found, accounts.unread()) {
        (Some(found), _) => Ok(found.uid),
        (None, Some(why)) => bail!("--user {user}: its id is not known ({why}; write the id)"),
        (None, None) => bail!(
            "--user {user}: /etc/passwd of {} has no such user (write the id)",
            source.name()
        ),
    }
}

/// The group itself, or one below it, in any hierarchy.
fn in_group(source: &Source, pid: u32, group: &str) -> Result<bool, Unread> {
    let group = group.trim_end_matches('/');
    let below = |path: &str| {
        let rest = path.strip_prefix(group);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match Membership::read(source, pid) {
        Reading::Known(membership) => Ok(below(&membership.limits) || below(&membership.named)),
        Reading::Unread(why) if why.unread == Cause::Denied => Err(why),
        Reading::Unread(_) => Ok(false),
    }
}
