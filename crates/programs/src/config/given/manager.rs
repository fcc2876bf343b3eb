//! systemd's own files: the limit of services that set none (systemd-system.conf(5)).

use super::Given;
use crate::Limit;
use crate::config::unit::{OF_USERS, default_limit, is_of_manager, settings};

/// By its path, or by a section that no unit has, with a setting of its own.
pub(super) fn is_one(path: &str, text: &str) -> bool {
    let has = |beginning: &str| text.lines().any(|line| line.trim_end().starts_with(beginning));
    is_of_manager(path) || (has("[Manager]") && has("DefaultLimit"))
}

/// Drop-ins hold over the file itself, and the last by name over the others.
fn order(path: &str) -> (bool, &str) {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    (directory.ends_with(".conf.d"), name)
}

impl Given {
    /// The limit is that of services which were given before, and of those that follow.
    fn all_services(&mut self, path: &str, limit: (Limit, String)) {
        let known = self.default_memlock.as_ref();
        if known.is_none_or(|(_, place)| order(place.rsplit_once(':').map_or(place, |(file, _)| file)) <= order(path)) {
            self.default_memlock = Some(limit);
        }
        for service in &mut self.services {
            service.unit.default_memlock.clone_from(&self.default_memlock);
        }
    }

    pub(super) fn manager(&mut self, path: &str, text: &str) {
        let is_of_users = order(path).1 == OF_USERS || path.contains("user.conf.d/");
        for (section, setting) in settings(path, text).into_iter().flatten() {
            match default_limit(section, &setting) {
                Err(wanted) => self.garbled.push(setting.garbled(wanted)),
                Ok(Some(limit)) if !is_of_users => self.all_services(path, limit),
                Ok(_) => {}
            }
            if is_of_users && setting.name.contains("LimitMEMLOCK") {
                self.unresolved.push(format!(
                    "{}: {}= is not judged: {OF_USERS} is for the managers of users (systemctl --user), and no system service gets its limits",
                    setting.place, setting.name
                ));
            }
        }
    }
}
