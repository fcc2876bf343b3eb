//! Large pages for a running program from outside: each part of its memory is collapsed once it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use host::Source;
use host::programs::{Area, parse_maps};
use model::Bytes;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::compare::code::Code;
use crate::compare::technique::Collapse;
use crate::flip::{MADV_COLLAPSE, aligned, process_madvise};

/// The pages that the kernel collapses to. Other sizes exist on other machines than x86-64, which this is not built for.
const PAGE: Bytes = Bytes::mib(2);
/// A page that refused so often is left alone: it is locked, shared or not all there.
const TRIES: u8 = 5;

/// What was collapsed so far.
pub(super) struct Squeeze {
    what: Collapse,
    pid: u32,
    process: Option<OwnedFd>,
    done: BTreeSet<u64>,
    tries: BTreeMap<u64, u8>,
    refused: Option<io::Error>,
    /// As it was at the last try, where it is about code.
    code: Option<Code>,
}

impl Squeeze {
    /// In a process that is there as long as this is used.
    pub(super) fn new(what: Collapse, pid: Pid) -> Self {
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
        let (process, refused) = match process {
            Ok(process) => (Some(process), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            what,
            pid: pid.as_raw_nonzero().get().cast_unsigned(),
            process,
            done: BTreeSet::new(),
            tries: BTreeMap::new(),
            refused,
            code: None,
        }
    }

    /// Tries every aligned page of the program's memory that was not collapsed yet.
    pub(super) fn tick(&mut self) {
        let pid = self.pid;
        let path = format!("/proc/{pid}/maps");
        let Ok(text) = Source::live().bytes(&path).into_result() else {
            return;
        };
        let areas = parse_maps(&path, &text).unwrap_or_default();
        let areas: Vec<&Area> = areas.iter().filter(|area| self.concerns(area)).collect();
        if self.what == Collapse::Text && self.done.is_empty() && !areas.is_empty() {
            let mounts = Source::live().text(&format!("/proc/{pid}/mountinfo")).into_result();
            self.code = Some(Code::of(&areas, PAGE, &mounts.unwrap_or_default()));
        }
        let wanted: Vec<u64> = areas
            .iter()
            .flat_map(|area| aligned(area.start..area.end, PAGE))
            .collect();
        for page in wanted {
            if !self.done.contains(&page) && self.tries.get(&page).is_none_or(|tries| *tries < TRIES) {
                self.collapse(page);
            }
        }
    }

    fn concerns(&self, area: &Area) -> bool {
        match self.what {
            Collapse::Private => area.is_anonymous() && area.perms.starts_with("rw") && area.perms.ends_with('p'),
            Collapse::Text => area.perms.contains('x') && area.name.starts_with('/'),
        }
    }

    fn collapse(&mut self, page: u64) {
        let Some(process) = &self.process else { return };
        match process_madvise(process.as_fd(), page, PAGE.as_usize(), MADV_COLLAPSE) {
            Ok(()) => {
                self.done.insert(page);
            }
            Err(error) => {
                // Nothing is there yet (EINVAL): memory that is touched later deserves its try then. Of code, it is the file system.
                if error.raw_os_error() != Some(libc::EINVAL) || self.what == Collapse::Text {
                    *self.tries.entry(page).or_default() += 1;
                    self.refused = Some(error);
                }
            }
        }
    }
}

impl fmt::Display for Squeeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pages of 2M collapsed from outside", self.done.len())?;
        if let (Some(code), true) = (&self.code, self.done.is_empty()) {
            let errno = self.refused.as_ref().and_then(io::Error::raw_os_error);
            return write!(f, "; {}", code.why_not(PAGE, errno));
        }
        match &self.refused {
            Some(error) => write!(f, "; the last refusal: {error}"),
            None => Ok(()),
        }
    }
}
