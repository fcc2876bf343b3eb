//! The places that a plan changes, and what can stand there.

use std::fmt;

use model::plan::{MountOptions, Sum, Target, Value, chosen};
use serde::{Deserialize, Serialize};

/// A place on the machine that hugewise may change, by its absolute path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A setting of the running kernel: a file below `/proc/sys` or `/sys`.
    Setting(String),
    File(String),
    /// A directory that a file or a mount needs.
    Directory(String),
    /// A mount point of hugetlbfs.
    Mount(String),
}

/// What stands at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Absent,
    /// The value of a setting, without white space around it; of a list such as `always [madvise] never` the chosen word.
    Text(String),
    File(FileState),
    Directory,
    /// A hugetlbfs with these options.
    Mounted(String),
    /// Something else, in words: it is never written over.
    Other(String),
}

/// A text file with its permissions and owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its whole content.
    pub text: String,
    pub mode: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl Place {
    /// The place that a change writes; `None` for instructions.
    pub(crate) fn of(target: &Target) -> Option<Self> {
        match target {
            Target::Setting { path } => Some(Self::Setting(path.clone())),
            Target::File { path, .. } => Some(Self::File(path.clone())),
            Target::Mount { at } => Some(Self::Mount(at.clone())),
            Target::Instruction { .. } => None,
        }
    }

    pub fn path(&self) -> &str {
        match self {
            Self::Setting(path) | Self::File(path) | Self::Directory(path) | Self::Mount(path) => path,
        }
    }

    /// Does its value outlive a restart of the machine?
    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self, Self::File(_) | Self::Directory(_))
    }

    /// The directories above it, from the top down; of a mount point also itself.
    pub(crate) fn directories(&self) -> Vec<Self> {
        let path = self.path();
        let ends = path.char_indices().filter(|&(at, c)| c == '/' && at > 0);
        let mut above: Vec<Self> = ends.map(|(at, _)| Self::Directory(path[..at].to_owned())).collect();
        if let Self::Mount(at) = self {
            above.push(Self::Directory(at.clone()));
        }
        above
    }
}

impl State {
    /// A setting's value from the text of its file.
    pub(crate) fn setting(text: &str) -> Self {
        Self::Text(chosen(text))
    }

    /// Is this the same as `other`, as far as the kernel keeps what was written?
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mounted(one), Self::Mounted(two)) => MountOptions::parse(one).is(&MountOptions::parse(two)),
            _ => self == other,
        }
    }

    /// Is this what the plan's value says? Of a file the content counts.
    pub(crate) fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Absent, Value::Absent) => true,
            (Self::Text(text), Value::Pages(pages)) => *text == pages.to_string(),
            (Self::Text(_), Value::Text(wanted)) => *self == Self::setting(wanted),
            (Self::File(file), Value::Text(text)) => file.text == *text,
            (Self::File(file), Value::Sum(sum)) => Sum::of(&file.text) == *sum,
            (Self::Mounted(_), Value::Text(options)) => self.is(&Self::Mounted(options.clone())),
            _ => false,
        }
    }

    /// The number that it is, if it is one.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// What a plan wants at its target, given what is there: what it leaves open stays. Of a file that is changed line by line it is what is
/// there, if those lines are made; else the lines.
pub(crate) fn wanted(target: &Target, after: &Value, now: &State) -> State {
    if let Value::Edit(edit) = after {
        return match now {
            State::File(file) if edit.is_made_in(&file.text) => now.clone(),
            _ => State::Other(edit.lines().join("; ")),
        };
    }
    match (target, after.text()) {
        (_, None) => State::Absent,
        (Target::File { mode, owner, .. }, Some(text)) => {
            let (old_mode, uid, gid) = match now {
                State::File(file) => (file.mode, file.uid, file.gid),
                _ => (0o644, 0, 0),
            };
            State::File(FileState {
                text,
                mode: mode.map_or(old_mode, |mode| mode.0),
                uid: owner.map_or(uid, |owner| owner.uid),
                gid: owner.map_or(gid, |owner| owner.gid),
            })
        }
        (Target::Mount { .. }, Some(options)) => State::Mounted(options),
        (_, Some(text)) => State::setting(&text),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(path) | Self::File(path) => f.pad(path),
            Self::Directory(path) => f.pad(&format!("{path}/")),
            Self::Mount(at) => f.pad(&format!("hugetlbfs on {at}")),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.pad("(nothing)"),
            Self::Text(text) | Self::Mounted(text) | Self::Other(text) => f.pad(text),
            Self::Directory => f.pad("a directory"),
            Self::File(file) => f.pad(&file.to_string()),
        }
    }
}

impl fmt::Display for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.text.lines().count();
        let Self { mode, uid, gid, .. } = self;
        let s = if lines == 1 { "" } else { "s" };
        write!(f, "{lines} line{s}, mode {mode:04o}, owner {uid}:{gid}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, State};
    use model::plan::Value;

    #[test]
    fn settings_are_told_by_their_value() {
        for (text, value) in [
            ("always [madvise] never\n", "madvise"),
            ("16\n", "16"),
            ("1024\t2\t 3\n", "1024 2 3"),
        ] {
            assert_eq!(State::setting(text), State::Text(value.to_owned()));
        }
        assert!(State::setting("7\n").holds(&Value::Pages(7)));
        assert!(!State::setting("7\n").holds(&Value::Absent));
    }

    #[test]
    fn a_mount_is_told_by_page_size_and_owner_however_it_is_written() {
        let mounted = |text: &str| State::Mounted(text.to_owned());
        let asked = mounted("pagesize=1G,uid=0,gid=70,mode=0770");
        assert!(asked.is(&mounted("rw,nosuid,relatime,gid=70,mode=770,pagesize=1024M")));
        assert!(!asked.is(&mounted("rw,relatime,gid=70,mode=770,pagesize=2M")));
        assert!(!asked.is(&mounted("rw,relatime,gid=7,mode=770,pagesize=1024M")));
        assert!(mounted("mode=0755").is(&mounted("rw,pagesize=2M")));
        assert!(!mounted("").is(&State::Absent));
    }

    #[test]
    fn the_directories_of_a_place_are_those_above_it() {
        let directories = |place: Place| place.directories().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            directories(Place::File("/etc/a/b.conf".to_owned())),
            ["/etc/", "/etc/a/"]
        );
        assert_eq!(directories(Place::Mount("/mnt/x".to_owned())), ["/mnt/", "/mnt/x/"]);
    }
}
