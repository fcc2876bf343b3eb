//! What a refusal of perf events says.

use std::io;

use model::placement::NoRecords;
use rustix::io::Errno;

use super::refusal;

#[test]
fn each_error_of_perf_events_says_what_to_do() {
    let of = |errno: Errno| refusal(&io::Error::from(errno), || false);
    assert_eq!(
        [of(Errno::ACCESS), of(Errno::PERM)],
        [NoRecords::NotPermitted, NoRecords::NotPermitted]
    );
    let foreign = refusal(&io::Error::from(Errno::ACCESS), || true);
    assert_eq!(
        [foreign, of(Errno::NOMEM)],
        [NoRecords::OtherUser, NoRecords::NoLockedMemory]
    );
    assert_eq!(
        [of(Errno::MFILE), of(Errno::NOSYS)],
        [NoRecords::NoDescriptors, NoRecords::NotBuilt]
    );
    assert!(matches!(of(Errno::INVAL), NoRecords::Failed(why) if why.contains("nvalid")));
}
