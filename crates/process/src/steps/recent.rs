//! Which lines, or pages, a program accessed lately: those that a first-level cache, or TLB, would hold.

const WAYS: usize = 8;

/// Sets of numbers, the last one first.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// Address bits within a line or page.
    shift: u32,
    sets: Vec<[u64; WAYS]>,
}

impl Recent {
    /// 512 lines.
    pub(super) fn lines() -> Self {
        Self::of(6, 64)
    }

    /// 64 base pages.
    pub(super) fn pages() -> Self {
        Self::of(12, 8)
    }

    fn of(shift: u32, sets: usize) -> Self {
        Self {
            shift,
            sets: vec![[u64::MAX; WAYS]; sets],
        }
    }

    /// Was it not accessed lately? Now it was.
    pub(super) fn is_new(&mut self, address: u64) -> bool {
        let number = address >> self.shift;
        let place = number as usize % self.sets.len();
        let set = &mut self.sets[place];
        let found = set.iter().position(|&other| other == number);
        set[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        set[0] = number;
        found.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn what_was_accessed_lately_is_not_new() {
        let mut pages = Recent::pages();
        let new = |pages: &mut Recent, count: u64| (0..count).filter(|page| pages.is_new(page << 12)).count();
        assert_eq!([new(&mut pages, 64), new(&mut pages, 64)], [64, 0]);
        assert_eq!([new(&mut pages, 128), new(&mut pages, 128)], [64, 128]);
        assert!(!pages.is_new((127 << 12) + 8));
    }
}
