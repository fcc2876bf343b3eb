//! What commands that run at boot write to files of the kernel, by sysctl too: what is known of it, and what is not.

use std::fmt;

use model::{Cause, Unread};

use super::Reader;
use super::writes::left;
use crate::config::Setting;
use crate::config::given::shell_tokens::tokens;

/// What only a run shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct Unresolved {
    place: String,
    why: String,
    /// The file that it may write, as far as its name is known; `None` where it writes none of the kernel's.
    file: Option<String>,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

impl Unresolved {
    pub(super) fn new(place: impl Into<String>, why: impl Into<String>, file: Option<String>) -> Self {
        let (place, why) = (place.into(), why.into());
        Self { place, why, file }
    }

    /// May it set the pages of a pool?
    pub(in crate::config) fn may_be_pool(&self) -> bool {
        self.may_be("nr_hugepages", "transparent_hugepage")
    }

    /// May it set the THP policy?
    pub(in crate::config) fn may_be_policy(&self) -> bool {
        self.may_be("transparent_hugepage/enabled", "nr_hugepages")
    }

    /// A name that only a run shows may be any that it does not contradict.
    fn may_be(&self, own: &str, other: &str) -> bool {
        let is_open = |file: &str| file.is_empty() || file.contains(['$', '`', '*', '?', '[']);
        let file = self.file.as_deref();
        file.is_some_and(|file| file.contains(own) || (is_open(file) && !file.contains(other)))
    }
}

/// What commands of a file write to files of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::config) struct Written {
    /// The last value for each, where it is known.
    pub(in crate::config) settings: Vec<Setting>,
    /// What else may be written.
    pub(in crate::config) unresolved: Vec<Unresolved>,
}

impl Written {
    /// What is written.
    ///
    /// # Errors
    /// If something else may be written that matters.
    pub(in crate::config) fn known(&self, matters: fn(&Unresolved) -> bool) -> Result<&[Setting], Unread> {
        match self.unresolved.iter().find(|own| matters(own)) {
            Some(own) => Err(Unread::new(Cause::Garbled, &own.place, &own.why)),
            None => Ok(&self.settings),
        }
    }

    pub(in crate::config) fn add(&mut self, other: Self) {
        self.settings.extend(other.settings);
        self.unresolved.extend(other.unresolved);
    }
}

/// Of a text that follows so many lines of the file, with variables that it has. A capture may lack lines that close quotes: then each line counts alone.
pub(in crate::config) fn written(path: &str, environment: &[Setting], text: &str, before: usize) -> Written {
    let mut reader = Reader::with(path, environment);
    match tokens(text) {
        Some(_) => reader.run(text, before),
        None => {
            for (nth, line) in text.lines().enumerate() {
                reader.run(&closed(line), before + nth);
            }
        }
    }
    reader.writes.retain(|write| write.is_at_once);
    let (settings, doubts) = left(&reader.writes);
    let open = reader.script.unresolved.into_iter().filter(|own| own.file.is_some());
    Written {
        settings,
        unresolved: open.chain(doubts).collect(),
    }
}

/// A line with the end of what it opens.
fn closed(line: &str) -> String {
    let behind = line.rsplit_once("<<").map_or("", |(_, behind)| behind);
    let word = behind.trim_start_matches(['-', ' ', '"', '\'', '\\']);
    let word: String = word.chars().take_while(char::is_ascii_alphanumeric).collect();
    let ends = ["", "'", "\"", ")", &format!("\n{word}\n")].map(|end| format!("{line}{end}"));
    let whole = ends.into_iter().find(|line| tokens(line).is_some());
    whole.unwrap_or_else(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Unresolved, written};

    const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    const POLICY: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

    /// Values with their places, or the reason that they are not known.
    fn read(text: &str, matters: fn(&Unresolved) -> bool) -> String {
        let text = text.replace("POOL", POOL).replace("POLICY", POLICY);
        match written("a", &[], &text, 0).known(matters) {
            Ok(settings) => {
                let all = settings.iter().map(|set| format!("{} {}", set.place, set.value));
                all.collect::<Vec<_>>().join(", ")
            }
            Err(why) => format!("? {}", why.place),
        }
    }

    #[test]
    fn a_value_that_another_may_follow_is_not_known() {
        for (text, expected) in [
            (
                "echo 0 > POOL\nif [ \"$(nproc)\" -gt 30 ]; then\necho 8 > POOL\nfi\n",
                "? a:3",
            ),
            ("if [ $1 = a ]; then echo 8 > POOL; else echo 9 > POOL; fi", "? a:1"),
            ("[ $1 = a ] && echo 8 > POOL\necho 9 > POOL\n", "a:2 9"),
            ("[ $1 = a ] && echo 8 > POOL\n", "a:1 8"),
            ("echo 8 > POOL\necho $1 > POOL\n", "? a:2"),
            ("echo 8 > POOL\nexpr 2 + 2 > POOL\n", "? a:2"),
            (
                "echo 8 > POOL\nfor f in $FILES/hugepages; do echo never > $f; done\n",
                "? a:2",
            ),
            ("for f in POOL; do echo 8 > $f; done\n", "? a:1"),
            ("echo 8 > POOL\necho $1 > POLICY\n", "a:1 8"),
        ] {
            assert_eq!(read(text, Unresolved::may_be_pool), expected, "{text}");
        }
        let policy = "echo always > POLICY\n[ $1 = a ] && echo never > POLICY\n";
        assert_eq!(read(policy, Unresolved::may_be_policy), "? a:2");
        let defrag = format!("echo never > POLICY\necho $1 > {}", POLICY.replace("enabled", "defrag"));
        assert_eq!(read(&defrag, Unresolved::may_be_policy), "a:1 never");
    }

    #[test]
    fn nothing_runs_behind_the_end_of_a_script() {
        for end in [
            "exit 0",
            "exit",
            "exec /usr/bin/a -x",
            "{ exit 1; }",
            "X=1 exec $DIR/a b",
        ] {
            let text = format!("echo 8 > POOL\n{end}\necho 9 > POOL\n");
            assert_eq!(read(&text, Unresolved::may_be_pool), "a:1 8", "{end}");
            assert_eq!(
                read(&format!("{end}\necho 9 > POOL\n"), Unresolved::may_be_pool),
                "",
                "{end}"
            );
        }
        for goes_on in [
            "(exit 0)",
            "(true; exit)",
            "(case $1 in a) true;; esac; exit)",
            "f() { exit 0; }",
            "exec a | b",
            "true | exit",
            "exec a &",
            "exec 3>/tmp/a",
            "exec > /tmp/a 2>&1",
            "exec {fd}>/tmp/a",
            "sh -c 'exit 0'",
            "[ -d /opt ] || exit 1",
            "case $1 in a) exit 1;; esac",
            "x=$(exit 1)",
        ] {
            let text = format!("{goes_on}\necho 9 > POOL\n");
            assert_eq!(read(&text, Unresolved::may_be_pool), "a:2 9", "{goes_on}");
        }
        let of_file = "if [ -d /sys/kernel/mm/redhat ]; then exit 0; fi\necho 9 > POOL\n";
        assert_eq!(read(of_file, Unresolved::may_be_pool), "a:2 9");
    }

    #[test]
    fn an_open_value_leaves_no_doubt_of_the_file() {
        let text = "echo 8 > POOL\nsysctl -w vm.nr_overcommit_hugepages=$N\n";
        assert_eq!(read(text, Unresolved::may_be_pool), "a:1 8");
        assert_eq!(read(text, Unresolved::may_be_policy), "a:1 8");
        let pool = "echo 8 > POOL\nsysctl -w vm.nr_hugepages=$N\n";
        assert_eq!(read(pool, Unresolved::may_be_pool), "? a:2");
        assert_eq!(read(pool, Unresolved::may_be_policy), "a:1 8");
        let name = "echo 8 > POOL\nsysctl -w vm.${HUGE}_hugepages=$N\n";
        assert_eq!(read(name, Unresolved::may_be_pool), "? a:2");
    }

    #[test]
    fn commands_behind_launchers_are_read() {
        for text in [
            "/usr/bin/timeout 60 /bin/sh -c \"echo never > POLICY\"",
            "busybox sh -c 'echo never > POLICY'",
            "flock -n /run/lock sh -c 'echo never > POLICY'",
            "chroot /host /bin/sh -c 'echo never > POLICY'",
            "nsenter -t 1 -m -- sh -c 'echo never > POLICY'",
            "unshare -m sh -c 'echo never > POLICY'",
            "runcon system_u:system_r:init_t:s0 sh -c 'echo never > POLICY'",
            "eval \"echo never > POLICY\"",
        ] {
            let all = read(text, Unresolved::may_be_policy);
            assert!(all.starts_with("a:") && all.ends_with(" never"), "{text}: {all}");
        }
    }

    #[test]
    fn lines_that_a_capture_lacks_hide_no_other() {
        for text in [
            "cat > /etc/sysctl.d/hugepages.conf <<EOF\n\n\necho 8 > POOL\n",
            "X=$(\n\n\necho 8 > POOL\n",
            "\n\n\necho 8 > POOL'\n",
        ] {
            assert_eq!(read(text, Unresolved::may_be_pool), "a:4 8", "{text}");
        }
    }

    #[test]
    fn files_that_sysctl_reads_later_are_not_written_to_the_kernel() {
        for text in [
            "echo vm.nr_hugepages=16 > /etc/sysctl.d/9.conf",
            "echo vm.nr_hugepages=16 >> /etc/sysctl.conf",
        ] {
            assert_eq!(read(text, Unresolved::may_be_pool), "", "{text}");
        }
        assert_eq!(read("sysctl -w vm.nr_hugepages=16", Unresolved::may_be_pool), "a:1 16");
    }
}
