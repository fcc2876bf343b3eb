//! What programs of services lock of their memory, so far as their command lines show it.

use model::Bytes;

use super::service::Service;
use super::starts::Start;
use crate::vms::asked::{assigns, options, pinned};

/// Memory that a service's program locks, where its unit's limit decides whether it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    /// The command.
    pub place: String,
    /// At least so much.
    pub bytes: Bytes,
    pub what: Locks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// A guest's memory, for a device of the host.
    Guest,
    /// The log of varnishd.
    Log,
}

/// Varnish's log of requests, if no option sets its size (varnishd(1), `vsl_space`).
const LOG: Bytes = Bytes::mib(80);

impl Locked {
    /// Of one command of a service; `None` also for a command with a right to lock.
    pub(super) fn of(service: &Service, start: &Start) -> Option<Self> {
        let is_root = service
            .user
            .as_ref()
            .is_none_or(|user| matches!(user.value.as_str(), "root" | "0"));
        // Marks for a command that does not run as that user.
        let is_full = start.words.first().is_some_and(|word| word.starts_with(['+', '!']));
        if service.may_lock || is_full {
            return None;
        }
        let (bytes, what) = match start.from(|name| name == "varnishd") {
            // Its worker gives up root, unless it is to stay.
            Some(words) if is_root && options(words, "j").first() == Some(&"none") => return None,
            Some(words) => (log(words)?, Locks::Log),
            None if is_root => return None,
            None => (pinned(start.from(assigns)?)?, Locks::Guest),
        };
        let place = start.place.clone();
        Some(Self { place, bytes, what })
    }
}

/// The size of Varnish's log; `None` where a variable may set it.
fn log(words: &[String]) -> Option<Bytes> {
    let attached = words.iter().filter_map(|word| word.strip_prefix("-l"));
    let attached = attached.filter(|size| !size.is_empty());
    let parameters = options(words, "p");
    let parameter = parameters.iter().filter_map(|text| text.strip_prefix("vsl_space="));
    let own = options(words, "l");
    let own = own.iter().copied().chain(attached).chain(parameter).next_back();
    match own {
        Some(own) => bytes(own.split(',').next()?),
        None if words.iter().any(|word| word.contains('$')) => None,
        None => Some(LOG),
    }
}

/// `80M`, or bytes.
fn bytes(text: &str) -> Option<Bytes> {
    text.parse::<u64>().map(Bytes).ok().or_else(|| text.parse().ok())
}
