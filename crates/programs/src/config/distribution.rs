//! Which family of distributions this is, as far as commands differ (os-release(5)), and what starts it.

use std::fmt::Display;

use model::{Reading, Unread};

use super::files::{content, drop_ins, taken};
use super::kept::{of_run_time, pool_setting};
use super::pool_words::{Change, OnBoot};
use host::Source;

/// Families by their tool for boot parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Debian, Ubuntu and their kin: `update-grub`.
    Debian,
    /// Fedora, Red Hat Enterprise Linux and their kin: `grubby`.
    RedHat,
    /// SUSE: `update-bootloader`.
    Suse,
    /// SUSE with entries of systemd-boot, or of GRUB without a menu of its own: `sdbootutil`.
    SuseEntries,
    /// SUSE with a read-only root: `transactional-update`.
    SuseMicro,
    /// Any of them that EFI starts without GRUB: systemd-boot, rEFInd, or the firmware itself.
    Efi,
    /// Any of them that EFI starts as a unified kernel image, whose command line is part of it.
    UnifiedImage,
    /// Proxmox VE likewise: `proxmox-boot-tool`.
    ProxmoxBoot,
    /// Pop!_OS likewise: `kernelstub`.
    Kernelstub,
    /// NixOS: all of it comes from its configuration.
    NixOs,
    /// Talos: the command line is part of its image.
    Talos,
    /// Bottlerocket: all of it comes from the settings of its API.
    Bottlerocket,
    /// Fedora CoreOS and its kin: `rpm-ostree`.
    Ostree,
    /// A Raspberry Pi by its own firmware, which reads a file.
    RaspberryPi,
    /// A board that U-Boot starts, by a list of entries (Jetson and others).
    Extlinux,
    /// The same by Armbian's script.
    Armbian,
    /// Windows starts it.
    Wsl,
    Other,
}

/// A path of EFI for the initrd, which GRUB never writes.
const EFI_INITRD: &str = "initrd=\\";
const OSTREE: &str = "ostree=";
const PI: &str = "vc_mem.mem_base=";

/// How words of a boot line begin that show what started the kernel.
pub(crate) const STARTERS: [&str; 3] = [EFI_INITRD, OSTREE, PI];

/// The release of Debian itself, not of its kin: `13`.
pub(super) fn debian_release(source: &Source) -> Option<u32> {
    let text = source.text("/etc/os-release").into_result().ok()?;
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let unquoted = |name: &str| value(name).map(|value| value.trim_matches('"'));
    (unquoted("ID") == Some("debian")).then(|| unquoted("VERSION_ID")?.parse().ok())?
}

/// What SUSE's installer writes of the boot loader.
const SUSE_LOADER: &str = "/etc/sysconfig/bootloader";
/// Where kernel-install's own settings are, the strongest first: `install.conf`, and drop-ins.
const KERNEL_INSTALL: [&str; 3] = ["/etc/kernel", "/run/kernel", "/usr/lib/kernel"];
const ARMBIAN: &str = "/boot/armbianEnv.txt";
const EXTLINUX: &str = "/boot/extlinux/extlinux.conf";

impl Distribution {
    pub(super) fn read(source: &Source) -> Reading<Self> {
        let by_name = || source.text("/etc/os-release").map(|text| Self::parse(&text));
        Self::by_start(source).map_or_else(by_name, Reading::Known)
    }

    /// Could all be read that says so?
    pub(super) fn is_readable(source: &Source) -> Result<(), Unread> {
        let paths = [
            "/proc/sys/kernel/osrelease",
            "/etc/os-release",
            SUSE_LOADER,
            "/proc/1/comm",
        ];
        paths.into_iter().try_for_each(|path| content(source, path).map(drop))?;
        makes_images(source).map(drop)
    }

    /// What another tool than the distribution's own starts, or sets up as a whole.
    pub(super) fn by_start(source: &Source) -> Option<Self> {
        let [release, line] = ["/proc/sys/kernel/osrelease", "/proc/cmdline"].map(|path| source.line(path));
        let release = release.known().map_or("", String::as_str);
        let line = line.known().map_or("", String::as_str);
        if release.contains("microsoft") {
            return Some(Self::Wsl);
        }
        let text = source.text("/etc/os-release");
        let names = names(text.known().map_or("", String::as_str));
        let is = |name: &str| names.contains(&name);
        let whole = [
            ("nixos", Self::NixOs),
            ("talos", Self::Talos),
            ("bottlerocket", Self::Bottlerocket),
        ];
        if let Some((_, own)) = whole.into_iter().find(|(name, _)| is(name)) {
            return Some(own);
        }
        let starter = |word: &str| STARTERS.into_iter().find(|own| word.starts_with(own));
        match line.split_whitespace().find_map(starter) {
            Some(OSTREE) => Some(Self::Ostree),
            Some(PI) => Some(Self::RaspberryPi),
            Some(_) if release.ends_with("-pve") => Some(Self::ProxmoxBoot),
            Some(_) if is_suse(&names) => Some(Self::SuseEntries),
            Some(_) if is("pop") => Some(Self::Kernelstub),
            Some(_) => Some(Self::Efi),
            None if is_suse(&names) => Self::of_suse(source, &names),
            // GRUB adds this.
            None if line.split_whitespace().any(|word| word.starts_with("BOOT_IMAGE=")) => None,
            None => Self::of_files(source),
        }
    }

    /// By the files of what started a kernel that GRUB did not.
    fn of_files(source: &Source) -> Option<Self> {
        // What could not be read is said by `is_readable`.
        if makes_images(source).unwrap_or(false) {
            return Some(Self::UnifiedImage);
        }
        let boards = [(ARMBIAN, Self::Armbian), (EXTLINUX, Self::Extlinux)];
        let is_there = |path| content(source, path).ok().flatten().is_some();
        boards.into_iter().find_map(|(path, own)| is_there(path).then_some(own))
    }

    fn of_suse(source: &Source, names: &[&str]) -> Option<Self> {
        let loader = content(source, SUSE_LOADER).ok().flatten().unwrap_or_default();
        let mut own = loader
            .lines()
            .filter_map(|line| line.trim().strip_prefix("LOADER_TYPE="));
        if own
            .next_back()
            .is_some_and(|name| ["grub2-bls", "systemd-boot"].contains(&name.trim_matches(['"', '\''])))
        {
            return Some(Self::SuseEntries);
        }
        let is_micro = |name: &&str| name.ends_with("-micro") || name.ends_with("microos");
        names.iter().any(is_micro).then_some(Self::SuseMicro)
    }

    /// Does nothing read the defaults of GRUB, or write its menu of them?
    pub fn is_without_grub(self) -> bool {
        use Distribution::{Armbian, Efi, Extlinux, Kernelstub, ProxmoxBoot, SuseEntries, UnifiedImage};
        matches!(
            self,
            Armbian | Efi | Extlinux | Kernelstub | ProxmoxBoot | SuseEntries | UnifiedImage
        )
    }

    /// Does all of its configuration come from one place, so that files of /etc are not the way?
    pub fn is_configured_whole(self) -> bool {
        self.configured_in().is_some()
    }

    /// Where such a one is configured.
    pub fn configured_in(self) -> Option<&'static str> {
        match self {
            Self::NixOs => Some(
                "NixOS makes files below /etc of the machine's configuration: change it there, then nixos-rebuild switch",
            ),
            Self::Talos => Some("Talos keeps no changes below /etc: make it in the machine's configuration"),
            Self::Bottlerocket => {
                Some("Bottlerocket keeps no changes below /etc: make it in its settings (apiclient set, or user data)")
            }
            _ => None,
        }
    }

    fn parse(text: &str) -> Self {
        let names = names(text);
        let is = |known: &[&str]| names.iter().any(|name| known.contains(name));
        if is(&["debian", "ubuntu"]) {
            Self::Debian
        } else if is(&["fedora", "rhel", "centos"]) {
            Self::RedHat
        } else if is_suse(&names) {
            Self::Suse
        } else {
            Self::Other
        }
    }

    /// How parameters that stand in the defaults of GRUB, or in kernel-install's file, come to the kernel.
    pub fn apply_boot_parameters(self, there: &OnBoot, parameters: &str) -> String {
        let command = match self {
            Self::Debian => "update-grub && reboot",
            Self::Suse => "grub2-mkconfig -o /boot/grub2/grub.cfg && reboot",
            Self::SuseMicro => "transactional-update grub.cfg && reboot",
            Self::SuseEntries => "sdbootutil update-all-entries && reboot",
            Self::UnifiedImage => {
                "have the unified kernel image made anew (kernel-install add-all, or mkinitcpio -P), then reboot"
            }
            Self::Other => "write the boot loader's configuration anew (grub-mkconfig), then reboot",
            Self::ProxmoxBoot => "proxmox-boot-tool refresh && reboot",
            Self::Efi => "write the boot loader's entry anew (kernel-install, or what writes it here), then reboot",
            // Boot entries of Red Hat have lines of their own, which grub2-mkconfig may leave as they are.
            _ => return self.add_boot_parameters(there, parameters),
        };
        command.to_owned()
    }

    /// How to add parameters to the boot command line, beside the pools that it asks for now.
    pub fn add_boot_parameters(self, there: &OnBoot, parameters: &str) -> String {
        // Bottlerocket has a setting for each size.
        match there.with(parameters).filter(|_| self != Self::Bottlerocket) {
            Some(change) => self.change_line(there, &change, parameters),
            None => self.add_words(parameters),
        }
    }

    fn add_words(self, parameters: &str) -> String {
        match self {
            Self::RedHat => format!("grubby --update-kernel=ALL --args=\"{parameters}\" && reboot"),
            Self::Suse => format!("update-bootloader --add-option \"{parameters}\" && reboot"),
            Self::Kernelstub => format!("kernelstub -a \"{parameters}\" && reboot"),
            Self::NixOs => format!(
                "boot.kernelParams = [ {} ]; in the machine's configuration, then: nixos-rebuild boot && reboot",
                of_nix(parameters)
            ),
            Self::Bottlerocket => pool_setting(parameters).unwrap_or_else(|| {
                format!(
                    "`{parameters}` in its settings, with boot.reboot-to-reconcile = true: boot.kernel-parameters, and for pools kernel.hugepages.static"
                )
            }),
            Self::Ostree => {
                let words: Vec<String> = parameters.split(' ').map(|word| format!(" --append={word}")).collect();
                format!(
                    "rpm-ostree kargs{} && systemctl reboot # on OpenShift: kernelArguments of a MachineConfig",
                    words.concat()
                )
            }
            Self::Wsl => format!(
                "kernelCommandLine={parameters} below [wsl2] in %UserProfile%\\.wslconfig, then: wsl --shutdown"
            ),
            _ => self.edit(&format!("add `{parameters}` to")),
        }
    }

    /// The pools of a boot line as a whole: tools that keep one value of a name, or sort by names, lose all others.
    fn change_line(self, there: &OnBoot, change: &Change, parameters: &str) -> String {
        let what = change.what();
        match self {
            Self::RedHat if change.is_of_values() => self.add_words(&change.new),
            Self::RedHat => format!(
                "{what} GRUB_CMDLINE_LINUX in /etc/default/grub (grubby keeps one value of each name), then: {}",
                there.grub2_mkconfig()
            ),
            Self::Suse => format!(
                "{what} GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, then: grub2-mkconfig -o /boot/grub2/grub.cfg && reboot"
            ),
            Self::Kernelstub => {
                format!(
                    "{what} kernel_options in /etc/kernelstub/configuration, each word an item, then: kernelstub && reboot"
                )
            }
            Self::NixOs => format!(
                "boot.kernelParams = [ {} ]; in the machine's configuration{}, then: nixos-rebuild boot && reboot",
                of_nix(&change.new),
                change.instead()
            ),
            Self::Talos => match of_run_time(parameters).filter(|_| change.has_sizes()) {
                Some(how) => {
                    format!("{how} (Talos may sort boot parameters by name, which parts two sizes from their counts)")
                }
                None => self.edit(&what),
            },
            Self::Ostree => format!(
                "{what} the list that `rpm-ostree kargs --editor` opens (on OpenShift: kernelArguments of a MachineConfig), then: systemctl reboot"
            ),
            Self::Debian => format!(
                "{what} {} in /etc/default/grub, then: update-grub && reboot",
                there.variable(change)
            ),
            Self::Wsl => {
                format!("{what} kernelCommandLine= below [wsl2] in %UserProfile%\\.wslconfig, then: wsl --shutdown")
            }
            _ => self.edit(&what),
        }
    }

    /// Where such a change is made in a file: "add `...` to", or the like.
    fn edit(self, what: &str) -> String {
        match self {
            Self::Debian => {
                format!("{what} GRUB_CMDLINE_LINUX in /etc/default/grub, then: update-grub && reboot")
            }
            Self::SuseMicro => format!(
                "{what} GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, then: transactional-update grub.cfg && reboot"
            ),
            Self::Talos => format!(
                "{what} extraKernelArgs in the image's schematic (Image Factory), then: talosctl upgrade to its installer; \
                 where GRUB starts Talos without grubUseUKICmdline (BIOS, installed before 1.10): to machine.install.extraKernelArgs"
            ),
            Self::SuseEntries => format!("{what} /etc/kernel/cmdline, then: sdbootutil update-all-entries && reboot"),
            Self::UnifiedImage => format!(
                "{what} /etc/kernel/cmdline (a copy of /proc/cmdline, if it is not there), and have the unified kernel image made anew: \
                 kernel-install add-all (systemd 255 and later), or mkinitcpio -P; then reboot"
            ),
            // Where the file is not there, the tool takes /proc/cmdline: a new one has to have all of it.
            Self::ProxmoxBoot => format!(
                "{what} /etc/kernel/cmdline (a copy of /proc/cmdline without initrd=, if it is not there), then: proxmox-boot-tool refresh && reboot"
            ),
            Self::Efi => format!(
                "EFI starts this machine without GRUB: {what} /etc/kernel/cmdline if that file is there, and have the boot entries written anew (kernel-install), \
                 else to the file of the boot loader that EFI starts (systemd-boot's entry, refind_linux.conf); then reboot"
            ),
            Self::RaspberryPi => {
                format!("{what} the one line of /boot/firmware/cmdline.txt (older: /boot/cmdline.txt), then reboot")
            }
            Self::Extlinux => format!(
                "{what} the append line of {EXTLINUX} (where u-boot-update writes it: U_BOOT_PARAMETERS in /etc/default/u-boot, then u-boot-update), and reboot"
            ),
            Self::Armbian => format!("{what} extraargs= in {ARMBIAN}, and reboot"),
            _ => format!("{what} the kernel's command line in the boot loader, then reboot"),
        }
    }

    /// How a sysctl setting holds after the next boot too.
    pub fn keep_setting(self, name: &str, value: impl Display) -> String {
        match self {
            Self::NixOs => {
                format!(
                    "boot.kernel.sysctl.\"{name}\" = {value}; in the machine's configuration, then: nixos-rebuild switch"
                )
            }
            Self::Talos => format!("set {name}: \"{value}\" below machine.sysctls of its configuration"),
            Self::Bottlerocket => format!("\"{name}\" = \"{value}\" below [settings.kernel.sysctl] of its settings"),
            // Without systemd nothing reads the files there; its own file is read in any case.
            Self::Wsl => self.add_words(&format!("sysctl.{name}={value}")),
            _ => format!("echo {name}={value} >> /etc/sysctl.d/60-hugepages.conf"),
        }
    }
}

/// Does kernel-install make unified images? Of several `layout=` the last one counts, and drop-ins come after the file.
fn makes_images(source: &Source) -> Result<bool, Unread> {
    let files = KERNEL_INSTALL.map(|directory| format!("{directory}/install.conf"));
    let first = files.into_iter().find(|path| !source.bytes(path).is_absent());
    let mut more = drop_ins(
        source,
        &KERNEL_INSTALL.map(|directory| format!("{directory}/install.conf.d")),
    )?;
    more.sort();
    let paths = first.into_iter().chain(more.into_iter().map(|(_, path)| path));
    let layouts = taken(source, paths, &['#', ';'], |line| {
        let (_, value) = line.pair().filter(|(name, _)| *name == "layout")?;
        Some(value.trim_matches(['"', '\'']) == "uki")
    })?;
    Ok(layouts.last() == Some(&true))
}

/// Words as the items of a list.
fn of_nix(words: &str) -> String {
    let words: Vec<String> = words.split(' ').map(|word| format!("\"{word}\"")).collect();
    words.join(" ")
}

/// The words of ID and ID_LIKE.
fn names(os_release: &str) -> Vec<&str> {
    let lines = os_release.lines();
    let names = lines.filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")));
    names.flat_map(|names| names.trim_matches('"').split(' ')).collect()
}

fn is_suse(names: &[&str]) -> bool {
    names.iter().any(|name| ["suse", "sles", "opensuse"].contains(name))
}
