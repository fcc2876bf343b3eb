use host::{Snapshot, Source, Tree};
use model::Unread;

use super::of_unit;
use crate::config::Config;

#[test]
fn what_is_in_doubt_or_refused_is_said_of_a_machine() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let script = format!("#!/bin/sh\necho 0 > {pool}\n[ $1 ] && echo 8 > {pool}\n");
    let tree = Tree::new()
        .line("/etc/hostname", "a")
        .file(
            "/etc/systemd/system/hugepages.service",
            format!("ExecStart=/bin/echo 8 > {pool}\n"),
        )
        .file("/etc/rc.local", script);
    let source = Source::from_tree("made", tree);
    let config = Config::read(&source, &Snapshot::take(&source));
    let place = config.pool_lines.unread().map(|why| why.place.as_str());
    assert_eq!(place, Some("/etc/rc.local:3"));
    assert_eq!(config.refused.len(), 1, "{:?}", config.refused);
}

/// Values with their lines, and how much is refused.
fn read(text: &str) -> (String, usize) {
    let (found, refused) = both(text);
    (found, refused.len())
}

fn both(text: &str) -> (String, Vec<Unread>) {
    let text = text
        .replace("POOL", "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
        .replace("LARGE", "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages");
    let mut refused = Vec::new();
    let written = of_unit(&[("a".to_owned(), text.clone())], &mut refused);
    assert_eq!(written.unresolved, [], "{text}");
    let all = written
        .settings
        .iter()
        .map(|set| format!("{} {}", set.place, set.value));
    (all.collect::<Vec<_>>().join(", "), refused)
}

#[test]
fn commands_of_a_capture_count_without_their_first_line() {
    for text in [
        "[Service]\n\n'echo 16 > POOL'\n",
        "[Service]\n\n-c \"echo 16 > POOL\"\n",
        "[Service]\n\n\"echo 16 > POOL\"\n",
        "[Service]\n\nN=1; echo 16 > POOL'\n",
        "[Service]\nExecStart=/bin/sh -c \\\n  'echo 16 > POOL'\n",
    ] {
        assert_eq!(read(text), ("a:3 16".to_owned(), 0), "{text}");
    }
}

#[test]
fn a_blank_line_ends_a_command_and_a_comment_does_not() {
    let blank = "ExecStart=/bin/sh -c 'echo 8 > POOL; \\\n\nExecStartPost=/bin/sh -c 'echo 16 > LARGE'\n";
    assert_eq!(read(blank).0, "a:1 8, a:3 16");
    let comment = "ExecStart=/bin/sh -c 'true; \\\n# text\n  echo 16 > POOL'\n";
    assert_eq!(read(comment).0, "a:3 16");
}

#[test]
fn a_write_is_in_the_line_that_names_its_file() {
    let text = "[Service]\nExecStart=/bin/sh -c 'echo 8 > POOL; \\\n  echo 16 > LARGE'\n";
    assert_eq!(read(text).0, "a:2 8, a:3 16");
}

#[test]
fn doubled_signs_and_variables_of_a_unit_are_read_as_systemd_does() {
    for text in [
        "ExecStart=/bin/bash -c 'N=2; echo 8 > /sys/kernel/mm/hugepages/hugepages-$${N}048kB/nr_hugepages'\n",
        "ExecStart=/bin/sh -c 'N=8; echo $$N > POOL'\n",
        "ExecStart=/bin/sh -c 'N=8; echo $${N} > POOL'\n",
        "ExecStart=/bin/sh -c 'printf %%s 8 > POOL'\n",
        "ExecStart=/bin/sh -c 'printf \"%%s\" 8 > POOL'\n",
    ] {
        assert_eq!(read(text), ("a:1 8".to_owned(), 0), "{text}");
    }
    let variable = "Environment=\"N=8\" M=2\nExecStart=/bin/sh -c 'echo ${N} > POOL'\n";
    assert_eq!(read(variable), ("a:2 8".to_owned(), 0));
}

#[test]
fn without_a_shell_nothing_is_written_behind_launchers_either() {
    for program in ["/bin/echo", "/usr/bin/env echo", "nice -n 5 echo", "sudo echo"] {
        assert_eq!(
            read(&format!("ExecStart={program} 8 > POOL\n")),
            (String::new(), 1),
            "{program}"
        );
    }
    for start in [
        "/usr/bin/env sh -c 'echo 8 > POOL'",
        "|echo 8 > POOL",
        "@/bin/sh sh -c 'echo 8 > POOL'",
    ] {
        assert_eq!(
            read(&format!("ExecStart={start}\n")),
            ("a:1 8".to_owned(), 0),
            "{start}"
        );
    }
}

#[test]
fn files_that_may_be_another_users_are_not_refused() {
    for file in [
        "/sys/fs/cgroup/a/memory.high",
        "/proc/self/oom_score_adj",
        "/proc/12/coredump_filter",
    ] {
        let unit = format!("[Service]\nUser=a\nDelegate=yes\nExecStartPre=/bin/sh -c 'echo 8 > {file}'\n");
        assert_eq!(read(&unit), (String::new(), 0), "{file}");
    }
}

#[test]
fn a_drop_in_of_a_machine_gives_rights() {
    let pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let path = "/etc/systemd/system/hugepages.service";
    let unit = format!("[Service]\nUser=app\nExecStart=/bin/sh -c 'echo 8 > {pool}'\n");
    for (drop_in, refused) in [("", 1), ("User=root", 0), ("ExecStart=\nExecStart=/bin/true", 0)] {
        let tree = Tree::new()
            .line("/etc/hostname", "a")
            .file(path, unit.as_str())
            .file(&format!("{path}.d/a.conf"), format!("[Service]\n{drop_in}\n"));
        let source = Source::from_tree("made", tree);
        let config = Config::read(&source, &Snapshot::take(&source));
        assert_eq!(config.refused.len(), refused, "{drop_in}: {:?}", config.refused);
    }
}

#[test]
fn only_root_writes_to_files_of_the_kernel() {
    let write = "/bin/sh -c 'echo 8 > POOL'";
    for (lines, command, value, effect) in [
        ("User=redis", write, "", "does not start"),
        (
            "User=redis",
            "@/sbin/sysctl sysctl -w vm.nr_hugepages=8",
            "",
            "does not start",
        ),
        (
            "User=redis",
            "/bin/sh -c 'echo 8 | tee POOL >/dev/null 2>&1'",
            "",
            "does not start",
        ),
        ("User=redis", "-/bin/sh -c 'echo 8 > POOL'", "", "has no effect"),
        ("User=redis", "/bin/sh -c 'echo 8 > POOL || true'", "", "has no effect"),
        (
            "User=redis",
            "/bin/sh -c 'echo 8 > POOL; exec redis-server'",
            "",
            "has no effect",
        ),
        (
            "User=redis",
            "/bin/sh -c 'echo 8 > POOL && cat POOL'",
            "",
            "does not start",
        ),
        (
            "User=redis",
            "/bin/sh -c 'echo 8 > POOL; cat POOL'",
            "",
            "has no effect",
        ),
        (
            "User=redis",
            "/bin/sh -c 'echo 8 > POOL; cat POOL > /tmp/a'",
            "",
            "has no effect",
        ),
        (
            "User=redis",
            "/bin/sh -c 'echo 8 > POOL; ls /sys/kernel/mm'",
            "",
            "has no effect",
        ),
        (
            "User=redis",
            "/bin/sh -c 'echo 8 > POOL; sysctl vm.nr_hugepages'",
            "",
            "has no effect",
        ),
        (
            "User=redis",
            "/bin/sh -c 'ls; sysctl vm.nr_hugepages=8'",
            "",
            "does not start",
        ),
        (
            "User=redis\nExecStartPre=/bin/sh -c 'echo 9 > POOL'\nExecStartPre=",
            "+/bin/sh -c 'echo 8 > POOL'",
            "a:5 8",
            "",
        ),
        ("DynamicUser=yes", write, "", "does not start"),
        ("ProtectKernelTunables=true", write, "", "does not start"),
        ("User=redis", "+/bin/sh -c 'echo 8 > POOL'", "a:3 8", ""),
        ("User=redis", "!/bin/sh -c 'echo 8 > POOL'", "a:3 8", ""),
        ("User=redis", "/bin/sh -c 'echo 8 | sudo tee POOL'", "a:3 8", ""),
        ("PermissionsStartOnly=yes\nUser=redis", write, "a:4 8", ""),
        ("User=root", write, "a:3 8", ""),
        ("DynamicUser=no", write, "a:3 8", ""),
        (
            "User=redis\n[Container]\nUser=1000\n[Service]\nUser=",
            write,
            "a:7 8",
            "",
        ),
        ("AmbientCapabilities=CAP_DAC_OVERRIDE\nUser=redis", write, "a:4 8", ""),
    ] {
        let text = format!("[Service]\n{lines}\nExecStartPre={command}\n");
        let (found, refused) = both(&text);
        assert_eq!(found, value, "{text}");
        let said = refused.iter().filter(|why| why.why.contains(effect)).count();
        assert_eq!(
            (said, refused.len()),
            if value.is_empty() { (1, 1) } else { (0, 0) },
            "{text}"
        );
    }
}
