//! The configuration part of a capture: files that request huge pages, limit them, or set their policy at boot.

use model::Bytes;

use super::keep::Kept;
use super::recorder::Recorder;
use super::secrets;
use super::table::{Keep, is_parameter, whole};
use crate::config::files::said;
use crate::config::unit::{VARIABLES, limit_of_init};
use crate::config::{applies_sysctl, hugetlb_files};
use crate::locks;
use crate::packages::installed;
use crate::{mongo, mysql};
use host::tree::Node;

/// A file of configuration is written by people.
const LARGEST_FILE: Bytes = Bytes::kib(256);

/// Settings of PostgreSQL that decide how much shared memory it takes, and on which pages.
const POSTGRES: [&str; 9] = [
    "autovacuum_max_workers",
    "dynamic_shared_memory_type",
    "huge_page_size",
    "huge_pages",
    "include",
    "max_connections",
    "shared_buffers",
    "shared_memory_type",
    "wal_buffers",
];

/// Files by pattern. Units of services and files of databases that run come with their processes.
const SETTINGS: [(&str, Keep); 39] = [
    ("/etc/os-release", whole),
    ("/etc/fstab", memory_file_systems),
    ("/etc/sysctl.conf", assignments),
    ("/{etc,run,usr/local/lib,usr/lib,lib}/sysctl.d/*", assignments),
    ("/etc/security/limits.conf", assignments),
    ("/etc/security/limits.d/*.conf", assignments),
    ("/etc/default/grub", boot_lines),
    ("/etc/default/grub.d/*.cfg", boot_lines),
    ("/etc/kernel/cmdline", boot_lines),
    ("/etc/kernel/uki.conf", boot_lines),
    ("/{etc,run,usr/lib}/kernel/install.conf", assignments),
    ("/{etc,run,usr/lib}/kernel/install.conf.d/*.conf", assignments),
    ("/etc/sysconfig/bootloader", assignments),
    ("/etc/wsl.conf", of_wsl),
    ("/boot/{extlinux/extlinux.conf,armbianEnv.txt}", of_board),
    ("/boot/loader/entries/*.conf", boot_lines),
    ("/boot/grub2/grubenv", boot_lines),
    ("/{etc,run,usr/lib}/tmpfiles.d/*.conf", about_memory),
    ("/etc/sysfs.conf", about_memory),
    ("/etc/sysfs.d/*", about_memory),
    ("/etc/{rc.local,rc.d/rc.local}", about_memory),
    ("/etc/crontab", about_memory),
    ("/etc/{init.d,rc.d/init.d}/*{thp,huge}*", about_memory),
    ("/etc/{rc,rc.d/rc,init.d/rc}{2,3,4,5,S}.d/S*{thp,huge}*", about_memory),
    ("/etc/cron.d/*{thp,THP,huge,Huge}*", about_memory),
    (
        "/{etc,run,usr/lib,lib}/systemd/system/*{thp,THP,huge,Huge}*.service",
        unit,
    ),
    (
        "/etc/systemd/system/*.{wants,requires}/*{thp,THP,huge,Huge}*.service",
        unit,
    ),
    ("/etc/systemd/{system.conf,system.conf.d/*.conf}", limits),
    ("/etc/tuned/active_profile", whole),
    ("/etc/tuned/tuned-main.conf", assignments),
    (
        "/{etc/tuned,etc/tuned/profiles,usr/lib/tuned,usr/lib/tuned/profiles}/*/tuned.conf",
        about_memory_or_profile,
    ),
    ("/etc/my.cnf", assignments),
    ("/etc/my.cnf.d/*.cnf", assignments),
    ("/etc/mysql/{my,mariadb}.cnf", assignments),
    ("/etc/mysql/{conf.d,mysql.conf.d,mariadb.conf.d}/*.cnf", assignments),
    ("/etc/{redis,valkey}/*.conf", about_memory),
    ("/etc/mongod.conf", assignments),
    ("/etc/nitro_enclaves/allocator.yaml", of_enclaves),
    ("/etc/pf_ring/hugepages.conf", about_memory),
];

/// Directories whose absence would be mistaken for a capture without configuration.
const DIRECTORIES: [&str; 5] = [
    "/etc/sysctl.d",
    "/etc/security/limits.d",
    "/etc/systemd/system",
    "/etc/systemd/system/multi-user.target.wants",
    "/etc/tmpfiles.d",
];

pub(super) fn record(recorder: &mut Recorder<'_>) {
    for (pattern, keep) in SETTINGS {
        recorder.pattern(pattern, LARGEST_FILE, keep);
    }
    for directory in DIRECTORIES {
        recorder.directory(directory);
    }
    hugetlb_names(recorder);
}

/// The names of files in hugetlbfs mounts; their content is memory of programs.
fn hugetlb_names(recorder: &mut Recorder<'_>) {
    let mounts = host::snapshot::mounts::all(recorder.source);
    let mounts = mounts.known().into_iter().flatten();
    for mount in mounts.filter(|mount| mount.kind == "hugetlbfs") {
        recorder.directory(&mount.target);
    }
    for path in hugetlb_files(recorder.source).into_result().unwrap_or_default() {
        let why = "left out: it is memory of programs".to_owned();
        recorder.tree.insert(&path, Node::Failed(why));
    }
}

/// Files of the services in which processes run: their units and drop-ins.
pub(super) fn record_unit(recorder: &mut Recorder<'_>, name: &str) {
    let template = name.split_once('@').map(|(first, _)| format!("{first}@.service"));
    for name in [Some(name), template.as_deref()].into_iter().flatten() {
        let file = format!("/{{etc,run,usr/lib,lib}}/systemd/system/{name}");
        recorder.pattern(&file, LARGEST_FILE, unit);
        recorder.pattern(&format!("{file}.d/*.conf"), LARGEST_FILE, unit);
    }
    let stem = name.strip_suffix(".service").unwrap_or(name);
    for directory in VARIABLES {
        recorder.file(&format!("{directory}/{stem}"), LARGEST_FILE, limits_of_init);
    }
}

/// Limits of locked memory alone: other variables can hold secrets.
fn limits_of_init(bytes: &[u8]) -> Kept {
    let is_limit = |line: &str| said("", line, &['#']).any(|line| limit_of_init(&line).is_some());
    Kept::lines(bytes, is_limit)
}

/// A configuration file of PostgreSQL.
pub(super) fn record_postgres(recorder: &mut Recorder<'_>, path: &str) {
    recorder.file(path, LARGEST_FILE, |bytes| {
        Kept::lines(bytes, |line| {
            let line = line.trim_start();
            POSTGRES.iter().any(|name| line.starts_with(name))
        })
    });
}

/// The `release` file of a Java installation, for its version.
pub(super) fn java_version(bytes: &[u8]) -> Kept {
    let mut kept = Kept::lines(bytes, |line| {
        line.starts_with("JAVA_VERSION=") || line.starts_with("IMPLEMENTOR=")
    });
    kept.left_out.clear();
    kept
}

/// How a node of Elasticsearch or OpenSearch is to lock its memory.
pub(super) fn about_locks(bytes: &[u8]) -> Kept {
    Kept::lines(bytes, |line| locks::setting(line).is_some())
}

/// What dpkg says of servers whose version decides; the list of all other packages stays out.
pub(super) fn packages(bytes: &[u8]) -> Kept {
    let text = String::from_utf8_lossy(bytes);
    let names: Vec<&str> = [&mongo::PACKAGES[..], &mysql::PACKAGES].concat();
    let kept = installed(&text, &names).map(|block| {
        let lines = block.lines();
        let lines = lines.filter(|line| line.starts_with("Package:") || line.starts_with("Version:"));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    });
    match kept.collect::<Vec<_>>().join("\n") {
        none if none.is_empty() => Kept::idle(),
        kept => Kept::whole(kept.as_bytes()),
    }
}

/// Every line that is no comment.
fn assignments(bytes: &[u8]) -> Kept {
    let says = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with(['#', ';']);
    let mut kept = Kept::lines(bytes, says);
    // Comments are no loss.
    kept.left_out.retain(|what| what.starts_with("a secret"));
    kept
}

/// Does it name a setting of memory?
fn names_memory(line: &str) -> bool {
    let words = ["huge", "/sys/kernel/mm", "transparent", "thp", "maxmemory"];
    let line = line.trim_start();
    !line.starts_with(['#', ';']) && words.iter().any(|word| line.to_ascii_lowercase().contains(word))
}

fn about_memory(bytes: &[u8]) -> Kept {
    Kept::lines(bytes, names_memory)
}

fn about_memory_or_profile(bytes: &[u8]) -> Kept {
    Kept::lines(bytes, |line| {
        names_memory(line) || line.trim_start().starts_with(['[']) || line.trim_start().starts_with("include")
    })
}

/// Limits and memory of a unit. Its command and its environment can hold secrets.
fn unit(bytes: &[u8]) -> Kept {
    let keys = [
        "Limit",
        "Memory",
        "NUMA",
        "CPUAffinity",
        "Slice",
        "Delegate",
        "Type=",
        "User=",
        "Group=",
        "WantedBy=",
        "RequiredBy=",
        "[",
    ];
    Kept::lines(bytes, |line| {
        keys.iter().any(|key| line.trim_start().starts_with(key)) || names_memory(line)
    })
}

fn of_enclaves(bytes: &[u8]) -> Kept {
    Kept::lines(bytes, |line| line.contains("memory_mib"))
}

/// A command at start, and what it is where it applies sysctl settings.
fn of_wsl(bytes: &[u8]) -> Kept {
    let text = String::from_utf8_lossy(bytes);
    let short = |line: &str| match line.split_once('=') {
        Some((name, command)) if name.trim() == "command" && !applies_sysctl(command) => {
            "command = <left out>\n".to_owned()
        }
        _ => format!("{line}\n"),
    };
    let lines: String = text.lines().map(short).collect();
    Kept::lines(lines.as_bytes(), |line| {
        let line = line.trim();
        line == "[boot]" || line.starts_with("command")
    })
}

/// U-Boot's list of entries, and settings of Armbian's script: that they are there says what starts the machine.
fn of_board(bytes: &[u8]) -> Kept {
    with_parameters(bytes, |line| {
        let line = line.trim_start().to_ascii_lowercase();
        line.starts_with("label") || line.starts_with("verbosity")
    })
}

/// Default limits of services.
fn limits(bytes: &[u8]) -> Kept {
    Kept::lines(bytes, |line| line.trim_start().starts_with("DefaultLimit"))
}

/// hugetlbfs and tmpfs; the other lines name servers.
fn memory_file_systems(bytes: &[u8]) -> Kept {
    Kept::lines(bytes, |line| {
        let kind = line.split_whitespace().nth(2);
        !line.trim_start().starts_with('#') && matches!(kind, Some("hugetlbfs" | "tmpfs"))
    })
}

/// Lines with boot parameters, and of those only the ones that decide page sizes.
fn boot_lines(bytes: &[u8]) -> Kept {
    with_parameters(bytes, |_| false)
}

/// The same, and the lines that `keeps` holds for.
fn with_parameters(bytes: &[u8], keeps: impl Fn(&str) -> bool) -> Kept {
    let text = String::from_utf8_lossy(bytes);
    let mut left_out = 0;
    let mut lines = String::new();
    for line in text.lines() {
        if keeps(line) {
            lines += &format!("{}\n", secrets::line(line));
            continue;
        }
        let (head, parameters) = boot_line(line);
        let words = parameters.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        // A variable may hold some.
        let (known, others): (Vec<&str>, Vec<&str>) =
            words.partition(|word| is_parameter(word) || word.starts_with('$'));
        left_out += others.len();
        // Also without one: it may take the place of a line with some.
        if !known.is_empty() || !head.is_empty() {
            let quote = if head.ends_with('=') { "\"" } else { "" };
            lines += &format!("{head}{quote}{}{quote}", secrets::line(&known.join(" ")));
        }
        lines.push('\n');
    }
    Kept::text(lines, left_out, "words that decide nothing about pages")
}

/// Names before boot parameters: in entries of systemd-boot, in GRUB's environment, of unified images, of U-Boot and of Armbian.
const BEFORE_PARAMETERS: [&str; 6] = [
    "options",
    "kernelopts",
    "Cmdline",
    "append",
    "extraargs",
    "extraboardargs",
];

/// `GRUB_CMDLINE_LINUX="..."`, `options ...`, or a bare command line: what stands before the parameters, and these.
fn boot_line(line: &str) -> (&str, &str) {
    let line = line.trim();
    let is_before = |name: &str| BEFORE_PARAMETERS.iter().any(|own| own.eq_ignore_ascii_case(name));
    match (line.starts_with('#'), line.split_once(['=', ' ', '\t'])) {
        (true, _) => ("", ""),
        (_, Some((name, rest))) if name.starts_with("GRUB_CMDLINE_LINUX") || is_before(name) => {
            (&line[..=name.len()], rest)
        }
        _ => ("", line),
    }
}

#[cfg(test)]
mod tests {
    use super::{boot_lines, of_board, of_wsl, unit};

    fn text(kept: super::Kept) -> String {
        String::from_utf8(kept.bytes).expect("text")
    }

    #[test]
    fn boot_parameters_lose_what_decides_nothing() {
        let grub = "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX=\"root=UUID=1 hugepagesz=1G hugepages=4 ip=10.0.0.7\"\n";
        assert_eq!(
            text(boot_lines(grub.as_bytes())),
            "\nGRUB_CMDLINE_LINUX=\"hugepagesz=1G hugepages=4\"\n"
        );
        let entry = "title x\noptions root=/dev/sda1 transparent_hugepage=never\n";
        assert_eq!(
            text(boot_lines(entry.as_bytes())),
            "\noptions transparent_hugepage=never\n"
        );
        assert_eq!(text(boot_lines(b"root=/dev/sda1 quiet\n")), "");
        let more = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX quiet\"\nGRUB_CMDLINE_LINUX_DEFAULT=quiet\n";
        assert_eq!(
            text(boot_lines(more.as_bytes())),
            "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"\"\n"
        );
        assert_eq!(
            text(boot_lines(b"options root=/dev/sda1 $kernelopts\n")),
            "options $kernelopts\n"
        );
        assert_eq!(text(boot_lines(b"root=/dev/sda1 hugepages=4\n")), "hugepages=4\n");
    }

    #[test]
    fn lines_of_boards_lose_what_decides_nothing() {
        let extlinux = "TIMEOUT 30\nLABEL primary\n  LINUX /boot/Image\n  APPEND ${cbootargs} root=UUID=1 cryptdevice=/dev/sda2 hugepages=4\n";
        assert_eq!(
            text(of_board(extlinux.as_bytes())),
            "\nLABEL primary\n\nAPPEND ${cbootargs} hugepages=4\n"
        );
        let tabs = "label l0\n\tappend\troot=UUID=1 quiet\n";
        assert_eq!(text(of_board(tabs.as_bytes())), "label l0\nappend\t\n");
        let armbian = "verbosity=1\nrootdev=UUID=1\nextraargs=ip=10.0.0.7 hugepagesz=1G\n";
        assert_eq!(
            text(of_board(armbian.as_bytes())),
            "verbosity=1\n\nextraargs=\"hugepagesz=1G\"\n"
        );
    }

    #[test]
    fn a_command_of_wsl_is_kept_where_it_applies_settings() {
        let file = |command: &str| {
            text(of_wsl(
                format!("[user]\nname = me\n[boot]\ncommand = {command}\n").as_bytes(),
            ))
        };
        assert_eq!(
            file("service procps start"),
            "\n\n[boot]\ncommand = service procps start\n"
        );
        assert_eq!(
            file("mount -o key=x /dev/sdb /srv"),
            "\n\n[boot]\ncommand = <left out>\n"
        );
    }

    #[test]
    fn a_unit_keeps_its_limits_and_the_numbers_of_its_lines() {
        let file = "[Service]\nEnvironment=TOKEN=x\nLimitMEMLOCK=infinity\nExecStart=/bin/db --password x\n";
        let kept = unit(file.as_bytes());
        assert_eq!(kept.left_out, ["lines that decide nothing about pages (2)"]);
        assert_eq!(text(kept), "[Service]\n\nLimitMEMLOCK=infinity\n");
    }
}
