//! Programs that locked memory up to their limit, and a part of what they meant to lock.

use model::Bytes;
use model::findings::Severity;
use programs::{Details, Evidence, Limit, Program, cut_off};

use super::memlock::limit_fix;
use crate::facts::{known, range};
use crate::rule::{Case, Reason};

/// A program that no setting shows to lock memory, and that did so up to its limit: within a mapping, of which the rest is not locked. One that
/// has room left below its limit locks what it means to.
pub(super) fn in_part(evidence: &Evidence, program: &Program, details: &Details) -> Result<Option<Case>, Reason> {
    let locked = program.locked.known().filter(|locked| **locked >= WORTH);
    let Some(&locked) = locked else { return Ok(None) };
    let limit = *known(&details.memlock)?;
    let Limit::Bytes(most) = limit else { return Ok(None) };
    let is_full = locked.0 <= most && most - locked.0 <= most / 8;
    if !is_full || program.may_lock()? {
        return Ok(None);
    }
    let Some((first, rest)) = cut_off(program.areas()?) else {
        return Ok(None);
    };
    let need = Bytes(locked.0.saturating_add(rest.size().0));
    if limit >= Limit::Bytes(need.0) {
        return Ok(None);
    }
    let of = match &*rest.name {
        "" => "a mapping".to_owned(),
        name => name.to_owned(),
    };
    let case = Case::likely(format!(
        "{} locked {locked} and may lock {limit}: the last {} of {of} are not locked, and can be swapped or dropped",
        program.title(),
        rest.size()
    ))
    .severity(Severity::Warning)
    .seen(
        program.file("smaps"),
        format!("{} VmFlags: lo", range(&first.range)),
        first.size(),
    )
    .seen(
        program.file("smaps"),
        format!("{} without `lo`", range(&rest.range)),
        rest.size(),
    )
    .seen(program.file("limits"), "Max locked memory", limit)
    .seen(program.file("status"), "VmLck", locked)
    .seen(program.file("status"), "CapEff: CAP_IPC_LOCK", "no");
    Ok(Some(limit_fix(evidence, program, case, Some(need)).fix(
        "or switch its own option for locked memory off (mlock), where the rest may be dropped as well",
    )))
}

/// Keys and passwords take less.
const WORTH: Bytes = Bytes::mib(1);
