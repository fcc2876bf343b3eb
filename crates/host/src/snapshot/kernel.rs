//! The kernel itself: release, command line, base page.

use model::{Bytes, Cause, Reading, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::thp::{Choice, choice};
use crate::Source;
use crate::source::PAGE_SIZE;

/// Which kernel runs, and how it was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// Release, such as `6.12.0-1-amd64`.
    pub release: Reading<String>,
    /// The boot command line.
    pub command_line: Reading<String>,
    /// How readily it preempts itself, where that is chosen at boot: `lazy`, and what else it offers. For root alone.
    #[serde(default = "not_read")]
    pub preemption: Reading<Choice>,
    /// The CPU's smallest page, in bytes.
    pub base_page: Reading<Bytes>,
}

pub(crate) const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// Where the kernel says how it preempts itself (CONFIG_PREEMPT_DYNAMIC).
pub const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";

/// Its size, in words: on x86 it is known, and elsewhere a tree that a person made may not have it.
const BASE_PAGE: &str =
    "the size of base pages (getconf PAGESIZE), which neither /proc/cpuinfo nor the kernel's release shows";

fn not_read() -> Reading<Choice> {
    Reading::absent(PREEMPT)
}

impl Kernel {
    pub fn read(source: &Source) -> Self {
        Self {
            release: source.line(RELEASE),
            command_line: source.line("/proc/cmdline"),
            preemption: choice(source, PREEMPT, ['(', ')']),
            base_page: base_page(source),
        }
    }

    /// Major and minor number, for "since Linux 6.7".
    pub fn version(&self) -> Option<(u32, u32)> {
        let [major, minor, _] = self.numbers()?;
        Some((major, minor))
    }
}

/// Is it a kernel of x86-64 by its name, as distributions build it: `5.14.0-362.el9.x86_64`, `6.1.0-18-amd64`?
pub(super) fn is_named_x86(source: &Source) -> bool {
    let release = source.line(RELEASE);
    let ends = |release: &String| [".x86_64", "-amd64"].iter().any(|name| release.ends_with(name));
    release.known().is_some_and(ends)
}

/// As reported; else 4 KiB where `/proc/cpuinfo` or the kernel's name is of the x86 form, which knows no other base page.
fn base_page(source: &Source) -> Reading<Bytes> {
    let told = source.number(PAGE_SIZE);
    let is_x86 = || {
        let cpuinfo = source.text("/proc/cpuinfo");
        cpuinfo.known().is_some_and(|text| text.contains("vendor_id")) || is_named_x86(source)
    };
    match told {
        Reading::Known(size) if size.is_power_of_two() && size >= 4096 => Reading::Known(Bytes(size)),
        Reading::Known(size) => {
            let why = format!("{size} is not a page size");
            Reading::Unread(Unread::new(Cause::Garbled, format!("{PAGE_SIZE}:1"), why))
        }
        Reading::Unread(why) if why.unread == Cause::Absent && is_x86() => Reading::Known(Bytes::kib(4)),
        // The file is one of a capture alone.
        Reading::Unread(why) if why.unread == Cause::Absent => Reading::absent(BASE_PAGE),
        Reading::Unread(why) => Reading::Unread(why),
    }
}
