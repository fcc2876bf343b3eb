//! hugetlbfs: mounted now, and by a unit at each boot.

use model::Bytes;
use model::plan::{Layer, mount_unit};

use super::draft::{Draft, Drafts};
use super::goal::PoolGoal;
use super::limits;
use super::pools::wants;

const WANTS: &str = "/etc/systemd/system/local-fs.target.d/60-hugewise.conf";
const SOURCE: &str = "Linux Documentation/admin-guide/mm/hugetlbpage.rst, hugetlbfs";

/// Drafts what a pool's users need beside its pages.
pub(super) fn draft(drafts: &mut Drafts<'_>, pool: &PoolGoal) -> Result<(), String> {
    let gid = pool.group.as_ref().map(|group| limits::gid_of(drafts.host, group));
    let gid = gid.transpose()?;
    match (&pool.mount, &pool.pools[..]) {
        (None, _) => {}
        (Some(at), [(page, _)]) => mount(drafts, at, *page, gid),
        (Some(_), _) => {
            return Err("a mount has one page size (write a goal for each size)".to_owned());
        }
    }
    if let Some(gid) = gid {
        limits::shm_group(drafts, gid)?;
    }
    Ok(())
}

/// A hugetlbfs for pages of one size; its group may write there, others may not.
fn mount(drafts: &mut Drafts<'_>, at: &str, page: Bytes, gid: Option<u32>) {
    let (gid, mode) = gid.map_or((0, "0755"), |gid| (gid, "0770"));
    let options = format!("pagesize={},uid=0,gid={gid},mode={mode}", page.exact());
    let draft = Draft::mount(&format!("mount-{}", page.exact()), at, options.clone());
    let also = (at == "/dev/hugepages").then(|| "systemd: dev-hugepages.mount".to_owned());
    let why = "programs that reach huge pages through files use this mount";
    drafts.add(draft.also(also), why, SOURCE);
    persist(drafts, at, &options);
}

fn persist(drafts: &mut Drafts<'_>, at: &str, options: &str) {
    if !drafts.host.has_systemd() {
        let line = format!("hugetlbfs {at} hugetlbfs {options} 0 0");
        let draft = Draft::instruction(Layer::Persistence, "fstab", "this host: /etc/fstab", line);
        drafts.add(draft, "mounted again at each boot", "fstab(5)");
        return;
    }
    let name = mount_unit(at);
    let text = format!(
        "[Unit]\nDescription=Huge pages as files\nDefaultDependencies=no\nBefore=local-fs.target\n\n\
         [Mount]\nWhat=hugetlbfs\nWhere={at}\nType=hugetlbfs\nOptions={options}\n"
    );
    let path = format!("/etc/systemd/system/{name}");
    let draft = drafts.edit(Layer::Persistence, "mount-unit", &path, |_| text.clone());
    let why = "mounted again at each boot, before services";
    drafts.add(draft, why, "systemd.mount(5)");
    let why = "local-fs.target mounts it, without a link to be made";
    wants(drafts, WANTS, &name, why);
}
