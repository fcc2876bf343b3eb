//! How commands reach the machine's settings: the one writer, the set-up that plans change, and plans themselves.

use std::path::{Path, PathBuf};

use anyhow::Context;
use host::Input;
use model::plan::Plan;
use rustix::process::Uid;
use settings::setup::{Setup, SetupError};
use settings::{LiveSink, Writer};

/// The writer to the machine's settings.
pub(super) fn writer() -> Writer {
    Writer::new(state_dir(), Box::new(LiveSink))
}

/// Where the journals are: gone after a restart, and so are the settings they keep account of. An ordinary user has
/// one of their own, since only root may write root's.
fn state_dir() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let named = std::env::var_os("HUGEWISE_STATE_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| state_dir_of(rustix::process::geteuid(), runtime))
}

fn state_dir_of(user: Uid, runtime: Option<PathBuf>) -> PathBuf {
    if user.is_root() {
        return PathBuf::from("/run/hugewise");
    }
    // Both are made by root for this user alone; a name in /tmp could be planted by any other.
    let runtime = runtime.filter(|path| path.is_absolute());
    let runtime = runtime.unwrap_or_else(|| PathBuf::from(format!("/run/user/{}", user.as_raw())));
    runtime.join("hugewise")
}

/// The machine's set-up. What was changed is recorded where it outlives a restart, if that can be written to.
pub(super) fn setup() -> Setup {
    let homes = match std::env::var_os("HUGEWISE_STATE_DIR") {
        Some(named) => vec![PathBuf::from(named).join("plans")],
        None => vec![PathBuf::from("/var/lib/hugewise"), PathBuf::from("/run/hugewise/plans")],
    };
    Setup::new(writer(), homes)
}

/// What an ordinary user can do about a refusal.
pub(super) fn hinted(error: SetupError) -> anyhow::Error {
    let denied = error.is_denied() && !rustix::process::geteuid().is_root();
    let error = anyhow::Error::from(error);
    if denied {
        error.context("changing the machine needs root: run it with sudo")
    } else {
        error
    }
}

pub(super) fn plan(path: &Path) -> anyhow::Result<Plan> {
    let name = path.display();
    let text = Input::Plan.text(path).with_context(|| name.to_string())?;
    Ok(Plan::from_json(&text).with_context(|| name.to_string())?.data)
}

#[cfg(test)]
mod tests {
    use super::state_dir_of;
    use rustix::process::Uid;
    use std::path::{Path, PathBuf};

    #[test]
    fn an_ordinary_user_has_a_directory_that_root_made_for_this_user() {
        let of = |user, runtime: Option<&str>| state_dir_of(Uid::from_raw(user), runtime.map(PathBuf::from));
        assert_eq!(of(1000, None), Path::new("/run/user/1000/hugewise"));
        assert_eq!(of(1000, Some("tmp")), Path::new("/run/user/1000/hugewise"));
        assert_eq!(of(1000, Some("/run/mine")), Path::new("/run/mine/hugewise"));
        assert_eq!(of(0, Some("/run/mine")), Path::new("/run/hugewise"));
    }
}
