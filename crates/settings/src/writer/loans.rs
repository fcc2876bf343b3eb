//! The pages that runs hold as leases now, for commands that read the machine at the same time.

use crate::error::WriterError;
use crate::journal::Share;
use crate::pool_setting::PoolSetting;
use crate::writer::Writer;

/// Pages that a run of hugewise has borrowed: they are in a setting's value, and go when that run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loan {
    /// The setting's file.
    pub path: String,
    /// How much of its value is borrowed.
    pub pages: u64,
}

impl Writer {
    /// Every loan of every run, read without the lock. None is the usual answer, also when there is no state directory, or when it is
    /// root's and this user is not.
    ///
    /// # Errors
    /// When the state directory cannot be trusted or listed.
    pub fn loans(&self) -> Result<Vec<Loan>, WriterError> {
        let shares = self.inner.shares()?.into_iter();
        let loan = |(setting, Share { pages, .. }): (PoolSetting, Share)| Loan {
            path: setting.path(),
            pages,
        };
        Ok(shares.map(loan).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Loan;
    use crate::scene::{M2, Scene};

    #[test]
    fn a_loan_is_seen_by_others_while_it_lasts() {
        let scene = Scene::new(1, 0);
        let ((_, writer), (_, other)) = (scene.run(100), scene.run(200));
        assert_eq!(other.loans().expect("no directory yet"), []);
        let lease = writer.lease_pool(M2, 7).expect("a lease");
        let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages".to_owned();
        assert_eq!(other.loans().expect("one"), [Loan { path, pages: 7 }]);
        drop(lease);
        assert_eq!(other.loans().expect("given back"), []);
    }
}
