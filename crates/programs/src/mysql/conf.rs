//! Option files of MySQL and MariaDB: what the groups of the server say, in a file and in those that it includes.

use std::collections::BTreeMap;

use model::{Bytes, Cause, Reading, Unread};

use super::groups::Groups;
use crate::config::files::said;
use crate::config::includes::{Files, Reader};
use crate::config::{Setting, Settings};
use crate::locks::{Lock, Locks};
use crate::packages;
use host::Source;
use host::parse::shift;

/// Those that a server reads, in this order, without the files of one user.
const FILES: [&str; 3] = ["/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/etc/my.cnf"];

/// What an option file says to the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Names with underscores; `name` alone is `ON`. The last one of a name holds.
    pub settings: Settings,
    /// What groups of one of several servers say, by the end of their names: `1` of `[mysqld1]`.
    pub(crate) instances: BTreeMap<String, Vec<Setting>>,
    /// What is included, by the order that says so.
    pub includes: Vec<Setting>,
    /// Is there a group that MariaDB alone reads?
    pub names_mariadb: bool,
    /// Lines that the server refuses, or does not take as a user may mean them.
    pub refused: Vec<Unread>,
    /// Why settings are not judged that one of several versions of the server reads, with the place of the first.
    pub(crate) undecided: Option<String>,
}

/// The file that a server's arguments name, or the first that is there; `None` without any. `root` is the server's own root directory.
pub fn option_file(source: &Source, root: &str, arguments: &[String]) -> Option<String> {
    let is_there = |file: &&str| source.text(&format!("{root}{file}")).known().is_some();
    let found = || FILES.into_iter().find(is_there);
    named(arguments).or_else(found).map(str::to_owned)
}

fn named(arguments: &[String]) -> Option<&str> {
    arguments.iter().find_map(|word| word.strip_prefix("--defaults-file="))
}

/// The end of the names of its own groups (`mysqld@replica` and `mariadb@.service` have one each).
fn suffix(arguments: &[String]) -> &str {
    let mut all = arguments.iter();
    all.find_map(|word| word.strip_prefix("--defaults-group-suffix="))
        .unwrap_or_default()
}

impl Options {
    /// A file with all that it includes, below `root`.
    ///
    /// # Errors
    /// If it is not there, or one of its files may not be read.
    pub fn read(source: &Source, root: &str, file: &str) -> Result<Self, Unread> {
        Self::of_file(source, root, file, "")
    }

    fn of_file(source: &Source, root: &str, file: &str, suffix: &str) -> Result<Self, Unread> {
        let version = packages::version(source, root, &super::PACKAGES);
        let mut groups = Groups::of(suffix, version.known().copied());
        match Files::below(source, root).read(file, &mut groups)? {
            true => Ok(groups.options()),
            false => Err(Unread::new(Cause::Absent, file, "there is no such file")),
        }
    }

    /// A text alone; what it includes is not there.
    pub fn parse(path: &str, text: &str) -> Self {
        let mut groups = Groups::default();
        groups.begin(0);
        for line in said(path, text, Groups::COMMENT) {
            groups.line(0, line);
        }
        groups.options()
    }

    /// The files that a server reads, those of its arguments or the usual ones; what is not there says nothing.
    pub(crate) fn of_server(source: &Source, root: &str, arguments: &[String]) -> Result<Self, Unread> {
        let files = named(arguments).map_or_else(|| FILES.to_vec(), |named| vec![named]);
        let mut all = Self::default();
        for file in files {
            match Self::of_file(source, root, file, suffix(arguments)) {
                Ok(mut options) => {
                    all.settings.0.append(&mut options.settings.0);
                    all.refused.append(&mut options.refused);
                    all.names_mariadb |= options.names_mariadb;
                }
                Err(why) if why.unread == Cause::Absent => {}
                Err(why) => return Err(why),
            }
        }
        Ok(all)
    }
}

/// An option: its name with underscores, and its value without comment and quotes (mysys/my_default.c).
pub(super) fn pair(line: &str) -> Option<(String, String)> {
    written(without_comment(line))
}

/// What a server's arguments set, in their order.
pub(crate) fn set_by(arguments: &[String]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        let Some((name, value)) = word.strip_prefix("--").and_then(written) else {
            continue;
        };
        // The value of such an option may be the next word (my_getopt).
        if name != NAME && decides(&name) {
            let next = arguments.get(at + 1).filter(|next| !next.starts_with('-'));
            let value = if word.contains('=') { Some(&value) } else { next };
            all.extend(value.map(|value| (name, value.clone())));
        } else {
            all.push((name, value));
        }
    }
    all
}

fn written(line: &str) -> Option<(String, String)> {
    let (name, value) = line
        .split_once('=')
        .map_or((line, None), |(name, value)| (name, Some(value)));
    let name = name.trim().replace('-', "_").to_ascii_lowercase();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    // An option that the server may not know is written so, lest it refuse to start.
    let name = name.strip_prefix("loose_").unwrap_or(&name);
    let value = value.map(|value| unquoted(value.trim()));
    let negated = name.strip_prefix("skip_").or_else(|| name.strip_prefix("disable_"));
    let (name, value) = match (negated, name.strip_prefix("enable_")) {
        // `skip-large-pages=0` switches it on; `OFF` does not (my_getopt).
        (Some(name), _) if value == Some("0") => (name, "ON"),
        (Some(name), _) => (name, "OFF"),
        (None, Some(name)) => (name, value.unwrap_or("ON")),
        (None, None) => (name, value.unwrap_or("ON")),
    };
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// A `#` outside of quotes begins a comment.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..at],
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    line
}

/// Quotes around the whole value are no part of it.
fn unquoted(value: &str) -> &str {
    let of = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    of('"').or_else(|| of('\'')).unwrap_or(value)
}

/// Is a switch on? A word that is none of the server's switches it off, with a warning in its log.
pub fn is_on(value: &str) -> bool {
    matches!(value.to_ascii_uppercase().as_str(), "ON" | "1" | "TRUE")
}

/// With this prefix the server starts without an option that it does not know.
pub(super) fn is_loose(line: &str) -> bool {
    let prefix = line.get(..6).unwrap_or_default().replace('-', "_");
    prefix.eq_ignore_ascii_case("loose_")
}

/// Why the server does not take a value as a user may mean it.
pub(super) fn refused(setting: &Setting, is_loose: bool) -> Option<Unread> {
    let is_switch = || matches!(setting.value.to_ascii_uppercase().as_str(), "OFF" | "0" | "FALSE");
    if setting.name == NAME && !is_on(&setting.value) && !is_switch() {
        return Some(setting.garbled("ON or OFF, so the server takes it for OFF"));
    }
    let name = setting.name.as_str();
    // The beginning of a name stands for it.
    let is_known = NAME.starts_with(name) || ["super_large_pages", "large_page_size"].contains(&name);
    if (name.contains("huge") || name.contains("large_page")) && !is_known && !is_loose {
        let why = format!("the server has no option {name}: large-pages is meant. It does not start with it");
        return Some(Unread::new(Cause::Garbled, &setting.place, why));
    }
    (SIZES.contains(&&*setting.name) && size(&setting.value).is_none())
        .then(|| setting.garbled("a size such as 8G: the server does not start with it"))
}

/// How many parts the buffer pool has.
pub(super) const INSTANCES: &str = "innodb_buffer_pool_instances";

/// Settings of a size in bytes that decide on pages.
const SIZES: [&str; 6] = [
    "innodb_buffer_pool_size",
    "innodb_buffer_pool_size_max",
    "innodb_buffer_pool_chunk_size",
    "innodb_log_buffer_size",
    "key_buffer_size",
    "aria_pagecache_buffer_size",
];

/// Does a setting decide on the pages of the server?
pub(super) fn decides(name: &str) -> bool {
    [NAME, INSTANCES].contains(&name) || SIZES.contains(&name)
}

/// A size as eval_num_suffix() reads it: digits, and a letter K, M, G, T, P or E. What follows the letter is not looked at, so that `8GB` is 8G.
pub fn size(text: &str) -> Option<Bytes> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = unit.chars().next().map_or(Some(0), shift)?;
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).map(Bytes)
}

/// `large-pages` among a server's arguments, or else in its option files, the last of which wins.
/// `typed_in` is the place of the arguments.
pub(crate) fn large_pages(
    files: Result<&Options, &Unread>,
    (arguments, typed_in): (&[String], &str),
) -> Reading<Option<Setting>> {
    let typed = set_by(arguments).into_iter().rfind(|(name, _)| name == NAME);
    if let Some((name, value)) = typed {
        return Reading::Known(Some(Setting::new(typed_in, name, value)));
    }
    match files {
        Ok(options) => Reading::Known(options.settings.last(NAME).cloned()),
        Err(why) => Reading::Unread(why.clone()),
    }
}

const NAME: &str = "large_pages";

/// By which line MariaDB is to lock its memory, within the limit of its user. MySQL does so only where root starts it, whom no limit binds.
pub(crate) fn memlock(settings: &Settings) -> Option<Lock> {
    let setting = settings.last("memlock").filter(|set| is_on(&set.value))?.clone();
    let what = Locks::All;
    Some(Lock { setting, what })
}

#[cfg(test)]
mod tests {
    use model::Cause;

    use super::{Options, large_pages, option_file};
    use host::{Source, Tree};

    #[test]
    fn groups_of_one_version_count_while_they_are_of_one() {
        let read = |groups: &str| {
            let options = Options::parse("a", &groups.replace(' ', "\n"));
            let pool = last(&options, "innodb_buffer_pool_size").map(|(value, _)| value);
            (pool, options.undecided.iter().count())
        };
        let of = |pool: &str, refused| (Some(pool.to_owned()), refused);
        let base = "[mysqld] innodb_buffer_pool_size=1G";
        for (groups, wanted) in [
            ("[mysqld-8.0] innodb_buffer_pool_size=8G", of("8G", 0)),
            (
                "[mysqld-5.7] innodb_buffer_pool_size=2G [mysqld-8.0] innodb_buffer_pool_size=8G",
                of("1G", 1),
            ),
            (
                "[mysqld-5.7] query_cache_size=0 [mysqld-8.0] innodb_buffer_pool_size=8G",
                of("8G", 0),
            ),
            // What 10.11 reads (mariadbd --print-defaults): X.Y, and no other form.
            ("[mariadb-10] innodb_buffer_pool_size=8G", of("1G", 0)),
            ("[mysqld-10.11.6] innodb_buffer_pool_size=8G", of("1G", 0)),
        ] {
            assert_eq!(read(&format!("{base} {groups}")), wanted, "{groups}");
        }
    }

    #[test]
    fn a_server_reads_the_groups_of_its_own_suffix() {
        let text = "[mysqld]\nport=1\n[mysqld@a]\nport=2\n[mariadb.a]\nport=3\n[mysqld7]\nport=7\n[server@a]\nport=9\n[mysqld_multi]\nport=4\n";
        let source = Source::from_tree("made", Tree::new().file("/etc/my.cnf", text));
        let port = |argument: &str| {
            let options = Options::of_server(&source, "", &[argument.to_owned()]).expect("readable");
            last(&options, "port").map(|(value, _)| value)
        };
        for (suffix, wanted) in [("", "1"), ("@a", "9"), (".a", "3"), ("7", "7"), ("@b", "1")] {
            let argument = format!("--defaults-group-suffix={suffix}");
            assert_eq!(port(&argument).as_deref(), Some(wanted), "{suffix}");
        }
        let several = Options::parse("a", text).instances;
        assert_eq!(several.keys().collect::<Vec<_>>(), [".a", "7", "@a"]);
    }

    #[test]
    fn an_unknown_option_behind_loose_stops_no_server() {
        let refused = |line: &str| Options::parse("a", &format!("[mysqld]\n{line}\n")).refused.len();
        for (line, count) in [
            ("hugepage_x=1", 1),
            ("loose_hugepage_x=1", 0),
            ("loose-hugepage-x", 0),
            ("loose-innodb_buffer_pool_size=x", 1),
        ] {
            assert_eq!(refused(line), count, "{line}");
        }
    }

    #[test]
    fn groups_have_letters_of_any_size_and_no_option_is_before_them() {
        let options = Options::parse("a", "port = 1\n[MYSQLD]\nlarge-pages\nskip-large-pages=OFF\n");
        let set = options.settings.iter().map(|set| set.value.as_str());
        assert_eq!(set.collect::<Vec<_>>(), ["ON", "OFF"]);
        assert_eq!(options.refused.len(), 1, "{:?}", options.refused);
    }

    #[test]
    fn groups_of_another_version_than_the_installed_one_are_not_read() {
        let large = |status: &str, group: &str| {
            let tree = Tree::new().file("/r/etc/my.cnf", format!("[{group}]\nlarge-pages\n"));
            let tree = tree.file("/r/var/lib/dpkg/status", status);
            let options = Options::read(&Source::from_tree("made", tree), "/r", "/etc/my.cnf").expect("readable");
            last(&options, "large_pages").is_some()
        };
        let mariadb = "Package: mariadb-server-core\nStatus: install ok installed\nVersion: 1:10.11.14-0+deb12u2\n";
        let old = "Package: mariadb-server-core-10.6\nStatus: deinstall ok config-files\nVersion: 1:10.6.1\n\n";
        let both = format!("{old}{mariadb}");
        for status in [mariadb, &both] {
            assert!(!large(status, "mariadb-10.6"), "{status}");
            assert!(large(status, "mariadb-10.11") && large(status, "mysqld"), "{status}");
        }
        assert!(large("Package: bash\nVersion: 5.2\n", "mariadb-10.6"), "not known");
    }

    fn debian() -> Tree {
        Tree::new()
            .file(
                "/etc/mysql/my.cnf",
                "[client-server]\nsocket = /run/s\n[mysqld]\n!includedir /etc/mysql/conf.d/\nport = 1\n",
            )
            .file(
                "/etc/mysql/conf.d/b.cnf",
                "[mysqld_safe]\nnice = 1\n[mysqldump]\nquick\n[mysqld-10.11]\ninnodb-buffer-pool-size = 8G # most\n",
            )
            .file(
                "/etc/mysql/conf.d/a.cnf",
                "port = 7\n[server]\ninnodb_buffer_pool_size = 1G\n!include /etc/more\n",
            )
            .file("/etc/mysql/conf.d/c.txt", "[mysqld]\nport = 9\n")
            .file("/etc/more", "[mariadb-10.11]\nskip-large-pages\n")
    }

    fn last(options: &Options, name: &str) -> Option<(String, String)> {
        let setting = options.settings.last(name)?;
        Some((setting.value.clone(), setting.place.clone()))
    }

    #[test]
    fn included_files_are_read_in_place_and_in_order_and_groups_of_other_programs_are_not() {
        let options = Options::read(&Source::from_tree("made", debian()), "", "/etc/mysql/my.cnf").expect("readable");
        let at = |value: &str, place: &str| Some((value.to_owned(), place.to_owned()));
        assert_eq!(
            last(&options, "innodb_buffer_pool_size"),
            at("8G", "/etc/mysql/conf.d/b.cnf:6")
        );
        assert_eq!(last(&options, "large_pages"), at("OFF", "/etc/more:2"));
        assert_eq!(
            last(&options, "port"),
            at("1", "/etc/mysql/my.cnf:5"),
            "its own group goes on"
        );
        assert_eq!((last(&options, "quick"), last(&options, "nice")), (None, None));
        assert!(options.names_mariadb);
    }

    #[test]
    fn files_that_include_each_other_end_and_a_missing_one_is_none() {
        let tree = Tree::new().file(
            "/a.cnf",
            "[mysqld]\nport = 3\n!include /a.cnf\n!includedir /nowhere\n!include /nowhere\n",
        );
        let source = Source::from_tree("made", tree);
        let options = Options::read(&source, "", "/a.cnf").expect("readable");
        assert_eq!(options.settings.iter().count(), 1 + crate::config::includes::DEEPEST);
        // What would cost too much to read is an error, and no part of it.
        let many = |count: usize| {
            let text = format!("[mysqld]\n{}!include /last.cnf\n", "!include /nowhere\n".repeat(count));
            let tree = Tree::new()
                .file("/a.cnf", text)
                .file("/last.cnf", "[mysqld]\nport = 3\n");
            Options::read(&Source::from_tree("made", tree), "", "/a.cnf")
        };
        assert!(many(100).is_ok_and(|options| last(&options, "port").is_some()));
        assert_eq!(many(1000).map_err(|why| why.unread), Err(Cause::Failed));
        let missing = Options::read(&source, "", "/b.cnf").expect_err("nowhere");
        assert_eq!((missing.unread, missing.place.as_str()), (Cause::Absent, "/b.cnf"));
    }

    #[test]
    fn arguments_win_over_the_files_of_the_server_s_own_root() {
        let tree = Tree::new().file("/proc/7/root/etc/my.cnf", "[mysqld]\nlarge-pages\n");
        let source = Source::from_tree("made", tree);
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let files = Options::of_server(&source, "/proc/7/root", &words);
            let found = large_pages(files.as_ref(), (&words, "cmdline"));
            found
                .known()
                .cloned()
                .flatten()
                .map(|setting| (setting.value, setting.place))
        };
        let pair = |value: &str, place: &str| Some((value.to_owned(), place.to_owned()));
        assert_eq!(of(&["mysqld"]), pair("ON", "/etc/my.cnf:2"));
        assert_eq!(of(&["mysqld", "--large-pages=0"]), pair("0", "cmdline"));
        assert_eq!(of(&["mysqld", "--skip-large-pages"]), pair("OFF", "cmdline"));
        let both = Tree::new()
            .file("/etc/my.cnf", "[mysqld]\nlarge-pages\n")
            .file("/etc/mysql/my.cnf", "[mysqld]\nlarge-pages = 0\n");
        let files = Options::of_server(&Source::from_tree("made", both), "", &[]);
        let last = large_pages(files.as_ref(), (&[], "cmdline"));
        let place = last.known().and_then(|last| Some(last.as_ref()?.place.as_str()));
        assert_eq!(place, Some("/etc/mysql/my.cnf:2"));
        assert_eq!(option_file(&source, "", &[]), None);
        let named = ["mysqld".to_owned(), "--defaults-file=/x".to_owned()];
        assert_eq!(option_file(&source, "", &named).as_deref(), Some("/x"));
    }
}
