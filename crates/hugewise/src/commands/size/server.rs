//! Asks PostgreSQL's own program how many pages it takes, without starting a server.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SETTING: &str = "shared_memory_size_in_huge_pages";

/// Where distributions put the program, beside PATH.
const HOMES: [&str; 2] = ["/usr/lib/postgresql", "/usr"];

/// Pages for the server whose configuration file this is. Runs as the owner of the file's directory: the program loads
/// the libraries that the file names, which must never happen as root for somebody else's file.
///
/// # Errors
/// In words: no program, no owner, or what the program said.
pub(crate) fn pages(file: &Path) -> Result<u64, String> {
    let directory = file.parent().filter(|directory| directory.is_absolute());
    let directory = directory.ok_or("the file is not named by its whole path")?;
    let owner = directory
        .metadata()
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut said = "no postgres program is in PATH, /usr/lib/postgresql or /usr/pgsql-*".to_owned();
    for program in programs() {
        match ask(&program, file, directory, (owner.uid(), owner.gid())) {
            Ok(pages) => return Ok(pages),
            Err(why) => said = why,
        }
    }
    Err(said)
}

/// PATH's program first, then the newest.
fn programs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|directory| directory.join("postgres"));
    let mut installed: Vec<PathBuf> = HOMES
        .iter()
        .filter_map(|home| std::fs::read_dir(home).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path().join("bin/postgres")))
        .collect();
    installed.sort();
    in_path
        .chain(installed.into_iter().rev())
        .filter(|program| program.is_file())
        .collect()
}

fn ask(program: &Path, file: &Path, directory: &Path, (uid, gid): (u32, u32)) -> Result<u64, String> {
    let mut command = Command::new(program);
    command.arg("-D").arg(directory).arg("-C").arg(SETTING);
    command.arg("-c").arg(format!("config_file={}", file.display()));
    command.env_clear().stdin(Stdio::null());
    if rustix::process::geteuid().is_root() {
        command.uid(uid).gid(gid);
    }
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let pages = said.trim().parse().ok().filter(|_| output.status.success());
    pages.ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint = complaint.lines().next().unwrap_or_default().trim();
        format!("{}: {complaint}", program.display())
    })
}
