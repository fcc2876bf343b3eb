//! Builds a recipe in a directory of its own.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use process::rights::ShutIn;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::helper;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CarriedFile {
    /// Below the recipe's directory.
    pub(super) name: PathBuf,
    pub(super) bytes: Cow<'static, [u8]>,
    pub(super) is_executable: bool,
}

/// Builds from a recipe's files, in a fresh directory which then takes its place: nothing that was there before is run.
pub(super) fn build(folder: &Path, lines: &[String], files: &[CarriedFile], timeout: Duration) -> anyhow::Result<()> {
    let fresh = Fresh::beside(folder)?;
    for file in files {
        file.write_below(&fresh.0)?;
    }
    let shut_in = ShutIn {
        directory: fresh.0.clone(),
        environment: environment(&fresh.0),
        ..ShutIn::default()
    };
    for line in lines {
        let made = helper::run(Path::new("/bin/sh"), &["-c".into(), line.into()], &shut_in, timeout);
        let made = made.map_err(anyhow::Error::msg)?;
        let status = made.ended.status;
        if !status.success() {
            bail!("`{line}` ended with {status}: {}", made.outputs.errors().trim());
        }
    }
    fresh.takes_the_place_of(folder)
}

impl CarriedFile {
    fn write_below(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(&self.name);
        if let Some(above) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        std::fs::write(&path, &self.bytes)?;
        if self.is_executable {
            std::fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        }
        Ok(())
    }
}

/// All that a compiler needs of its user.
fn environment(folder: &Path) -> Vec<(OsString, OsString)> {
    let own = ["PATH", "HOME"].into_iter();
    let own = own.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    own.chain([("TMPDIR".into(), folder.into())]).collect()
}

/// A new directory, removed when it is dropped.
struct Fresh(PathBuf);

impl Fresh {
    fn beside(folder: &Path) -> anyhow::Result<Self> {
        let name = format!("{}.new-{}", folder.display(), std::process::id());
        let fresh = Self(PathBuf::from(name));
        // One that a killed run left under the same number.
        fresh.remove();
        let mut directory = DirBuilder::new();
        directory
            .recursive(true)
            .mode(0o700)
            .create(folder.parent().unwrap_or(folder))?;
        directory.recursive(false).create(&fresh.0)?;
        Ok(fresh)
    }

    /// At once, so that another comparison that uses the directory always finds it. What was there goes with this.
    fn takes_the_place_of(self, folder: &Path) -> anyhow::Result<()> {
        let exchanged = renameat_with(CWD, &self.0, CWD, folder, RenameFlags::EXCHANGE);
        match exchanged {
            Ok(()) => {}
            Err(Errno::NOENT) => std::fs::rename(&self.0, folder)?,
            // A file system that cannot exchange.
            Err(_) => {
                std::fs::remove_dir_all(folder)?;
                std::fs::rename(&self.0, folder)?;
            }
        }
        Ok(())
    }

    fn remove(&self) {
        // What cannot be removed does no harm: the next one has another name.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        self.remove();
    }
}
