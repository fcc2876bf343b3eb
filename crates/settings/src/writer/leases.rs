//! Leases at the writer: settings are raised, one after the other, until there is room.

use model::{Bytes, Unread};

use super::{Inner, Writer};
use crate::error::{LeaseError, WriterError};
use crate::gave_back::GaveBack;
use crate::journal::Journal;
use crate::lease::{Held, PoolLease};
use crate::pool;
use crate::pool_setting::PoolSetting;

impl Writer {
    /// Makes room for `pages` hugetlb pages of size `page`, until the lease ends.
    ///
    /// Free pages of the pool without a reservation count first. For the rest the kernel is allowed to add surplus pages
    /// (`nr_overcommit_hugepages`): they come when they are mapped, vanish with the mapping, and no other user's pool is touched.
    /// Where the kernel refuses that (EINVAL, as for 1 GiB pages), the pools themselves are grown (`nr_hugepages`, node by
    /// node), and what was really obtained is counted.
    ///
    /// Two runs at the same moment may both count on the same free pages; then the later mapping fails, as it would
    /// against any other program.
    ///
    /// # Errors
    /// No such pool, no permission, no memory to spare, or a failure on the way; then nothing stays changed (or, if even
    /// giving back fails, the journal stays for the next run).
    pub fn lease_pool(&self, page: Bytes, pages: u64) -> Result<PoolLease, LeaseError> {
        let inner = &self.inner;
        let free = pool::unclaimed(&*inner.sink, page)?.min(pages);
        let mut lease = PoolLease {
            writer: self.clone(),
            page,
            asked: pages,
            obtained: free,
            held: Vec::new(),
        };
        if free < pages {
            pool::check_memory(&*inner.sink, page, pages - free)?;
            inner.state.create()?;
            let _lock = inner.state.lock()?;
            inner.settle_ended()?;
            // On an error the lock goes before the lease, whose Drop gives back what it got.
            inner.with_own(|own| inner.fill(own, &mut lease))?;
        }
        Ok(lease)
    }

    /// Takes shares out of their settings.
    pub(crate) fn give_back(&self, held: &mut Vec<Held>) -> Result<Vec<GaveBack>, WriterError> {
        self.undo(held, |own, held| {
            let outcome = self.inner.take_out(own, held.setting, held.pages, held.base)?;
            Ok((held.setting.to_string(), outcome))
        })
    }
}

// All of this is called with the lock held.
impl Inner {
    /// Adds what is missing to a lease, one setting after the other.
    fn fill(&self, own: &mut Journal, lease: &mut PoolLease) -> Result<(), LeaseError> {
        let (sink, page) = (&*self.sink, lease.page);
        let free = pool::unclaimed(sink, page)?.min(lease.asked);
        let missing = lease.asked - free;
        lease.obtained = free;
        let setting = PoolSetting::overcommit(page);
        let raised = self.raise(own, lease, setting, |now| {
            let (_, surplus) = setting.total_and_surplus(sink)?;
            // Pages in use that someone took out of the pool count as surplus, possibly beyond the limit; the limit must pass them.
            Ok(now.max(surplus).saturating_add(missing))
        });
        match raised {
            Ok(()) => lease.obtained = lease.asked,
            Err(error) if error.is_refused() => self.grow(own, lease)?,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Grows the pools themselves until enough pages are free, or no node has more to give.
    fn grow(&self, own: &mut Journal, lease: &mut PoolLease) -> Result<(), LeaseError> {
        let (sink, page) = (&*self.sink, lease.page);
        for setting in PoolSetting::pages(sink, page) {
            let missing = lease.asked.saturating_sub(pool::unclaimed(sink, page)?);
            if missing == 0 {
                break;
            }
            self.raise(own, lease, setting, |_| {
                // The kernel turns surplus pages into persistent ones before it allocates any, so those are passed first; they become
                // surplus again when the lease ends.
                let (total, _) = setting.total_and_surplus(sink)?;
                Ok(total.saturating_add(missing))
            })?;
        }
        lease.obtained = pool::unclaimed(sink, page)?.min(lease.asked);
        Ok(())
    }

    /// Raises one setting and enters what came of it in the lease.
    fn raise(
        &self,
        own: &mut Journal,
        lease: &mut PoolLease,
        setting: PoolSetting,
        aim: impl Fn(u64) -> Result<u64, Unread>,
    ) -> Result<(), WriterError> {
        // The value without hugewise: how we know it again if someone puts it back before we do.
        let base = setting.read(&*self.sink)?.saturating_sub(self.on_loan(setting)?.pages);
        let (from, to) = self.change(own, setting, base, aim)?;
        if to > from {
            let pages = to - from;
            lease.held.push(Held {
                setting,
                pages,
                base,
                from,
            });
        }
        Ok(())
    }
}
