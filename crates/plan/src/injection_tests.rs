//! Hostile words in goals and files: refused, with the goal and the key named; nothing of them reaches a plan.

use host::{Source, Tree};
use model::Bytes;
use model::plan::{Target, Value};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::goal::Goal;
use super::{Host, Need, Wanted, plan};

/// A machine with everything that the recipes look at.
fn machine() -> Source {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    let tree = Tree::new()
        .line("/proc/sys/kernel/osrelease", "6.18.0")
        .file(
            "/proc/meminfo",
            "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nHugepagesize: 2048 kB\n",
        )
        .line(&format!("{pool}/nr_hugepages"), 0)
        .line(&format!("{pool}/free_hugepages"), 0)
        .line(&format!("{pool}/resv_hugepages"), 0)
        .line(&format!("{pool}/surplus_hugepages"), 0)
        .line("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
        .file("/etc/passwd", "jboss:x:501:501::/:/bin/sh\n")
        .file("/etc/group", "jboss:x:501:\n")
        .file("/etc/systemd/system.conf", "")
        .file("/srv/pg/postgresql.conf", "shared_buffers = 1GB\n")
        .file("/srv/my.cnf", "[mysqld]\n");
    Source::from_tree("test", tree)
}

const HOSTILE: [&str; 18] = [
    "a\nExecStart=/bin/sh",
    "a\r[Service]",
    "a;reboot",
    "$(reboot)",
    "`reboot`",
    "a'b",
    "a\"b",
    "a|b",
    "a&b",
    "a>b",
    "../../etc/shadow",
    "/etc/../etc/shadow",
    "a b",
    "a\u{0}b",
    "a\u{1b}[31m",
    "{{ lookup('pipe','id') }}",
    "%n",
    "\u{202e}txt",
];

/// Places of a goal where a name or path of the user's goes in.
const HOLES: [&str; 13] = [
    "jvm:heap=1g,user=HOLE",
    "jvm:heap=1g,user=jboss,group=HOLE",
    "jvm:heap=1g,service=HOLE",
    "thp=madvise,service=HOLE",
    "thp=HOLE",
    "pool:2M=16,group=HOLE",
    "pool:2M=16,mount=/mnt/huge/HOLE",
    "vm:1G,name=HOLE",
    "postgres:/srv/pg/HOLE",
    "innodb:/srv/my.cnf,service=HOLE",
    "oracle:sga=1G,user=HOLE",
    "placement:HOLE,cpus=0",
    "placement:app,cpus=HOLE",
];

#[test]
fn hostile_words_are_refused_with_the_goal_named() {
    for hole in HOLES {
        for word in HOSTILE {
            let text = hole.replace("HOLE", word);
            let error = text.parse::<Goal>().map(|_| ()).expect_err(&text).to_string();
            assert!(
                error.starts_with("goal `") && !error.contains(['\n', '\r', '\u{1b}', '\0']),
                "{error:?}"
            );
        }
    }
}

#[test]
fn hostile_values_of_a_file_are_refused_with_file_number_and_key() {
    for word in HOSTILE {
        let escaped: String = word.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
        let text = format!("[[goal]]\nfor = \"jvm\"\nheap = \"1g\"\nuser = \"{escaped}\"\n");
        let error = Goal::from_toml("site.toml", &text).expect_err(word).to_string();
        assert!(
            error.contains("site.toml: goal 1: user") && !error.contains(['\n', '\r', '\u{1b}', '\0']),
            "{error:?}"
        );
    }
}

/// The characters that every name and path of a goal is made of.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.-@+/".contains(c)
}

/// Files that the planner may write for these goals, by their beginning.
const ALLOWED: [&str; 10] = [
    "/etc/sysctl.d/60-hugewise.conf",
    "/etc/tmpfiles.d/60-hugewise.conf",
    "/etc/security/limits.d/60-hugewise.conf",
    "/etc/systemd/system/hugewise-pools.service",
    "/etc/systemd/system/sysinit.target.d/60-hugewise.conf",
    "/etc/systemd/system/local-fs.target.d/60-hugewise.conf",
    "/etc/systemd/system/mnt-",
    "/etc/systemd/system/",
    "/srv/pg/postgresql.conf",
    "/srv/my.cnf",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever stands in a hole: refused, or of plain characters and in a plan that writes only where plans may write.
    #[test]
    fn no_word_gets_out_of_its_place(hole in 0..HOLES.len(), word in "[a-z./$;'\"`\\n @{}-]{1,12}|\\PC{1,8}") {
        let text = HOLES[hole].replace("HOLE", &word);
        let Ok(goal) = text.parse::<Goal>() else { return Ok(()) };
        // A `,` or `=` in the word makes other keys of it, each of which is checked as well.
        prop_assert!(word.chars().all(|c| is_plain(c) || ",=".contains(c)), "{text}");
        let needs = vec![Need { page: Bytes::mib(2), node: None, pages: 8, how: String::new(), own: 0, asks: false }];
        let source = machine();
        let Ok(plan) = plan(&Host::look(&source), &[Wanted::new(goal, needs)]) else { return Ok(()) };
        prop_assert_eq!(plan.check(), Ok(()));
        for change in &plan.changes {
            if let Target::File { path, .. } = &change.target {
                prop_assert!(ALLOWED.iter().any(|allowed| path.starts_with(allowed)), "{}", path);
                prop_assert!(!path.contains("..") && path.chars().all(|c| is_plain(c) || c == '\\'), "{}", path);
            }
            if let (Target::File { .. }, Value::Text(text)) = (&change.target, &change.after) {
                prop_assert!(text.chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic()), "{}", text);
            }
        }
    }
}
