//! Which family of distributions this is, as far as commands differ (os-release(5)).

use model::Reading;

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
    /// Any of them that EFI starts without GRUB: systemd-boot, rEFInd, or the firmware itself.
    Efi,
    /// Proxmox VE likewise: `proxmox-boot-tool`.
    ProxmoxBoot,
    /// Fedora CoreOS and its kin: `rpm-ostree`.
    Ostree,
    /// A Raspberry Pi by its own firmware, which reads a file.
    RaspberryPi,
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

impl Distribution {
    pub(super) fn read(source: &Source) -> Reading<Self> {
        let by_name = || source.text("/etc/os-release").map(|text| Self::parse(&text));
        Self::by_start(source).map_or_else(by_name, Reading::Known)
    }

    /// What another tool than the distribution's own starts.
    pub(super) fn by_start(source: &Source) -> Option<Self> {
        let [release, line] = ["/proc/sys/kernel/osrelease", "/proc/cmdline"].map(|path| source.line(path));
        let release = release.known().map_or("", String::as_str);
        let mut words = line.known().map_or("", String::as_str).split_whitespace();
        if release.contains("microsoft") {
            return Some(Self::Wsl);
        }
        let starter = words.find_map(|word| STARTERS.into_iter().find(|own| word.starts_with(own)))?;
        Some(match starter {
            OSTREE => Self::Ostree,
            PI => Self::RaspberryPi,
            _ if release.ends_with("-pve") => Self::ProxmoxBoot,
            _ => Self::Efi,
        })
    }

    fn parse(text: &str) -> Self {
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")));
        let words: Vec<&str> = names.flat_map(|names| names.trim_matches('"').split(' ')).collect();
        let is = |known: &[&str]| words.iter().any(|word| known.contains(word));
        if is(&["debian", "ubuntu"]) {
            Self::Debian
        } else if is(&["fedora", "rhel", "centos"]) {
            Self::RedHat
        } else if is(&["suse", "sles", "opensuse"]) {
            Self::Suse
        } else {
            Self::Other
        }
    }

    /// How parameters that stand in the defaults of GRUB, or in kernel-install's file, come to the kernel.
    pub fn apply_boot_parameters(self, parameters: &str) -> String {
        let command = match self {
            Self::Debian => "update-grub && reboot",
            // Their boot entries have lines of their own, which grub2-mkconfig may leave as they are.
            Self::RedHat | Self::Ostree | Self::RaspberryPi | Self::Wsl => return self.add_boot_parameters(parameters),
            Self::Suse => "grub2-mkconfig -o /boot/grub2/grub.cfg && reboot",
            Self::Other => "write the boot loader's configuration anew (grub-mkconfig), then reboot",
            Self::ProxmoxBoot => "proxmox-boot-tool refresh && reboot",
            Self::Efi => "write the boot loader's entry anew (kernel-install, or what writes it here), then reboot",
        };
        command.to_owned()
    }

    /// How to add parameters to the boot command line.
    pub fn add_boot_parameters(self, parameters: &str) -> String {
        match self {
            Self::Debian => {
                format!("add `{parameters}` to GRUB_CMDLINE_LINUX in /etc/default/grub, then: update-grub && reboot")
            }
            Self::RedHat => format!("grubby --update-kernel=ALL --args=\"{parameters}\" && reboot"),
            Self::Suse => format!("update-bootloader --add-option \"{parameters}\" && reboot"),
            // Where the file is not there, the tool takes /proc/cmdline: a new one has to have all of it.
            Self::ProxmoxBoot => format!(
                "add `{parameters}` to /etc/kernel/cmdline (a copy of /proc/cmdline without initrd=, if it is not there), then: proxmox-boot-tool refresh && reboot"
            ),
            Self::Efi => format!(
                "EFI starts this machine without GRUB: add `{parameters}` to /etc/kernel/cmdline if that file is there, and have the boot entries written anew (kernel-install; SUSE: sdbootutil), \
                 else to the file of the boot loader that EFI starts (systemd-boot's entry, refind_linux.conf); then reboot"
            ),
            Self::Ostree => {
                let words: Vec<String> = parameters.split(' ').map(|word| format!(" --append={word}")).collect();
                format!(
                    "rpm-ostree kargs{} && systemctl reboot # on OpenShift: kernelArguments of a MachineConfig",
                    words.concat()
                )
            }
            Self::RaspberryPi => {
                format!(
                    "add `{parameters}` to the one line of /boot/firmware/cmdline.txt (older: /boot/cmdline.txt), then reboot"
                )
            }
            Self::Wsl => format!(
                "kernelCommandLine={parameters} below [wsl2] in %UserProfile%\\.wslconfig, then: wsl --shutdown"
            ),
            Self::Other => format!("add `{parameters}` to the kernel's command line in the boot loader, then reboot"),
        }
    }
}
