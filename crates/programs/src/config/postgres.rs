//! postgresql.conf and what it includes.

use model::Unread;

use super::files::Line;
use super::includes::{Files, Include, Reader};
use super::{Setting, Settings};
use host::Source;

/// What a configuration file says with all that it includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Names in small letters; the last one of a name holds.
    pub settings: Settings,
    /// The files, in their order; empty if there is none.
    pub files: Vec<String>,
}

impl Configuration {
    /// A file with all that it includes, below `root`.
    ///
    /// # Errors
    /// If one of its files may not be read.
    pub fn read(source: &Source, root: &str, file: &str) -> Result<Self, Unread> {
        let (mut files, mut lines) = (Files::below(source, root), Lines(Vec::new()));
        files.read(file, &mut lines)?;
        Ok(Self {
            settings: Settings(lines.0),
            files: files.read,
        })
    }
}

struct Lines(Vec<Setting>);

impl Reader for Lines {
    const COMMENT: &'static [char] = &['#'];

    fn begin(&mut self, _: usize) {}

    fn line(&mut self, _: usize, line: Line<'_>) -> Option<Include> {
        let (name, value) = pair(line.text)?;
        match name.as_str() {
            "include" | "include_if_exists" => Some(Include::File(value)),
            "include_dir" => Some(Include::Directory(value, ".conf")),
            _ => {
                self.0.push(line.setting(name, value));
                None
            }
        }
    }
}

/// `name = value` or `name value`, quotes and `# comments` taken off, the name in small letters.
pub(super) fn pair(line: &str) -> Option<(String, String)> {
    let end = line.find(|c: char| c == '=' || c.is_whitespace())?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.strip_prefix('\'') {
        // A quote in a value is written twice.
        Some(quoted) => quoted.replace("''", "\u{0}").split('\'').next()?.replace('\u{0}', "'"),
        None => rest.split('#').next()?.trim().to_owned(),
    };
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_ascii_lowercase(), value))
}

#[cfg(test)]
mod tests {
    use super::Configuration;
    use host::{Source, Tree};

    #[test]
    fn what_is_included_holds_where_it_stands() {
        let tree = Tree::new()
            .file(
                "/etc/pg/postgresql.conf",
                "Shared_Buffers = 1GB\nhuge_pages = on\ninclude_dir = 'conf.d' # Debian\nwork_mem 4MB\ninclude_if_exists '/none'\n",
            )
            .file("/etc/pg/conf.d/b.conf", "huge_pages off\ninclude ../more.conf\n")
            .file("/etc/pg/conf.d/a.conf", "huge_pages = try\nwork_mem = 1MB\n")
            .file("/etc/pg/conf.d/.b.conf", "huge_pages = hidden\n")
            .file("/etc/pg/conf.d/c.txt", "huge_pages = other\n")
            .file("/etc/pg/more.conf", "wal_buffers = 3MB\n");
        let read =
            Configuration::read(&Source::from_tree("made", tree), "", "/etc/pg/postgresql.conf").expect("readable");
        let last = |name: &str| {
            read.settings
                .last(name)
                .map(|last| (last.value.as_str(), last.place.as_str()))
        };
        assert_eq!(last("huge_pages"), Some(("off", "/etc/pg/conf.d/b.conf:1")));
        assert_eq!(last("shared_buffers"), Some(("1GB", "/etc/pg/postgresql.conf:1")));
        assert_eq!(last("wal_buffers"), Some(("3MB", "/etc/pg/more.conf:1")));
        assert_eq!(last("work_mem"), Some(("4MB", "/etc/pg/postgresql.conf:4")));
        let main = "/etc/pg/postgresql.conf";
        assert_eq!(
            read.settings
                .last_outside(main, "huge_pages")
                .map(|last| last.value.as_str()),
            Some("off")
        );
        assert_eq!(
            (
                read.settings.last_outside(main, "work_mem"),
                read.settings.last_outside(main, "none")
            ),
            (None, None)
        );
        assert_eq!(read.files.len(), 4);
    }
}
