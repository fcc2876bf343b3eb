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
    Other,
}

/// The release of Debian itself, not of its kin: `13`.
pub(super) fn debian_release(source: &Source) -> Option<u32> {
    let text = source.text("/etc/os-release").into_result().ok()?;
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let unquoted = |name: &str| value(name).map(|value| value.trim_matches('"'));
    (unquoted("ID") == Some("debian")).then(|| unquoted("VERSION_ID")?.parse().ok())?
}

impl Distribution {
    pub(super) fn read(source: &Source) -> Reading<Self> {
        source.text("/etc/os-release").map(|text| Self::parse(&text))
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

    /// How parameters that stand in the defaults of GRUB come to the kernel.
    pub fn apply_boot_parameters(self, parameters: &str) -> String {
        let command = match self {
            Self::Debian => "update-grub && reboot",
            // Their boot entries have lines of their own, which grub2-mkconfig may leave as they are.
            Self::RedHat => return self.add_boot_parameters(parameters),
            Self::Suse => "grub2-mkconfig -o /boot/grub2/grub.cfg && reboot",
            Self::Other => "write the boot loader's configuration anew (grub-mkconfig), then reboot",
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
            Self::Other => format!("add `{parameters}` to the kernel's command line in the boot loader, then reboot"),
        }
    }
}
