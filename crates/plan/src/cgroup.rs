//! A service's limit of pool pages, where one is set that is too low.

use host::snapshot::CgroupVersion;
use model::plan::{Layer, Value};

use super::Need;
use super::draft::{Draft, Drafts};

const SOURCE: &str = "Linux Documentation/admin-guide/cgroup-v2.rst, HugeTLB";

/// Raises the limits of a service that runs, so that the pages of its goal fit.
pub(super) fn draft(drafts: &mut Drafts<'_>, service: &str, needs: &[Need]) {
    let cgroup = &drafts.host.snapshot.cgroup;
    let (Some(true), Some(root)) = (cgroup.hugetlb.known(), cgroup.root.known()) else {
        return;
    };
    let is_v2 = cgroup.version.known() == Some(&CgroupVersion::V2);
    let file = if is_v2 { "max" } else { "limit_in_bytes" };
    for need in needs {
        let path = format!("{root}/system.slice/{service}/hugetlb.{}B.{file}", need.page.exact());
        let bytes = need.bytes().0;
        let line = drafts.host.line(&path);
        // Not there: the service does not run, and starts without a limit. `max`: there is none.
        let Some(limit) = line
            .known()
            .and_then(|line| line.parse::<u64>().ok())
            .filter(|limit| *limit < bytes)
        else {
            continue;
        };
        let id = format!("cgroup-{}-{service}", need.page.exact());
        let draft = Draft::setting(Layer::Cgroup, &id, path, Value::Text(bytes.to_string()));
        let why = format!(
            "{limit} B are allowed and {bytes} B are needed: beyond the limit a first touch ends in \
             SIGBUS"
        );
        drafts.add(draft.why(why).source(SOURCE));
    }
}
