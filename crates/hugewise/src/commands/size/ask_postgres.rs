//! Asks PostgreSQL's own program how many pages it takes, without starting a server.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use host::{Accounts, Input, Source};
use model::Bytes;
use programs::size::postgres::Origin;
use programs::{auto_conf, running_server};
use rustix::fs::OFlags;

use process::Done;
use process::rights::{ShutIn, User};

use crate::helper;
use crate::recipes::folders;
use host::writers::changed_only_by;

const SETTING: &str = "shared_memory_size_in_huge_pages";
/// Where distributions put the program, beside PATH: Debian's and PostgreSQL's own packages.
const HOMES: [&str; 2] = ["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"];
/// It answers within a tenth of a second; libraries that it loads may take longer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Clocks of files and of processes differ by so much at most.
const SAME_MOMENT: Duration = Duration::from_secs(1);

/// What servers said in this run, so that each is asked once.
static SAID: Mutex<BTreeMap<PathBuf, Result<u64, String>>> = Mutex::new(BTreeMap::new());

/// Pages of this size for the server whose configuration file this is: those of its shared memory if it runs, and else those that
/// its program prints.
///
/// # Errors
/// In words: it runs with other settings, no program, no owner that it could run as, or what the program said.
pub(crate) fn pages(source: &Source, file: &Path, page: Bytes) -> Result<(u64, Origin), String> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let names = [real.to_str(), file.to_str()].into_iter().flatten();
    if let Some(server) = names.into_iter().find_map(|name| running_server(source, name)) {
        if source.is_live() && server.age.is_some_and(|age| is_changed_within(file, age)) {
            let pid = server.pid;
            return Err(format!(
                "its file was changed after the running server ({pid}) started; stop or restart the server for the exact number"
            ));
        }
        return Ok((server.segment.0.div_ceil(page.0.max(1)), Origin::Running(server.pid)));
    }
    if !source.is_live() {
        return Err("no running server of this file is in the capture".to_owned());
    }
    let mut told = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let pages = told.entry(file.to_owned()).or_insert_with(|| said(file));
    pages.clone().map(|pages| (pages, Origin::Program))
}

/// Was the file, or the one that ALTER SYSTEM writes, changed within this time?
fn is_changed_within(file: &Path, time: Duration) -> bool {
    let text = Input::Configuration.text(file).unwrap_or_default();
    let auto_conf = PathBuf::from(auto_conf(&file.to_string_lossy(), &text));
    let files = [file, &auto_conf].into_iter();
    let mut changed = files.filter_map(|file| file.metadata().ok()?.modified().ok()?.elapsed().ok());
    changed.any(|ago| ago + SAME_MOMENT < time)
}

/// What the program says. It loads the libraries that the file names: so it runs as the file's owner, if no other user can change what it
/// reads, and never as root.
fn said(file: &Path) -> Result<u64, String> {
    if !file.is_absolute() {
        return Err("the file is not named by its whole path".to_owned());
    }
    let named = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let uid = |path: &Path| match path.metadata() {
        Ok(metadata) => Ok(metadata.uid()),
        Err(error) => Err(named(path, error)),
    };
    let real = file.canonicalize().map_err(|error| named(file, error))?;
    let directory = real.parent().ok_or("the file is in no directory")?.to_owned();
    let own = rustix::process::geteuid().as_raw();
    let owner = owner(own, [uid(&real)?, uid(&directory)?])?;
    let file = changed_only_by(&real, &[owner])?;
    let program =
        program(version(&directory)).ok_or("no postgres program is in PATH, /usr/lib/postgresql or /usr/pgsql-*")?;
    let program = changed_only_by(&program, &[owner])?;
    let user = (owner != own).then(|| user(owner)).transpose()?;
    answer(&program, &file, directory, user)
}

/// Its answer; without a user it runs as the one of this program.
fn answer(program: &Path, file: &Path, directory: PathBuf, user: Option<User>) -> Result<u64, String> {
    let mut named = OsString::from("config_file=");
    named.push(file);
    let arguments = [
        "-D".into(),
        directory.into(),
        "-C".into(),
        SETTING.into(),
        "-c".into(),
        named,
        // Shares no memory; its key may be readable by a group that this process does not have (Debian's ssl-cert).
        "-c".into(),
        "ssl=off".into(),
    ];
    let shut_in = ShutIn {
        user,
        directory: "/".into(),
        environment: vec![("LC_ALL".into(), "C".into())],
        accounts: None,
    };
    let done = helper::run(program, &arguments, &shut_in, TIMEOUT)?;
    let pages = done.outputs.output().trim().parse().ok();
    let pages = pages.filter(|_| done.ended.status.success());
    pages.ok_or_else(|| format!("{}: {}", program.display(), complaint(&done)))
}

/// The line that says why it ended, or else the first.
fn complaint(done: &Done) -> String {
    let is_why = |line: &&str| ["FATAL:", "PANIC:", "ERROR:"].iter().any(|word| line.contains(word));
    let errors = done.outputs.errors();
    let line = errors.lines().find(is_why).or(errors.lines().next());
    line.map_or_else(|| done.ended.status.to_string(), |line| line.trim().to_owned())
}

/// The user that the program may run as. The owner of the file or its directory chooses the libraries that are loaded, so that must be one
/// user (and perhaps root); and for an ordinary user it must be himself.
fn owner(own: u32, owners: [u32; 2]) -> Result<u32, String> {
    let mut others = owners.into_iter().filter(|owner| *owner != 0);
    let one = others.next();
    if others.any(|other| Some(other) != one) {
        return Err("the file and its directory belong to different users".to_owned());
    }
    match (own, one) {
        (0, None) => Err("the file belongs to root, and a server's program is never run as root".to_owned()),
        (0, Some(one)) => Ok(one),
        (own, None) => Ok(own),
        (own, Some(one)) if own == one => Ok(own),
        (_, Some(one)) => Err(format!(
            "the file belongs to user {one}, whose libraries would run as you"
        )),
    }
}

/// A user with the main group that the accounts give it. The group of a file is its owner's choice.
fn user(uid: u32) -> Result<User, String> {
    let accounts = Accounts::read(&Source::live()).into_result();
    let accounts = accounts.map_err(|why| why.to_string())?;
    let group = accounts.user(uid).and_then(|user| user.gid);
    let gid = group.ok_or_else(|| format!("user {uid} has no account in /etc/passwd"))?;
    Ok(User { uid, gid })
}

/// The version of the server that a data directory is of, or that the path names (`/etc/postgresql/15/main`).
fn version(directory: &Path) -> Option<u32> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let mut options = File::options();
    let options = options.read(true).custom_flags(flags.bits().cast_signed());
    let written = || {
        let file = options.open(directory.join("PG_VERSION")).ok()?;
        file.metadata().ok().filter(|found| found.is_file())?;
        let mut text = String::new();
        file.take(16).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    };
    let named = || {
        let mut parts = directory.iter().skip_while(|part| *part != "postgresql").skip(1);
        parts.next()?.to_str()?.parse().ok()
    };
    written().or_else(named)
}

/// The program of that version; else PATH's, and else the newest.
fn program(version: Option<u32>) -> Option<PathBuf> {
    let of_version = |version: u32| HOMES.map(|home| PathBuf::from(home.replace('*', &version.to_string())));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut newest: Vec<PathBuf> = HOMES.iter().flat_map(|home| folders(home)).collect();
    newest.sort_by_key(|folder| Reverse(release(folder)));
    let all = version.into_iter().flat_map(of_version).chain(in_path).chain(newest);
    let mut programs = all.map(|folder| folder.join("postgres"));
    programs.find(|program| program.is_file())
}

/// The first number of the path.
fn release(folder: &Path) -> u32 {
    let text = folder.to_string_lossy();
    let numbers = text.split(|one: char| !one.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{owner, release, version};
    use std::path::Path;

    #[test]
    fn a_server_runs_as_the_one_user_who_owns_its_files_and_never_as_root() {
        assert_eq!(owner(0, [101, 101]), Ok(101));
        assert_eq!(owner(0, [101, 0]), Ok(101));
        assert_eq!(owner(0, [0, 101]), Ok(101));
        assert!(owner(0, [0, 0]).expect_err("root").contains("never run as root"));
        assert!(owner(0, [101, 1000]).expect_err("two").contains("different users"));
        assert_eq!(owner(1000, [1000, 1000]), Ok(1000));
        assert_eq!(owner(1000, [0, 1000]), Ok(1000));
        assert_eq!(owner(1000, [0, 0]), Ok(1000));
        assert!(owner(1000, [101, 101]).expect_err("another's").contains("run as you"));
    }

    #[test]
    fn the_release_is_the_first_number_of_the_path() {
        let of = |path: &str| release(Path::new(path));
        assert_eq!(of("/usr/lib/postgresql/12/bin"), 12);
        assert_eq!(of("/usr/pgsql-16/bin"), 16);
        assert_eq!(of("/usr/pgsql-9.6/bin"), 9);
        assert_eq!(of("/usr/lib/postgresql/other/bin"), 0);
    }

    #[test]
    fn the_version_is_the_data_directory_s_or_the_path_s() {
        let temp = tempfile::tempdir().expect("a directory");
        assert_eq!(version(temp.path()), None);
        std::fs::write(temp.path().join("PG_VERSION"), "15\n").expect("written");
        assert_eq!(version(temp.path()), Some(15));
        assert_eq!(version(Path::new("/nonexistent/postgresql/16/main")), Some(16));
        assert_eq!(version(Path::new("/nonexistent/pgsql/data")), None);
    }
}
