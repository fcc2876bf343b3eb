//! The machine as a planner sees it: its settings, its files, and what stands in each target now.

use host::groups::{self, GroupLevel};
use host::snapshot::{Feature, MountTree};
use host::{Snapshot, Source};
use model::plan::{MountOptions, Plan, Target, Value, chosen};
use model::{Bytes, Cause, Reading, Unread};
use programs::config::{Config, Distribution};

use super::goal::Goal;
use super::{PlanningError, Recorded, Wanted};

/// Everything that a plan is made from. The same source gives the same plan.
pub struct Host<'a> {
    pub(super) source: &'a Source,
    /// The kernel's settings.
    pub snapshot: Snapshot,
    /// What was asked for in files and at boot.
    pub config: Config,
    /// Pool pages that plans on record were applied for.
    pub recorded: Vec<Recorded>,
}

impl<'a> Host<'a> {
    /// Looks at a machine once.
    pub fn look(source: &'a Source) -> Self {
        let snapshot = Snapshot::take(source);
        let config = Config::read(source, &snapshot);
        Self {
            source,
            snapshot,
            config,
            recorded: Vec::new(),
        }
    }

    /// The same machine, with what plans on record were applied for.
    #[must_use]
    pub fn with_recorded(self, recorded: Vec<Recorded>) -> Self {
        Self { recorded, ..self }
    }

    /// Plans on record that are not for these goals.
    pub(super) fn others(&self, wanted: &[Wanted]) -> Vec<(Goal, &Recorded)> {
        let goal = |recorded: &'_ Recorded| recorded.need.goal.parse::<Goal>().ok();
        let known = self
            .recorded
            .iter()
            .filter_map(|recorded| Some((goal(recorded)?, recorded)));
        known
            .filter(|(goal, _)| !wanted.iter().any(|wanted| wanted.goal.is_same(goal)))
            .collect()
    }

    pub(super) fn group_name(&self, gid: u32) -> Option<&str> {
        let group = self.config.accounts.known()?.group(gid)?;
        Some(&group.name)
    }

    pub(super) fn before(&self, target: &Target) -> Reading<Value> {
        match target {
            Target::Setting { path } => self.setting(path),
            Target::File { path, .. } => self.file(path),
            Target::Mount { at } => self.mount(at),
            Target::Instruction { on } => {
                Reading::Unread(Unread::new(Cause::Absent, on, "hugewise does not look there"))
            }
        }
    }

    fn setting(&self, path: &str) -> Reading<Value> {
        match path.strip_suffix("/nr_hugepages") {
            Some(directory) => self.persistent(directory),
            None if path.ends_with("/nr_overcommit_hugepages") => self.source.number(path).map(Value::Pages),
            None => self.source.line(path).map(|line| Value::Text(chosen(&line))),
        }
    }

    fn persistent(&self, directory: &str) -> Reading<Value> {
        let all = self.source.number(&format!("{directory}/nr_hugepages"));
        let surplus = self.source.number(&format!("{directory}/surplus_hugepages"));
        Reading::from(persistent(&all, &surplus)).map(Value::Pages)
    }

    /// A capture without `/etc` says nothing about files.
    pub(super) fn file(&self, path: &str) -> Reading<Value> {
        match self.source.text(path) {
            Reading::Known(text) => Reading::Known(Value::Text(text)),
            Reading::Unread(why) if why.unread == Cause::Absent && self.has_files() => Reading::Known(Value::Absent),
            Reading::Unread(why) => Reading::Unread(why),
        }
    }

    /// A file's text; one that is not there is empty.
    pub(super) fn text(&self, path: &str) -> String {
        match self.file(path) {
            Reading::Known(Value::Text(text)) => text,
            _ => String::new(),
        }
    }

    pub(super) fn has_directory(&self, path: &str) -> bool {
        self.source.list(path).known().is_some()
    }

    fn has_files(&self) -> bool {
        self.has_directory("/etc")
    }

    /// The control group of this path and those above it, with what they allow of hugetlb pages.
    pub(super) fn levels(&self, path: &str) -> Vec<GroupLevel> {
        let pools = self.snapshot.pools.known().into_iter().flatten();
        let sizes: Vec<Bytes> = pools.map(|pool| pool.size).collect();
        groups::levels(self.source, &self.snapshot.cgroup, &sizes, path)
    }

    /// In a container the kernel's settings are the host's, and their files are on read-only mounts.
    pub(super) fn must_be_writable(&self, plan: &Plan) -> Result<(), PlanningError> {
        let mounts = MountTree::own(self.source);
        let Some(mounts) = mounts.known() else {
            return Ok(());
        };
        let files = plan.changes.iter().filter_map(|change| match &change.target {
            Target::Setting { path } | Target::File { path, .. } => Some(path),
            Target::Mount { .. } | Target::Instruction { .. } => None,
        });
        for path in files {
            let mount = mounts.of(path);
            if let Some(mount) = mount.filter(|mount| mount.options.iter().any(|option| option == "ro")) {
                return Err(PlanningError::ReadOnly {
                    path: path.clone(),
                    mount: mount.target.clone(),
                });
            }
        }
        Ok(())
    }

    fn mount(&self, at: &str) -> Reading<Value> {
        self.snapshot.mounts.as_ref().map(|all| {
            let top = all
                .iter()
                .rev()
                .find(|mount| mount.target == at && mount.kind == "hugetlbfs");
            top.map_or(Value::Absent, |mount| {
                Value::Text(MountOptions::parse(&mount.options.join(",")).to_string())
            })
        })
    }

    /// Can mmap() take pool pages without a file? A kernel of unknown age can.
    pub fn has_map_hugetlb(&self) -> bool {
        self.snapshot.kernel.has(Feature::MapHugetlb) != Some(false)
    }

    /// Does systemd start this machine? By its system, its directory, or where files are not known, by the kernel's age.
    pub(super) fn has_systemd(&self) -> bool {
        match self.distribution() {
            Distribution::NixOs | Distribution::Bottlerocket => true,
            Distribution::Talos => false,
            _ if self.has_files() => self.has_directory("/etc/systemd"),
            _ => self.snapshot.kernel.has(Feature::Systemd) != Some(false),
        }
    }

    /// How the machine's configuration keeps files below /sys. What NixOS makes of files of /etc is written when all of them are known.
    pub(super) fn keeps(&self, files: &[(String, String)]) -> Option<String> {
        let own = self.distribution();
        own.keep_files(files).filter(|_| own != Distribution::NixOs)
    }

    /// The pool size that is taken when none is named.
    pub fn default_page(&self) -> Bytes {
        let size = self.snapshot.memory.get("Hugepagesize");
        size.known().copied().unwrap_or(Bytes::mib(2))
    }

    /// Sizes of pools that this kernel has, in words.
    pub(super) fn pool_sizes(&self) -> String {
        let pools = self.snapshot.pools.known().map(Vec::as_slice).unwrap_or_default();
        let sizes: Vec<String> = pools.iter().map(|pool| pool.size.exact()).collect();
        match sizes.is_empty() {
            true => "none".to_owned(),
            false => sizes.join(", "),
        }
    }

    /// The user's first group and whether the user is known at all.
    pub(super) fn group_of(&self, user: &str) -> Option<u32> {
        self.config.accounts.known()?.user_named(user)?.gid
    }

    pub(super) fn group(&self, name: &str) -> Option<u32> {
        let groups = &self.config.accounts.known()?.groups;
        groups.iter().find(|group| group.name == name).map(|group| group.gid)
    }

    /// The groups that list a user.
    pub(super) fn groups_of(&self, user: &str) -> Vec<String> {
        let accounts = self.config.accounts.known();
        accounts.map(|accounts| accounts.groups_of(user)).unwrap_or_default()
    }

    pub(super) fn distribution(&self) -> Distribution {
        self.config.distribution.known().copied().unwrap_or(Distribution::Other)
    }

    /// MemTotal, rounded up to whole GiB: what was put into the machine.
    pub(super) fn installed(&self) -> Option<Bytes> {
        let total = self.config.total.known();
        total.map(|total| total.round_up_to(Bytes::gib(1)))
    }
}

/// Pages of a pool without the surplus, which come and go with their mappings.
pub(super) fn persistent(all: &Reading<u64>, surplus: &Reading<u64>) -> Result<u64, Unread> {
    Ok(all.as_ref().into_result()?.saturating_sub(surplus.or_if_absent(0)?))
}

#[cfg(test)]
mod tests {
    use super::Host;
    use host::{Source, Tree};
    use model::plan::MountOptions;

    #[test]
    fn the_kernel_s_options_come_in_one_order_with_its_defaults() {
        let options = |text: &str| MountOptions::parse(text).to_string();
        assert_eq!(
            options("rw,relatime,gid=501,mode=770,pagesize=1024M"),
            "pagesize=1G,uid=0,gid=501,mode=0770"
        );
        assert_eq!(options("rw"), "uid=0,gid=0,mode=0755");
    }

    #[test]
    fn the_kernel_s_age_tells_what_it_can() {
        for (release, map_hugetlb) in [
            ("2.6.18-53.el5", false),
            ("2.6.31", false),
            ("2.6.32-754.el6", true),
            ("6.18.44", true),
        ] {
            let source = Source::from_tree("test", Tree::new().line("/proc/sys/kernel/osrelease", release));
            let host = Host::look(&source);
            assert_eq!(host.has_map_hugetlb(), map_hugetlb, "{release}");
        }
    }
}
