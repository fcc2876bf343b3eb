//! Limits of pool pages of the control groups that a goal's program runs in, raised where they are too low.

use std::collections::BTreeSet;

use host::groups::{TooLow, too_low};
use model::plan::{Layer, Target, Value};

use super::draft::{Draft, Drafts};
use super::goal::Want;
use super::{Need, Wanted};

const SOURCE: &str = "Linux Documentation/admin-guide/cgroup-v2.rst, HugeTLB; cgroup-v1/hugetlb.rst";

/// Of the groups of the programs that run, and of the service that the goal names: each limit up to the root holds.
pub(super) fn draft(drafts: &mut Drafts<'_>, wanted: &Wanted) {
    let service = match &wanted.goal.want {
        Want::Jvm(jvm) => jvm.service.as_ref(),
        Want::Database(database) => database.service.as_ref(),
        _ => None,
    };
    let service = service.map(|service| format!("/system.slice/{service}"));
    let paths: BTreeSet<&String> = wanted.program.groups.iter().chain(&service).collect();
    let mut seen = BTreeSet::new();
    for need in &wanted.needs {
        let levels = paths.iter().flat_map(|path| drafts.host.levels(path));
        let low = too_low(&levels.collect::<Vec<_>>(), need.page, need.bytes());
        for limit in low.into_iter().filter(|limit| seen.insert(limit.file.clone())) {
            raise(drafts, need, &limit);
        }
    }
}

fn raise(drafts: &mut Drafts<'_>, need: &Need, TooLow { file, allows }: &TooLow) {
    let (page, bytes) = (need.page.exact(), need.bytes());
    let id = format!("cgroup-{page}");
    let why = format!(
        "{} B are allowed and {} B are needed: beyond the limit a first touch ends in SIGBUS, or the program does not start",
        allows.0, bytes.0
    );
    let target = Target::Setting { path: file.clone() };
    let draft = if file.contains("kubepods") {
        let mib = bytes.0.div_ceil(1 << 20);
        let text = format!("resources:\n  limits:\n    hugepages-{page}i: {mib}Mi");
        let on = "the pod's manifest (the kubelet sets the limit)";
        Draft::instruction(Layer::Cgroup, &id, on, text)
    } else if target.is_allowed(&[]) {
        drafts.note(format!(
            "{file} is gone with its group: raise the limit also in what sets it, such as the options of a container"
        ));
        Draft::setting(Layer::Cgroup, &id, file, Value::Text(bytes.0.to_string()))
    } else {
        Draft::instruction(Layer::Cgroup, &id, "this host", format!("echo {} > {file}", bytes.0))
    };
    drafts.add(draft, why, SOURCE);
}
