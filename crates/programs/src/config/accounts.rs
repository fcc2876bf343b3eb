//! Users and groups of the machine, by id.

use std::collections::BTreeMap;

use model::Reading;

use host::Source;

/// `/etc/passwd` and `/etc/group`. Accounts of a directory service are not in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// User names by id.
    pub users: BTreeMap<u32, String>,
    pub groups: BTreeMap<u32, Group>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// The users that are listed as members; those whose first group it is are not.
    pub members: Vec<String>,
}

impl Accounts {
    /// Reads both files.
    pub fn read(source: &Source) -> Reading<Self> {
        source.text("/etc/passwd").and_then(|passwd| {
            let groups = source.text("/etc/group").into_result()?;
            Ok(Self {
                users: passwd.lines().filter_map(user).collect(),
                groups: groups.lines().filter_map(group).collect(),
            })
        })
    }

    /// The names of the groups that list this user.
    pub fn groups_of(&self, user: &str) -> Vec<String> {
        let lists = |group: &&Group| group.members.iter().any(|member| member == user);
        self.groups
            .values()
            .filter(lists)
            .map(|group| group.name.clone())
            .collect()
    }
}

/// `NAME:PASSWORD:UID:...`
fn user(line: &str) -> Option<(u32, String)> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    Some((fields.nth(1)?.parse().ok()?, name))
}

/// `NAME:PASSWORD:GID:MEMBERS`
fn group(line: &str) -> Option<(u32, Group)> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let gid = fields.nth(1)?.parse().ok()?;
    let members = fields
        .next()
        .unwrap_or_default()
        .split(',')
        .filter(|name| !name.is_empty());
    let members = members.map(str::to_owned).collect();
    Some((gid, Group { name, members }))
}
