//! What would set the THP policy at boot and did not, beside findings about the policy.

use programs::Evidence;
use programs::config::{Distribution, Dormant, Starter};

use crate::facts::{distribution, file_of};
use crate::rule::Case;

/// Those that would set one of these policies.
pub(super) fn dormant<'e>(evidence: &'e Evidence, values: &'e [&str]) -> impl Iterator<Item = &'e Dormant> {
    let all = evidence.config.dormant.known().into_iter().flatten();
    all.filter(|one| values.contains(&&*one.line.value))
}

impl Case {
    /// With the first of them, and how it does.
    pub(super) fn with_dormant(self, evidence: &Evidence, values: &[&str]) -> Self {
        let first = dormant(evidence, values).next();
        self.with(first, |case, one| {
            case.seen(&one.line.place, state(&one.starter), &one.line.value)
                .fix(start(distribution(evidence), one))
        })
    }
}

fn state(starter: &Starter) -> &'static str {
    match starter {
        Starter::Init(_) => "transparent_hugepage, by a script that no runlevel starts",
        Starter::Unit(_) => "transparent_hugepage, by a unit that is not enabled",
        Starter::RcLocal | Starter::Cron => "transparent_hugepage, at boot",
    }
}

fn start(own: Distribution, one: &Dormant) -> String {
    let (place, value) = (&one.line.place, &one.line.value);
    let file = file_of(place);
    match &one.starter {
        Starter::Init(name) => {
            let link = match own {
                Distribution::RedHat | Distribution::Suse => format!("chkconfig --add {name} && chkconfig {name} on"),
                _ => format!("update-rc.d {name} defaults"),
            };
            format!("to keep it: {file} writes {value}, and no /etc/rc*.d links to it: {link} && service {name} start")
        }
        Starter::Unit(name) => {
            format!("to keep it: {file} writes {value}, and is not enabled: systemctl enable --now {name}")
        }
        Starter::RcLocal => format!(
            "to keep it: {place} writes {value}, which does not hold now: chmod +x {file}, and see systemctl status rc-local"
        ),
        Starter::Cron => {
            format!(
                "to keep it: {place} writes {value}, which does not hold now: see whether cron ran it (journalctl -u cron)"
            )
        }
    }
}
