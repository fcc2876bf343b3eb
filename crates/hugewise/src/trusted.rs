//! Files and directories that only the right users can change, and this user's own directories.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// What a directory of this user's is for (XDG base directories).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// What can be made again.
    Cache,
    /// What a later run may need.
    State,
}

impl Use {
    /// The variable that names its parent, and that below the home directory.
    fn places(self) -> (&'static str, &'static str) {
        match self {
            Self::Cache => ("XDG_CACHE_HOME", ".cache"),
            Self::State => ("XDG_STATE_HOME", ".local/state"),
        }
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
    directory(what, given(what.places().0), given("HOME"))
}

fn directory(what: Use, named: Option<PathBuf>, home: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let (variable, below) = what.places();
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

/// The path without links, if only root and these users can change it: neither the file, nor a directory
/// above it.
///
/// # Errors
/// In words: who could.
pub(crate) fn changed_only_by(path: &Path, users: &[u32]) -> Result<PathBuf, String> {
    let real = path.canonicalize();
    let real = real.map_err(|error| format!("{}: {error}", path.display()))?;
    for (above, part) in real.ancestors().enumerate() {
        let metadata = fs::symlink_metadata(part).map_err(|error| format!("{}: {error}", part.display()))?;
        if let Some(who) = others(&metadata, users, above > 0) {
            return Err(format!("{} {who}", part.display()));
        }
    }
    Ok(real)
}

/// Who else can change it.
fn others(metadata: &Metadata, users: &[u32], is_above: bool) -> Option<String> {
    let (owner, mode) = (metadata.uid(), metadata.mode());
    if owner != 0 && !users.contains(&owner) {
        return Some(format!("belongs to user {owner}"));
    }
    // In a sticky directory, such as /tmp, others cannot rename what belongs to another.
    let is_sticky = is_above && mode & 0o1000 != 0;
    // A user's private group has the user's number and no other member.
    let is_private_group = owner != 0 && metadata.gid() == owner;
    let by_group = mode & 0o020 != 0 && !is_private_group;
    ((by_group || mode & 0o002 != 0) && !is_sticky).then(|| "may be changed by other users".to_owned())
}

#[cfg(test)]
mod tests;
