//! The kernel's table of mounts: its lines, and what they say.

use model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parse::memparse;

/// The mounts as the reading process sees them.
pub const MOUNTS: &str = "/proc/self/mounts";

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    /// Where it is mounted.
    pub target: String,
    /// `hugetlbfs`, `tmpfs`, ...
    pub kind: String,
    /// Mount options as the kernel lists them.
    pub options: Vec<String>,
}

impl Mount {
    /// The value of an option such as `pagesize` or `huge`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options
            .iter()
            .find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// The most that a tmpfs takes: `size=524288k`.
    pub fn size(&self) -> Option<Bytes> {
        memparse(self.option("size")?)
    }

    /// The page size of a hugetlbfs mount. Old kernels show it as it was written: `2097152`.
    pub fn page_size(&self) -> Option<Bytes> {
        memparse(self.option("pagesize")?).filter(|size| size.0 > 0)
    }
}

/// Every mount of a table, in its order.
pub(crate) fn mounts(table: &str) -> Vec<Mount> {
    table.lines().filter_map(mount).collect()
}

/// `DEVICE TARGET KIND OPTIONS 0 0`; other lines are none of ours.
fn mount(line: &str) -> Option<Mount> {
    let mut words = line.split(' ');
    let (_, target, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(Mount {
        target: unescape(target),
        kind: kind.to_owned(),
        options: options.split(',').map(str::to_owned).collect(),
    })
}

/// Spaces and the like in paths are written in octal: `\040`.
pub(crate) fn unescape(path: &str) -> String {
    let mut pieces = path.split('\\');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain += &piece[3..];
            }
            None => plain = format!("{plain}\\{piece}"),
        }
    }
    plain
}
