//! Guests of libvirt whose memory is locked, and the limit that they get of libvirt's service.

use model::Bytes;
use programs::config::given::Guest;
use programs::{Evidence, Limit};

use super::files::is_unlimited;
use super::memlock::by_libvirt;
use crate::facts::running;
use crate::links;
use crate::rule::Case;

/// What starts guests of libvirt.
const OF_LIBVIRT: &[&str] = &["libvirtd.service", "virtqemud.service"];

/// A guest of libvirt with a device that libvirt does not know of: its limit is that of the service.
pub(super) fn unknown_device(evidence: &Evidence, guest: &Guest) -> Option<Case> {
    let (place, device) = guest.unknown_device.as_ref()?;
    let memory = guest.total();
    let mut services = running(evidence).filter(|program| ["libvirtd", "virtqemud"].contains(&&*program.pages.name));
    let has_room = services.any(|service| {
        let limit = service.details.as_ref().and_then(|details| details.memlock.known());
        limit.is_some_and(|limit| *limit >= Limit::Bytes(memory.0))
    });
    if has_room || is_unlimited(evidence, OF_LIBVIRT) {
        return None;
    }
    let case = Case::likely(format!(
        "libvirt does not know of a device of {} (VFIO), and raises no limit of locked memory for it: with libvirt's own (64M or less) it fails (`VFIO_MAP_DMA: -12`)",
        guest.name
    ))
    .link(Some(links::of_manager(guest.manager)))
    .seen(place, "device", device)
    .seen(&guest.place, "hard_limit, locked", "no");
    Some(by_libvirt(case, Some(memory)))
}

/// libvirt locks more than a guest's memory for a device: what it maps, and some for QEMU.
const BESIDE: Bytes = Bytes::gib(1);

/// A guest for which libvirt is to raise the limit above that of its service, where that service may not (CAP_SYS_RESOURCE).
pub(super) fn not_raised(evidence: &Evidence, guest: &Guest) -> Option<Case> {
    let (place, why) = guest.pinned.as_ref()?;
    let mut services = evidence.files.services.iter();
    let service = services.find(|service| OF_LIBVIRT.contains(&&*service.name))?;
    let bounds = service.bounds.as_ref().filter(|bounds| !bounds.may_raise)?;
    let (name, memory) = (&service.name, guest.total());
    let set = service.unit.limit().map(|(_, set)| set);
    let need = Limit::Bytes(memory.0.saturating_add(BESIDE.0));
    if set.is_some_and(|(limit, _)| *limit >= need) {
        return None;
    }
    let limit = set.map_or("that of its unit (libvirt's own: 64M)".to_owned(), |(limit, _)| {
        limit.to_string()
    });
    let case = Case::likely(format!(
        "{name} may not raise the limit of locked memory above its own, {limit}: {} locks {memory} and more, and does not start (`cannot limit locked memory`, or `VFIO_MAP_DMA failed: Cannot allocate memory`)",
        guest.name
    ))
    .link(Some(links::UNITS))
    .seen(place, "locked memory, for", why)
    .seen_line(&bounds.line)
    .with(set, |case, (limit, place)| case.seen(place, "LimitMEMLOCK", *limit));
    let change = match bounds.line.value.starts_with('~') {
        true => "take CAP_SYS_RESOURCE and CAP_IPC_LOCK out of",
        false => "add CAP_SYS_RESOURCE and CAP_IPC_LOCK to",
    };
    let in_place = set.map(|(limit, place)| format!("or LimitMEMLOCK=infinity in {place}, in place of {limit}"));
    let stem = name.trim_end_matches(".service");
    Some(
        case.fix(format!("{change} CapabilityBoundingSet= in {}", bounds.line.place))
            .when(in_place.is_none(), |case| {
                case.unlimited(&format!("or systemctl edit {name}"))
            })
            .with(in_place, Case::fix)
            .fix(format!("then: systemctl daemon-reload && systemctl restart {stem}"))
            .fix("<hard_limit> in the definition is no help: libvirt may not set that either"),
    )
}
