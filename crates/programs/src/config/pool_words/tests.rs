use host::{Snapshot, Source, Tree};

use super::OnBoot;
use crate::config::{Config, Distribution};

const TWO: &str = "quiet hugepagesz=2M hugepages=512";
const MORE: &str = "hugepagesz=1G hugepages=64";

fn on(line: &str) -> OnBoot {
    OnBoot {
        line: line.to_owned(),
        ..OnBoot::default()
    }
}

fn changed(line: &str, parameters: &str) -> Option<(String, String)> {
    on(line).with(parameters).map(|change| (change.old, change.new))
}

#[test]
fn pools_of_other_sizes_stay_with_their_counts() {
    let change = |line: &str, parameters: &str| changed(line, parameters).map(|(_, new)| new);
    let both = "hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=64";
    for (line, parameters, new) in [
        (TWO, MORE, Some(both)),
        (TWO, "hugepagesz=2M hugepages=700", Some("hugepagesz=2M hugepages=700")),
        (
            both,
            "hugepagesz=2M hugepages=7",
            Some("hugepagesz=2M hugepages=7 hugepagesz=1G hugepages=64"),
        ),
        ("hugepages=512", MORE, Some("hugepages=512 hugepagesz=1G hugepages=64")),
        ("hugepages=512", "hugepagesz=2M hugepages=7", Some("hugepages=7")),
        (
            "default_hugepagesz=1G hugepages=4",
            "hugepagesz=2M hugepages=7",
            Some("default_hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=7"),
        ),
        (
            "default_hugepagesz=1G hugepagesz=1G hugepages=4",
            "hugepagesz=2M",
            Some("default_hugepagesz=1G hugepagesz=1G hugepages=4 hugepagesz=2M"),
        ),
        ("quiet", both, Some(both)),
        ("quiet", MORE, None),
        (MORE, MORE, None),
        ("default_hugepagesz=1G", MORE, None),
        (TWO, "transparent_hugepage=never", None),
        (TWO, "default_hugepagesz=1G", None),
    ] {
        assert_eq!(change(line, parameters).as_deref(), new, "{line} + {parameters}");
    }
    assert_eq!(
        changed(TWO, MORE).map(|(old, _)| old).as_deref(),
        Some("hugepagesz=2M hugepages=512")
    );
    assert_eq!(changed("quiet", both).map(|(old, _)| old).as_deref(), Some(""));
}

#[test]
fn a_count_without_a_size_keeps_its_own_under_another_default() {
    for (line, parameters, new) in [
        (
            "hugepages=10 hugepagesz=1G hugepages=1",
            "default_hugepagesz=1G",
            Some("default_hugepagesz=1G hugepagesz=2M hugepages=10 hugepagesz=1G hugepages=1"),
        ),
        (
            "default_hugepagesz=1G hugepages=4",
            "default_hugepagesz=2M",
            Some("default_hugepagesz=2M hugepagesz=1G hugepages=4"),
        ),
        (
            "hugepages=512",
            "default_hugepagesz=1G hugepagesz=1G hugepages=4",
            Some("default_hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512"),
        ),
        ("hugepages=10", "default_hugepagesz=2M", None),
        ("quiet", "default_hugepagesz=1G", None),
        ("hugepages=10", "transparent_hugepage=never", None),
    ] {
        let change = changed(line, parameters).map(|(_, new)| new);
        assert_eq!(change.as_deref(), new, "{line} + {parameters}");
    }
    let grubby = Distribution::RedHat.add_boot_parameters(&on("hugepages=10"), "default_hugepagesz=1G");
    assert!(!grubby.contains("grubby --update"), "{grubby}");
}

/// The words of a line that is edited, in place of which others are to be written.
#[test]
fn the_line_of_the_next_boot_is_the_one_that_is_edited() {
    let on = |running: &str, grub: Option<&str>| {
        let tree = Tree::new()
            .line("/proc/cmdline", running)
            .line("/proc/meminfo", "Hugepagesize:    1048576 kB")
            .line("/etc/os-release", "ID=debian");
        let tree = match grub {
            Some(words) => tree.line("/etc/default/grub", format!("GRUB_CMDLINE_LINUX=\"{words}\"")),
            None => tree,
        };
        let source = Source::from_tree("test", tree);
        let snapshot = Snapshot::take(&source);
        OnBoot::of(&snapshot, &Config::read(&source, &snapshot)).what(MORE)
    };
    let there = |grub: Option<&str>| on("quiet hugepagesz=2M hugepages=417792", grub);
    let instead = |pages: u64| {
        let there = format!("hugepagesz=2M hugepages={pages}");
        format!("write `{there} {MORE}` in place of `{there}` in")
    };
    assert_eq!(there(Some("hugepagesz=2M hugepages=450000")), instead(450_000));
    assert_eq!(there(None), instead(417_792));
    // The default size of the running line is not that of the next boot.
    assert_eq!(
        on("default_hugepagesz=1G hugepages=4", Some("hugepages=512")),
        "write `hugepages=512 hugepagesz=1G hugepages=64` in place of `hugepages=512` in"
    );
}

#[test]
fn the_variable_is_the_one_that_has_them() {
    let on = |grub: Option<&str>| {
        let tree = Tree::new()
            .line("/proc/cmdline", TWO)
            .line("/etc/os-release", "ID=debian");
        let tree = match grub {
            Some(line) => tree.line("/etc/default/grub", line),
            None => tree,
        };
        let source = Source::from_tree("test", tree);
        let snapshot = Snapshot::take(&source);
        Distribution::Debian.add_boot_parameters(&OnBoot::of(&snapshot, &Config::read(&source, &snapshot)), MORE)
    };
    for (grub, variable) in [
        (None, "GRUB_CMDLINE_LINUX_DEFAULT"),
        (
            Some("GRUB_CMDLINE_LINUX_DEFAULT=\"hugepagesz=2M hugepages=512 quiet\""),
            "GRUB_CMDLINE_LINUX_DEFAULT",
        ),
        (
            Some("GRUB_CMDLINE_LINUX=\"quiet hugepagesz=2M hugepages=512\""),
            "GRUB_CMDLINE_LINUX",
        ),
    ] {
        let how = on(grub);
        assert!(
            how.contains(&format!("in {variable} in /etc/default/grub")),
            "{grub:?}: {how}"
        );
    }
}

#[test]
fn no_tool_is_named_that_would_lose_them() {
    use Distribution::{Bottlerocket, Kernelstub, NixOs, Ostree, RedHat, Suse, Talos};
    let there = on(TWO);
    for (own, tool) in [
        (RedHat, "grubby --update"),
        (Suse, "update-bootloader"),
        (Kernelstub, "kernelstub -a"),
        (Ostree, "--append"),
        (Talos, "extraKernelArgs"),
    ] {
        let how = own.add_boot_parameters(&there, MORE);
        assert!(!how.contains(tool), "{how}");
        assert!(
            own.add_boot_parameters(&OnBoot::default(), MORE).contains(tool),
            "{own:?}"
        );
    }
    let one = on("hugepagesz=1G hugepages=36").with("hugepagesz=1G hugepages=48");
    assert!(one.is_some_and(|change| change.is_of_values()));
    let one = RedHat.add_boot_parameters(&on("hugepages=36"), "hugepagesz=2M hugepages=48");
    assert_eq!(one, "grubby --update-kernel=ALL --args=\"hugepages=48\" && reboot");
    let nix = NixOs.add_boot_parameters(&there, MORE);
    assert!(
        nix.contains("\"hugepages=512\" \"hugepagesz=1G\" \"hugepages=64\""),
        "{nix}"
    );
    let own = Bottlerocket.add_boot_parameters(&there, MORE);
    assert!(own.starts_with("count = \"64\" below"), "{own}");
}

#[test]
fn the_option_of_grub2_mkconfig_is_not_in_each_release() {
    for (release, option, efi) in [
        ("3.10.0-1160.el7.x86_64", false, true),
        ("4.18.0-553.5.1.el8_10.x86_64", false, true),
        ("5.4.17-2136.330.7.1.el8uek.x86_64", false, true),
        ("5.14.0-284.11.1.el9_2.x86_64", false, false),
        ("5.14.0-427.13.1.el9_4.x86_64", true, false),
        ("5.14.0-503.el9.x86_64", true, false),
        ("6.12.0-55.9.1.el10_0.x86_64", true, false),
        ("5.15.0-101.103.2.1.el9uek.x86_64", true, true),
        ("6.9.1-1.el9.elrepo.x86_64", true, true),
        ("6.12.0-1-mine", true, true),
    ] {
        let there = OnBoot {
            release: release.to_owned(),
            ..on(TWO)
        };
        let how = Distribution::RedHat.add_boot_parameters(&there, MORE);
        assert_eq!(how.contains("--update-bls-cmdline"), option, "{release}: {how}");
        assert_eq!(how.contains("grub2-efi.cfg"), efi, "{release}: {how}");
    }
}
