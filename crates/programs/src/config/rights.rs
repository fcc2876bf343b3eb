//! Which commands of a unit may write to files of the kernel, which are root's (systemd.exec(5), systemd.service(5)).

use super::Setting;
use super::unit::settings;

/// As whom they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    user: String,
    is_dynamic: bool,
    /// Are /sys and /proc/sys read-only, even to root?
    is_protected: bool,
    /// Does all of this hold for `ExecStart=` alone?
    is_for_start_alone: bool,
    /// May it write whatever the owner is?
    may_override: bool,
}

impl Rights {
    /// Of all files of a unit.
    pub(super) fn of(files: &[(String, String)]) -> Self {
        let mut own = Self::default();
        let settings = files.iter().flat_map(|(path, text)| settings(path, text));
        for (section, setting) in settings.flatten() {
            own.take(section, &setting);
        }
        own
    }

    /// The user of a section [Container] is that inside the container.
    fn take(&mut self, section: Option<&str>, setting: &Setting) {
        let value = setting.value.as_str();
        let is_on = matches!(value, "1" | "yes" | "y" | "true" | "t" | "on");
        match setting.name.as_str() {
            _ if section.is_some_and(|section| section != "Service") => {}
            "User" => value.clone_into(&mut self.user),
            "DynamicUser" => self.is_dynamic = is_on,
            "ProtectKernelTunables" => self.is_protected = is_on,
            "PermissionsStartOnly" => self.is_for_start_alone = is_on,
            "AmbientCapabilities" => self.may_override = value.starts_with('~') || value.contains("CAP_DAC_OVERRIDE"),
            _ => {}
        }
    }

    /// Why a command with these prefixes may not write, if it may not.
    pub(super) fn why_not(&self, key: &str, prefixes: &str) -> Option<String> {
        if prefixes.contains('+') || (self.is_for_start_alone && key != "ExecStart") {
            return None;
        }
        if self.is_protected {
            return Some("ProtectKernelTunables= makes the file read-only for this command".to_owned());
        }
        // The manager of the system is root's, and so are `%u` and `%U`.
        let is_root = !self.is_dynamic && matches!(&*self.user, "" | "root" | "0" | "%u" | "%U");
        let user = match self.user.as_str() {
            "" => "a user without rights (DynamicUser=)",
            user => user,
        };
        let may = is_root || self.may_override || prefixes.contains('!');
        (!may).then(|| format!("this command runs as {user}, and only root may write to the file"))
    }
}
