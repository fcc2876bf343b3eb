//! Users and groups, as the machine's files list them. Accounts of a directory service are not in them.

use model::Reading;

use crate::Source;

pub const PASSWD: &str = "/etc/passwd";
pub const GROUP: &str = "/etc/group";

/// Both files, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    pub users: Vec<User>,
    pub groups: Vec<Group>,
    /// A line with a plus stands for accounts of a directory service (nsswitch.conf(5), compat).
    pub has_others: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    /// Its first group.
    pub gid: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    pub gid: u32,
    /// The users that are listed as members; those whose first group it is are not.
    pub members: Vec<String>,
}

impl Accounts {
    pub fn read(source: &Source) -> Reading<Self> {
        source.text(PASSWD).and_then(|passwd| {
            let group = source.text(GROUP).into_result()?;
            Ok(Self {
                users: users(&passwd).collect(),
                groups: groups(&group).collect(),
                has_others: passwd.lines().chain(group.lines()).any(|line| line.starts_with('+')),
            })
        })
    }

    pub fn user(&self, uid: u32) -> Option<&User> {
        self.users.iter().find(|user| user.uid == uid)
    }

    pub fn user_named(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name)
    }

    pub fn group(&self, gid: u32) -> Option<&Group> {
        self.groups.iter().find(|group| group.gid == gid)
    }

    /// The names of the groups that list this user.
    pub fn groups_of(&self, user: &str) -> Vec<String> {
        let lists = |group: &&Group| group.members.iter().any(|member| member == user);
        let groups = self.groups.iter().filter(lists);
        groups.map(|group| group.name.clone()).collect()
    }
}

/// `NAME:PASSWORD:UID:GID:...`
pub fn users(passwd: &str) -> impl Iterator<Item = User> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        Some(User {
            name: fields.next()?.to_owned(),
            uid: fields.nth(1)?.parse().ok()?,
            gid: fields.next().and_then(|gid| gid.parse().ok()),
        })
    })
}

/// `NAME:PASSWORD:GID:MEMBERS`
pub fn groups(group: &str) -> impl Iterator<Item = Group> {
    group.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, gid) = (fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?);
        let members = fields.next().unwrap_or_default().split(',');
        let members = members.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Some(Group { name, gid, members })
    })
}
