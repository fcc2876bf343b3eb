//! postgresql.conf and what it includes.

use model::Unread;

use super::value;
use crate::config::files::Line;
use crate::config::includes::{Files, Include, Reader};
use crate::config::{Setting, Settings};
use host::Source;

/// What a configuration file says with all that it includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Names in small letters; the last one of a name holds.
    pub settings: Settings,
    /// The files, in their order; empty if there is none.
    pub files: Vec<String>,
    /// Lines and values with which the server does not start.
    pub refused: Vec<Unread>,
}

impl Configuration {
    /// A file with all that it includes, below `root`.
    ///
    /// # Errors
    /// If one of its files may not be read.
    pub fn read(source: &Source, root: &str, file: &str) -> Result<Self, Unread> {
        let (mut files, mut lines) = (Files::below(source, root), Lines::default());
        files.read(file, &mut lines)?;
        Ok(Self::of(files, lines))
    }

    /// A text that was read, with all that it includes.
    ///
    /// # Errors
    /// If one of those files may not be read.
    pub fn of_text(source: &Source, file: &str, text: &str) -> Result<Self, Unread> {
        let (mut files, mut lines) = (Files::below(source, ""), Lines::default());
        files.text(file, text, &mut lines)?;
        Ok(Self::of(files, lines))
    }

    fn of(files: Files<'_>, lines: Lines) -> Self {
        Self {
            settings: Settings(lines.settings),
            files: files.read,
            refused: lines.refused,
        }
    }
}

/// The lines of one server, one by one.
#[derive(Default)]
pub(crate) struct Lines {
    pub(crate) settings: Vec<Setting>,
    /// What is included, by the setting that says so.
    pub(crate) includes: Vec<Setting>,
    pub(crate) refused: Vec<Unread>,
}

impl Reader for Lines {
    const COMMENT: &'static [char] = &['#'];

    fn begin(&mut self, _: usize) {}

    fn line(&mut self, _: usize, line: Line<'_>) -> Option<Include> {
        let Ok((name, value)) = value::line(line.text) else {
            let wanted = "`name = value`, with a value of several words in quotes: the server does not start with it";
            self.refused.push(line.garbled(wanted));
            return None;
        };
        let setting = line.setting(name, value.clone());
        match setting.name.as_str() {
            "include" | "include_if_exists" => {
                self.includes.push(setting);
                Some(Include::File(value))
            }
            "include_dir" => {
                self.includes.push(setting);
                Some(Include::Directory(value, ".conf"))
            }
            _ => {
                if let Err(wanted) = value::value(&setting.name, &setting.value) {
                    self.refused.push(setting.garbled(wanted));
                }
                self.refused.extend(value::misspelt(&setting));
                self.settings.push(setting);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use host::{Source, Tree};

    use super::Configuration;

    #[test]
    fn what_is_included_holds_where_it_stands() {
        let tree = Tree::new()
            .file(
                "/etc/pg/postgresql.conf",
                "Shared_Buffers = 1GB\nhuge_pages = on\ninclude_dir = 'conf.d' # Debian\nwork_mem 4MB\ninclude_if_exists '/none'\n",
            )
            .file("/etc/pg/conf.d/b.conf", "huge_pages off\ninclude '../more.conf'\n")
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
