//! Each rule of `settings` where it fires and where it must not.

use crate::machines::*;

#[test]
fn i01_values_that_nothing_takes() {
    let with = |path: &str, text: &str| machine().file(path, text);
    for (path, text, says) in [
        ("/etc/sysctl.d/60-x.conf", "vm.nr_hugepages = 8G\n", "`8G`"),
        ("/etc/security/limits.d/9.conf", "db soft memlock 8G\n", "`8G`"),
        (
            "/etc/tmpfiles.d/thp.conf",
            "w /sys/kernel/mm/transparent_hugepage/enabled - - - - off\n",
            "`off`",
        ),
    ] {
        let finding = found("I01", with(path, text));
        assert!(finding.consequence.contains(says), "{finding:?}");
        assert!(finding.evidence[0].source.starts_with(path), "{finding:?}");
    }
    let tuned = with("/etc/tuned/active_profile", "own\n")
        .file("/etc/tuned/own/tuned.conf", "[sysctl]\nvm.nr_hugepages = 4096M\n");
    found("I01", tuned);
    let unit = |limit: &str| {
        process(60, "db")
            .cgroup("/system.slice/db.service")
            .area(anonymous(100))
            .on(machine())
            .file(
                "/etc/systemd/system/db.service",
                format!("[Service]\nLimitMEMLOCK={limit}\n"),
            )
    };
    found("I01", unit("128GB"));
    clear("I01", unit("128G"));
    let postgres = |text: &str| {
        process(61, "postgres")
            .arg("-D")
            .arg("/data")
            .area(shared(256, "/dev/zero (deleted)"))
            .on(machine())
            .file("/proc/61/root/data/postgresql.conf", text)
    };
    let finding = found("I01", postgres("shared_buffers = 8gb\n"));
    assert!(finding.consequence.contains("shared_buffers"), "{finding:?}");
    clear("I01", postgres("shared_buffers = 8GB\n"));
    let mysql = |text: &str| {
        process(62, "mysqld")
            .arg("--port=1")
            .area(anonymous(512))
            .on(machine())
            .file("/etc/my.cnf", text)
    };
    found("I01", mysql("[mysqld]\nlarge-pages = maybe\n"));
    clear("I01", mysql("[mysqld]\nlarge-pages = ON\n"));
    clear(
        "I01",
        with("/etc/sysctl.d/60-x.conf", "vm.nr_hugepages = 0x10 # pages\n"),
    );
}

#[test]
fn i02_settings_of_a_newer_kernel() {
    let finding = found("I02", thp(machine(), "anon_beside_full", 1));
    assert!(finding.consequence.contains("anon_beside_full"), "{finding:?}");
    clear("I02", machine());
    clear("I02", thp(machine(), "debug_cow", 0));
}
