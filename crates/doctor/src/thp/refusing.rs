//! Products that do not start under a THP policy.

use std::collections::BTreeSet;

use model::findings::Severity;
use programs::config::Setting;
use programs::config::given::{FileKind, Server};
use programs::{Evidence, Kind, image_name};

use super::vendors;
use crate::facts::{policy, thp_file};
use crate::rule::{Answer, Case, Reason};

pub(super) const FILES: &[FileKind] = &[FileKind::Mysql, FileKind::Pod, FileKind::Compose];

/// Programs of files that do not start under the policy of the machine, or of the files.
pub(super) fn refusing(evidence: &Evidence) -> Answer {
    let files = &evidence.files;
    let runs = files.runs.iter().map(|run| (&run.image, &run.place, &run.words));
    let in_pods = files.containers().map(|one| (&one.image, &one.place, &one.words));
    let of_images = runs.chain(in_pods).filter_map(|(image, place, words)| {
        let (outcome, link) = vendors::refusing(image_name(image))?;
        // NuoDB's own administration starts.
        let starts = !words.iter().any(|word| word == "nuoadmin");
        starts.then_some((outcome, link, (place.as_str(), "image", image.as_str())))
    });
    let servers = files.servers(Kind::Mysql);
    let of_tokudb = servers.iter().filter_map(|server| {
        let set = tokudb(server)?;
        Some((
            TOKUDB_FAILS,
            TOKUDB,
            (set.place.as_str(), &*set.name, set.value.as_str()),
        ))
    });
    // Containers of one product are one finding.
    let mut seen = BTreeSet::new();
    let mut all: Vec<_> = of_images.chain(of_tokudb).collect();
    all.retain(|(outcome, ..)| seen.insert(*outcome));
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let (place, value) = meant(evidence)?;
    if value != "always" {
        return Ok(Vec::new());
    }
    let case = |(outcome, link, seen): (&str, &'static str, (&str, &str, &str))| {
        let case = Case::likely(format!("{outcome} under the THP policy `always`"))
            .severity(Severity::Error)
            .link(Some(link))
            .seen(seen.0, seen.1, seen.2)
            .seen(&place, "THP policy", &value);
        let case = match evidence.has_machine {
            true => case
                .madvise()
                .otherwise("this kernel's policy offers no `madvise`: `never`"),
            false => case.fix("transparent_hugepage=madvise, or never, on the boot command line of its machine"),
        };
        case.fix_if(
            outcome == TOKUDB_FAILS,
            "or thp-setting = never in [mysqld_safe], where that script starts it (Percona Server)",
        )
    };
    Ok(all.into_iter().map(case).collect())
}

const TOKUDB_FAILS: &str = "TokuDB does not start";
const TOKUDB: &str = "https://docs.percona.com/percona-server/5.7/tokudb/tokudb_installation.html";

/// What makes a server of MySQL load TokuDB, unless its script switches THP off before.
fn tokudb(server: &Server) -> Option<&Setting> {
    let is_off = server
        .settings
        .last("thp_setting")
        .is_some_and(|set| set.value == "never");
    let loads =
        |set: &&Setting| matches!(&*set.name, "plugin_load" | "plugin_load_add") && set.value.contains("ha_tokudb");
    server.settings.iter().find(loads).filter(|_| !is_off)
}

/// The policy that there will be, and where it is written: that of the machine, or what the files set last.
pub(super) fn meant(evidence: &Evidence) -> Result<(String, String), Reason> {
    if evidence.has_machine {
        return Ok((thp_file("enabled"), policy(evidence)?));
    }
    let last = evidence.files.policies.last();
    let absent = || "no file sets the THP policy (give the kernel's command line too)".into();
    last.map(|line| (line.place.clone(), line.value.clone()))
        .ok_or_else(absent)
}
