//! Processes that are missing in a list, in words.

use draw::{counted, or_empty};
use model::process::{Remedy, Unseen};
use model::{Cause, Unread};

/// How many are missing, why, and what to do; `None` if none is.
pub(crate) fn in_words(unseen: &Unseen) -> Option<String> {
    let why = |why: &Unread| {
        let remedy = unseen.remedy.filter(|_| why.unread == Cause::Denied);
        format!("{why}{}", or_empty(remedy.map(|remedy| format!("; {}", to_do(remedy)))))
    };
    let unread = (unseen.unread > 0).then(|| {
        let first = or_empty(
            unseen
                .first
                .as_ref()
                .map(|first| format!(" (the first: {})", why(first))),
        );
        format!(
            "{} could not be read{first}",
            counted(unseen.unread as usize, "process")
        )
    });
    let hidden = unseen.hidden.as_ref();
    let hidden = hidden.map(|hidden| format!("others are not listed ({})", why(hidden)));
    let parts: Vec<String> = unread.into_iter().chain(hidden).collect();
    (!parts.is_empty()).then(|| parts.join(", and "))
}

fn to_do(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::Sudo => "run it with sudo",
        Remedy::SnapshotWithSudo => "take the snapshot with sudo",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_said_where_it_helps() {
        let said = |cause, remedy| {
            let mut unseen = Unseen {
                remedy,
                ..Unseen::default()
            };
            unseen.add(&Unread::new(cause, "/proc/1/smaps", ""));
            in_words(&unseen).expect("one is missing")
        };
        let first = "1 process could not be read (the first: denied: /proc/1/smaps";
        assert_eq!(
            said(Cause::Denied, Some(Remedy::Sudo)),
            format!("{first}; run it with sudo)")
        );
        assert_eq!(
            said(Cause::Denied, Some(Remedy::SnapshotWithSudo)),
            format!("{first}; take the snapshot with sudo)")
        );
        assert_eq!(said(Cause::Denied, None), format!("{first})"));
        assert!(!said(Cause::Failed, Some(Remedy::Sudo)).contains("sudo"));
        assert_eq!(in_words(&Unseen::default()), None);
    }
}
