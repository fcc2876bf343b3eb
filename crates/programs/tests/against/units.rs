//! Units against systemd: which of their lines it takes.

use programs::Limit;
use programs::config::Given;
use programs::config::given::FileKind;

/// A section, a line, and the soft limit that systemd 252 takes of it (rlimit_parse(), parse_size(), config sections).
const LINES: [(&str, &str, Option<Limit>); 28] = [
    ("Service", "LimitMEMLOCK=infinity", Some(Limit::Unlimited)),
    ("Service", "LimitMEMLOCK=65536", Some(Limit::Bytes(65536))),
    ("Service", "LimitMEMLOCK=64K", Some(Limit::Bytes(65536))),
    ("Service", "LimitMEMLOCK=128M", Some(Limit::Bytes(128 << 20))),
    ("Service", "LimitMEMLOCK=8G", Some(Limit::Bytes(8 << 30))),
    ("Service", "LimitMEMLOCK=1T", Some(Limit::Bytes(1 << 40))),
    ("Service", "LimitMEMLOCK=512B", Some(Limit::Bytes(512))),
    ("Service", "LimitMEMLOCK=1.5G", Some(Limit::Bytes(3 << 29))),
    ("Service", "LimitMEMLOCK=1G 512M", Some(Limit::Bytes(3 << 29))),
    ("Service", "LimitMEMLOCK=1G512M", Some(Limit::Bytes(3 << 29))),
    ("Service", "LimitMEMLOCK=8 G", Some(Limit::Bytes(8 << 30))),
    ("Service", "LimitMEMLOCK=64K:128K", Some(Limit::Bytes(65536))),
    ("Service", "LimitMEMLOCK=64K:infinity", Some(Limit::Bytes(65536))),
    ("Service", "LimitMEMLOCK = 64K", Some(Limit::Bytes(65536))),
    ("Service", "LimitMEMLOCK=134217728", Some(Limit::Bytes(128 << 20))),
    ("Service", "LimitMEMLOCK=128GB", None),
    ("Service", "LimitMEMLOCK=128g", None),
    ("Service", "LimitMEMLOCK=128m", None),
    ("Service", "LimitMEMLOCK=8GiB", None),
    ("Service", "LimitMEMLOCK=unlimited", None),
    ("Service", "LimitMEMLOCK=512M 1G", None),
    ("Service", "LimitMEMLOCK=128K:64K", None),
    ("Service", "LimitMEMLOCK=-1", None),
    ("Service", "LimitMEMLOCK=0x10000", None),
    ("Service", "LimitMEMLOCK=8G # all", None),
    ("Service", "LimitMEMLOCK=\"8G\"", None),
    ("Unit", "LimitMEMLOCK=infinity", None),
    ("Install", "LimitMEMLOCK=infinity", None),
];

fn unit(section: &str, line: &str) -> String {
    let service = "[Service]\nType=oneshot\nExecStart=/bin/true\n";
    match section {
        "Service" => format!("{service}{line}\n"),
        other => format!("[{other}]\n{line}\n{service}"),
    }
}

#[test]
fn lines_are_taken_where_systemd_takes_them() {
    for (section, line, expected) in LINES {
        let mut given = Given::default();
        let text = unit(section, line);
        given
            .add("db.service", text.as_bytes(), Some(FileKind::Unit))
            .expect("a unit");
        let memlock = given.services[0].unit.memlock.as_ref().map(|(limit, _)| *limit);
        assert_eq!(memlock, expected, "[{section}] {line}");
        assert_eq!(
            given.garbled.len(),
            usize::from(expected.is_none()),
            "[{section}] {line}: {:?}",
            given.garbled
        );
    }
}

/// It verifies files without a running manager, and names what it ignores.
#[test]
fn lines_are_taken_where_the_installed_systemd_takes_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("hugewise-test.service");
    let verify = |text: &str| {
        std::fs::write(&path, text).expect("written");
        let output = std::process::Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .arg(&path)
            .output();
        output
            .ok()
            .map(|output| String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let Some(none) = verify(&unit("Service", "LimitNOFILE=5")) else {
        return testing::missing("systemd-analyze");
    };
    let named = |said: &str| said.contains("hugewise-test.service:") && said.contains("ignoring");
    if named(&none) || !verify(&unit("Service", "LimitNOFILE=x")).is_some_and(|said| named(&said)) {
        return testing::skipped("systemd-analyze verify does not name what is ignored here");
    }
    for (section, line, expected) in LINES {
        let said = verify(&unit(section, line)).expect("an answer");
        assert_eq!(named(&said), expected.is_none(), "[{section}] {line}: {said}");
    }
}
