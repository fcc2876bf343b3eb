//! Random and mutated plans: whatever is done to a plan, no file and no line from outside of the closed set gets through.

use model::Reading;
use std::sync::LazyLock;

use model::plan::{Mode, Owner, Plan, Target, Value};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::targets::plans::{self, FILES, GOALS, file, must_be_closed, planned, result};

/// Lines that no plan may bring in, wherever.
const HOSTILE: [&str; 24] = [
    "kernel.core_pattern=|/tmp/x",
    "kernel/core_pattern = |/tmp/x",
    "-kernel.modprobe = /tmp/x",
    "vm.nr_hugepages = 8 | x",
    "vm.nr_hugepages = $(id)",
    "kernel.core_pattern\u{85}= x",
    "ExecStartPre=/tmp/x",
    "ExecStart=/bin/sh -c 'echo 8 > /etc/passwd && test \"$(cat /etc/passwd)\" -ge 8'",
    "ExecStart=/bin/sh -c 'reboot'",
    " ExecStartPre = +/tmp/x",
    "Environment=LD_PRELOAD=/tmp/x.so",
    "User=root",
    "LimitMEMLOCK=64M\\",
    "Wants=evil.service",
    "Wants=home.mount",
    "What=/dev/sda1",
    "Options=pagesize=2M,suid",
    "install usb-storage /tmp/x",
    "w /etc/passwd - - - - x",
    "f /etc/cron.d/x 0644 root root - x",
    "* hard nofile 1",
    "archive_command = '/tmp/x'",
    "plugin-load=/tmp/x.so",
    "GRUB_CMDLINE_LINUX=\"$(/tmp/x) hugepagesz=1G hugepages=4\"",
];

const HOSTILE_PATHS: [&str; 12] = [
    "/etc/modprobe.d/x.conf",
    "/root/.ssh/x.conf",
    "/etc/ssh/sshd_config.d/60-hugewise.conf",
    "/etc/sysctl.d/../cron.d/x",
    "/etc/sysctl.d/50-coredump.conf",
    "/etc/systemd/system/sshd.service",
    "/etc/systemd/system/sshd.service.d/override.conf",
    "/etc/systemd/system/home.mount",
    "/etc/tmpfiles.d/tmp.conf",
    "/etc/ld.so.conf.d/hugewise.conf",
    "/etc/profile.d/hugewise.conf",
    "/proc/sys/kernel/core_pattern",
];

/// The plan for each goal.
static PLANS: LazyLock<Vec<Plan>> = LazyLock::new(|| {
    let plan = |goal: &&str| planned(goal.parse().expect("a goal")).expect("a plan");
    GOALS.iter().map(plan).collect()
});

/// What is done to a plan.
#[derive(Clone, Debug)]
enum Mutation {
    /// A hostile line at some place of some file.
    Line(usize, prop::sample::Index, prop::sample::Index),
    /// A line of some file is taken out.
    Gone(prop::sample::Index, prop::sample::Index),
    /// Another path, which the goals name, too.
    Path(prop::sample::Index, usize),
    /// Other permissions or another owner.
    Access(prop::sample::Index, u32, u32),
    /// A value of a setting, or a file's whole content.
    Value(prop::sample::Index, String),
    /// Another text stands there before.
    Before(prop::sample::Index, String),
    /// Some characters of a file are replaced.
    Noise(prop::sample::Index, prop::sample::Index, String),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (0..HOSTILE.len(), index(), index()).prop_map(|(line, which, at)| Mutation::Line(line, which, at)),
        (index(), index()).prop_map(|(which, at)| Mutation::Gone(which, at)),
        (index(), 0..HOSTILE_PATHS.len()).prop_map(|(which, path)| Mutation::Path(which, path)),
        (index(), 0..0o1000_u32, prop_oneof![Just(0), any::<u32>()])
            .prop_map(|(which, mode, uid)| Mutation::Access(which, mode, uid)),
        (index(), "\\PC{0,20}|[0-9]{1,12}|always|max").prop_map(|(which, value)| Mutation::Value(which, value)),
        (index(), "(\\[?[a-z_.]{1,12}\\]?( ?= ?[a-z0-9]{1,4})?\n){0,4}")
            .prop_map(|(which, text)| Mutation::Before(which, text)),
        (index(), index(), "[=|$`;#\\\\\\[\\] \n\r\ta-zA-Z0-9/.'\"-]{1,6}")
            .prop_map(|(which, at, text)| Mutation::Noise(which, at, text)),
    ]
}

/// Carries out a mutation; `Some` of a line or path that must not get through.
fn mutate(plan: &mut Plan, mutation: &Mutation) -> Option<String> {
    let count = plan.changes.len();
    let which = match mutation {
        Mutation::Line(_, which, _) | Mutation::Gone(which, _) | Mutation::Path(which, _) => which,
        Mutation::Access(which, ..) | Mutation::Value(which, _) | Mutation::Before(which, _) => which,
        Mutation::Noise(which, ..) => which,
    };
    let change = &mut plan.changes[which.index(count)];
    let mut lines: Vec<String> = change
        .after
        .text()
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect();
    let is_file = matches!(change.target, Target::File { .. });
    match (mutation, &mut change.target) {
        (Mutation::Line(line, _, at), _) if is_file => {
            lines.insert(at.index(lines.len() + 1), HOSTILE[*line].to_owned());
            change.after = Value::Text(lines.join("\n") + "\n");
            return Some(HOSTILE[*line].to_owned());
        }
        (Mutation::Gone(_, at), _) if is_file && !lines.is_empty() => {
            lines.remove(at.index(lines.len()));
            change.after = Value::Text(lines.join("\n") + "\n");
        }
        (Mutation::Path(_, path), Target::File { path: known, .. } | Target::Setting { path: known }) => {
            HOSTILE_PATHS[*path].clone_into(known);
            plan.goals = vec![format!("postgres:{known}"), format!("innodb:{known}")];
            return Some(known.clone());
        }
        (Mutation::Access(_, bits, id), Target::File { mode, owner, .. }) => {
            *mode = Some(Mode(*bits));
            *owner = Some(Owner { uid: *id, gid: *id });
        }
        (Mutation::Value(_, value), _) => change.after = Value::Text(value.clone()),
        (Mutation::Before(_, text), _) => change.before = Reading::Known(Value::Text(text.clone())),
        (Mutation::Noise(_, at, noise), _) if is_file => {
            let text: Vec<char> = lines.join("\n").chars().collect();
            let at = at.index(text.len() + 1);
            let after: String = text[..at]
                .iter()
                .copied()
                .chain(noise.chars())
                .chain(text[at..].iter().copied().skip(1))
                .collect();
            change.after = Value::Text(after);
        }
        _ => {}
    }
    None
}

/// Does the plan write that line, or to that path?
fn writes(plan: &Plan, hostile: &str) -> bool {
    plan.changes.iter().any(|change| {
        let text = change.after.text().unwrap_or_default();
        change.target.path() == Some(hostile)
            || (change.target.is_applicable() && text.lines().any(|line| line == hostile))
    })
}

#[test]
fn what_the_planner_makes_passes_for_every_goal_and_keeps_the_rules() {
    for goal in GOALS {
        let plan = planned(goal.parse().expect(goal)).unwrap_or_else(|| panic!("{goal}"));
        let again = Plan::from_json(&serde_json::to_string(&result(plan.clone())).expect("JSON")).expect(goal);
        assert_eq!(again.data, plan);
        must_be_closed(&plan);
    }
}

#[test]
fn no_hostile_line_passes_in_any_sort_of_file() {
    let servers = [
        ("/srv/pg/postgresql.conf", "shared_buffers = 1GB\n"),
        ("/srv/my.cnf", "[mysqld]\nport=1\n"),
    ];
    for path in FILES {
        let before = servers
            .iter()
            .find(|(server, _)| *server == path)
            .map_or("", |(_, text)| text);
        for line in HOSTILE {
            for after in [
                format!("{before}{line}\n"),
                format!("{before}[Service]\n{line}\n"),
                format!("{before}[Mount]\n{line}"),
            ] {
                let plan = Plan {
                    goals: vec![
                        "postgres:/srv/pg/postgresql.conf".to_owned(),
                        "innodb:/srv/my.cnf".to_owned(),
                    ],
                    changes: vec![file(path, before, &after)],
                    ..Plan::default()
                };
                assert!(plan.check().is_err(), "{path}: {after}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, rng_seed: RngSeed::Fixed(11), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mutation_brings_a_file_or_a_line_through(goal in 0..GOALS.len(), mutations in prop::collection::vec(mutation(), 1..4)) {
        let mut plan = PLANS[goal].clone();
        let hostile: Vec<String> = mutations.iter().filter_map(|mutation| mutate(&mut plan, mutation)).collect();
        // The previous value is the machine's own: apply refuses a plan that says otherwise.
        let stood = |line: &String| plan.changes.iter().any(|change| {
            change.before.known().and_then(Value::text).is_some_and(|text| text.lines().any(|known| known == line))
        });
        let json = serde_json::to_string(&result(plan.clone())).expect("JSON");
        if let Ok(passed) = Plan::from_json(&json) {
            for line in hostile.iter().filter(|line| writes(&passed.data, line) && !stood(line)) {
                prop_assert!(false, "{line:?} passed");
            }
            must_be_closed(&passed.data);
        }
    }

    #[test]
    fn no_bytes_are_a_plan_that_writes_elsewhere(bytes in prop::collection::vec(any::<u8>(), 0..200), which in 0..FILES.len()) {
        plans::plan(&bytes);
        plans::plan_file(&[&[which as u8][..], &bytes].concat());
    }
}

/// The pages that the recipes take here are those of the machine's pool.
#[test]
fn the_machine_of_these_tests_has_something_to_change_for_every_sort_of_file() {
    let plans: Vec<Plan> = GOALS.iter().filter_map(|goal| planned(goal.parse().ok()?)).collect();
    let paths: Vec<&str> = plans
        .iter()
        .flat_map(|plan| plan.changes.iter().filter_map(|change| change.target.path()))
        .collect();
    for part in [
        "sysctl.d",
        "limits.d",
        "tmpfiles.d",
        "grub.d",
        ".service.d",
        "local-fs.target.d",
        ".mount",
        "postgresql.conf",
        "my.cnf",
    ] {
        assert!(paths.iter().any(|path| path.contains(part)), "{part}: {paths:?}");
    }
}
