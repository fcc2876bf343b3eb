//! Files and directories that only the right users can change, and this user's own directories.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use host::writers::changed_only_by;

model::table! {
    /// What a directory of this user's is for (XDG base directories), with the variable that names its parent, and that below the home directory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Use: (&'static str, &'static str) {
        /// What can be made again.
        Cache = ("XDG_CACHE_HOME", ".cache"),
        /// What a later run may need.
        State = ("XDG_STATE_HOME", ".local/state"),
    }
}

/// This user's directory for hugewise, for this user alone, made if it is not there. There is no other place to fall back to: in a
/// directory that others may write to, they could put what this user then believes or runs.
///
/// # Errors
/// If there is none, or others could change what is in it; says what to set.
pub(crate) fn own_directory(what: Use) -> anyhow::Result<PathBuf> {
    let given = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    directory(what, given(what.row().0), given("HOME"))
}

fn directory(what: Use, named: Option<PathBuf>, home: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let (variable, below) = what.row();
    let Some(base) = named.or_else(|| home.map(|home| home.join(below))) else {
        bail!("neither {variable} nor HOME names a directory (set one of them, as in HOME=/root)");
    };
    let path = base.join("hugewise");
    private(&path).with_context(|| format!("{}: set HOME or {variable} to a directory of your own", path.display()))
}

/// A directory that this user alone may enter.
fn private(path: &Path) -> anyhow::Result<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let there = path.ancestors().find(|above| above.symlink_metadata().is_ok());
    changed_only_by(there.unwrap_or(path), &[own]).map_err(anyhow::Error::msg)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let path = changed_only_by(path, &[own]).map_err(anyhow::Error::msg)?;
    let metadata = fs::symlink_metadata(&path)?;
    if !metadata.is_dir() || metadata.uid() != own {
        bail!("{} is not a directory of user {own}", path.display());
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(&path, Permissions::from_mode(0o700))?;
    }
    Ok(path)
}

/// The user who called sudo.
pub(crate) fn caller() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

/// The path without links, if only root and this user can change what is there: it is run with this user's rights. Where root is asked by
/// `sudo`, the user who typed it counts as this user. A descriptor, such as `/dev/fd/63`, is as the shell made it.
///
/// # Errors
/// Says who else could change it, and what to do.
pub(crate) fn to_be_run(path: &Path) -> anyhow::Result<PathBuf> {
    let own = rustix::process::geteuid();
    let users = [Some(own.as_raw()), caller().filter(|_| own.is_root())];
    let users: Vec<u32> = users.into_iter().flatten().collect();
    let is_descriptor = |own: &&str| path.parent() == Some(Path::new(own));
    if path == Path::new("/dev/stdin") || ["/dev/fd", "/proc/self/fd"].iter().any(is_descriptor) {
        return Ok(path.to_owned());
    }
    changed_only_by(path, &users).map_err(|why| {
        anyhow::anyhow!(
            "{why}: it is used with your rights, so only you and root may be able to change it (copy it to a directory of your own)"
        )
    })
}

#[cfg(test)]
mod tests;
