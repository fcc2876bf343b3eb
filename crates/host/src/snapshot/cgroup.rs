//! Control groups: which version, and whether hugetlb pages can be limited.

use model::{Cause, Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mounts;
use crate::Source;

/// What the mounted hierarchies can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cgroup {
    /// Which hierarchies are mounted.
    pub version: Reading<CgroupVersion>,
    /// Where the hierarchy is mounted that holds (v1) or could hold (v2) the hugetlb controller.
    pub root: Reading<String>,
    /// Can hugetlb pages be limited in it?
    pub hugetlb: Reading<bool>,
    /// Do hugetlb pages count against memory.max (`memory_hugetlb_accounting`)?
    #[serde(default)]
    pub counts_hugetlb: bool,
}

/// The cgroup hierarchies in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupVersion {
    /// One hierarchy per controller.
    V1,
    /// The unified hierarchy.
    V2,
    /// v1 hierarchies with controllers, beside a v2 one.
    Hybrid,
}

impl Cgroup {
    /// What is mounted where.
    pub fn read(source: &Source) -> Self {
        let mounts = match mounts::all(source) {
            Reading::Known(mounts) => mounts,
            Reading::Unread(why) => {
                return Self {
                    version: Reading::Unread(why.clone()),
                    root: Reading::Unread(why.clone()),
                    hugetlb: Reading::Unread(why),
                    counts_hugetlb: false,
                };
            }
        };
        let v1 = mounts.iter().any(|mount| mount.kind == "cgroup");
        let v2 = mounts.iter().find(|mount| mount.kind == "cgroup2");
        let is_v1_hugetlb = |option: &String| option == "hugetlb";
        let holder = mounts
            .iter()
            .find(|mount| mount.kind == "cgroup" && mount.options.iter().any(is_v1_hugetlb));
        let absent = || Unread::new(Cause::Absent, mounts::MOUNTS, "no cgroup file system is mounted");
        Self {
            version: version(v1, v2.is_some()).ok_or_else(absent).into(),
            root: holder
                .or(v2)
                .map(|mount| mount.target.clone())
                .ok_or_else(absent)
                .into(),
            hugetlb: match (holder, v2) {
                (Some(_), _) => Reading::Known(true),
                (None, Some(mount)) => controller(source, &mount.target),
                (None, None) => Reading::Known(false),
            },
            counts_hugetlb: v2
                .is_some_and(|mount| mount.options.iter().any(|option| option == "memory_hugetlb_accounting")),
        }
    }
}

fn version(v1: bool, v2: bool) -> Option<CgroupVersion> {
    match (v1, v2) {
        (true, true) => Some(CgroupVersion::Hybrid),
        (true, false) => Some(CgroupVersion::V1),
        (false, true) => Some(CgroupVersion::V2),
        (false, false) => None,
    }
}

fn controller(source: &Source, root: &str) -> Reading<bool> {
    let controllers = source.line(&format!("{root}/cgroup.controllers"));
    controllers.map(|line| line.split_whitespace().any(|name| name == "hugetlb"))
}
