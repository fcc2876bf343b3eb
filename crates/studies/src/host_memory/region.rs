//! One 2 MiB region of a machine's memory: what backs it, and where its base pages are.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// Nothing: it was not touched, or it is ballooned.
    None,
    /// Base pages.
    Small,
    /// A huge page.
    Large,
    /// A part of a 1 GiB page.
    Giant,
}

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Zero,
    /// Also in other machines with the same content.
    Common,
    Unique,
    /// Written all the time.
    Volatile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: it was not touched.
    Absent,
    Own,
    Shared,
    Ballooned,
    Compressed,
    Swapped,
}

pub(super) const CLASSES: [Class; 4] = [Class::Zero, Class::Common, Class::Unique, Class::Volatile];
pub(super) const PLACES: [Place; 6] = [
    Place::Absent,
    Place::Own,
    Place::Shared,
    Place::Ballooned,
    Place::Compressed,
    Place::Swapped,
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) backing: Backing,
    pub(super) is_hot: bool,
    /// Has ksmd seen its content once?
    pub(super) is_seen: bool,
    /// Is it in its machine's queue of faults?
    pub(super) faults: bool,
    pages: [[u16; PLACES.len()]; CLASSES.len()],
}

impl Region {
    /// Untouched, with so many pages of each class.
    pub(super) fn new(content: [u16; CLASSES.len()], is_hot: bool) -> Self {
        Self {
            backing: Backing::None,
            is_hot,
            is_seen: false,
            faults: false,
            pages: content.map(|count| [count, 0, 0, 0, 0, 0]),
        }
    }

    #[inline]
    pub(super) fn count(&self, class: Class, place: Place) -> u32 {
        u32::from(self.pages[class as usize][place as usize])
    }

    /// Pages of all classes.
    #[inline]
    pub(super) fn at(&self, place: Place) -> u32 {
        self.pages.iter().map(|places| u32::from(places[place as usize])).sum()
    }

    /// So many pages of a class go from one place to another.
    #[inline]
    pub(super) fn move_pages(&mut self, class: Class, from: Place, to: Place, count: u32) {
        let places = &mut self.pages[class as usize];
        debug_assert!(u32::from(places[from as usize]) >= count);
        places[from as usize] -= count as u16;
        places[to as usize] += count as u16;
    }

    /// All pages of a place go to another.
    pub(super) fn move_all(&mut self, from: Place, to: Place) {
        for class in CLASSES {
            self.move_pages(class, from, to, self.count(class, from));
        }
    }

    /// Shared pages of a class are written: they are unique now, and in memory of their own.
    pub(super) fn rewrite(&mut self, class: Class, count: u32) {
        self.move_pages(class, Place::Shared, Place::Own, count);
        self.pages[class as usize][Place::Own as usize] -= count as u16;
        self.pages[Class::Unique as usize][Place::Own as usize] += count as u16;
    }

    #[cfg(test)]
    pub(super) fn total(&self) -> u32 {
        PLACES.iter().map(|place| self.at(*place)).sum()
    }
}
