//! Which colour and mark a page kind has: the same in every chart, distinguishable without colour too.

use model::{Bytes, PageKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tone {
    /// Place in the palette, for CSS variables (`--k0`, ...).
    pub index: usize,
    /// Red, green, blue on light ground. Okabe and Ito's palette, darkened where thin lines need it.
    pub light: [u8; 3],
    /// Red, green, blue on dark ground.
    pub dark: [u8; 3],
    pub mark: char,
}

const fn tone(index: usize, light: [u8; 3], dark: [u8; 3], mark: char) -> Tone {
    Tone {
        index,
        light,
        dark,
        mark,
    }
}

pub const TONES: [Tone; 8] = [
    tone(0, [0xc4, 0x4e, 0x00], [0xff, 0x9a, 0x52], 'o'),
    tone(1, [0x00, 0x66, 0xa8], [0x5c, 0xb8, 0xf5], '+'),
    tone(2, [0x00, 0x80, 0x5f], [0x35, 0xcf, 0xa0], 'x'),
    tone(3, [0xa8, 0x4a, 0x86], [0xea, 0x9a, 0xcb], '*'),
    tone(4, [0x9a, 0x73, 0x00], [0xec, 0xc0, 0x48], '#'),
    tone(5, [0x2b, 0x82, 0x92], [0x74, 0xd3, 0xe2], '%'),
    tone(6, [0x6b, 0x58, 0xb8], [0xb0, 0xa0, 0xf5], '@'),
    tone(7, [0x6e, 0x6e, 0x62], [0xb4, 0xb4, 0xa6], '&'),
];

const OCTAGON: [(f64, f64); 8] = [
    (-2.0, -4.0),
    (2.0, -4.0),
    (4.0, -2.0),
    (4.0, 2.0),
    (2.0, 4.0),
    (-2.0, 4.0),
    (-4.0, 2.0),
    (-4.0, -2.0),
];

impl Tone {
    /// The look of a page kind.
    pub fn of(kind: PageKind) -> Self {
        let index = match kind {
            PageKind::Base => 0,
            PageKind::Thp => 1,
            PageKind::HUGETLB_2M => 2,
            PageKind::HUGETLB_1G => 3,
            PageKind::Mthp(Bytes(size)) => 4 + (size.trailing_zeros() as usize) % 3,
            PageKind::Hugetlb(_) => 7,
        };
        TONES[index]
    }

    /// A look for each of several things: that of its page kind, unless it has none or another before it has that look.
    pub fn distinct(kinds: impl IntoIterator<Item = Option<PageKind>>) -> Vec<Self> {
        let mut taken: Vec<Self> = Vec::new();
        let mut own: Vec<Option<Self>> = Vec::new();
        for kind in kinds {
            let tone = kind.map(Self::of).filter(|tone| !taken.contains(tone));
            taken.extend(tone);
            own.push(tone);
        }
        let mut free = TONES
            .iter()
            .filter(|tone| !taken.contains(tone))
            .chain(TONES.iter().cycle());
        let fill = |tone: Option<Self>| tone.or_else(|| free.next().copied()).unwrap_or(TONES[0]);
        own.into_iter().map(fill).collect()
    }

    /// The corners of its mark in a picture, in pixels around the point: looks differ in shape, not in colour alone.
    pub fn corners(&self) -> &'static [(f64, f64)] {
        match self.index {
            0 => &OCTAGON,
            1 => &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)],
            2 => &[(-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)],
            3 => &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)],
            4 => &[(0.0, 5.0), (5.0, -4.0), (-5.0, -4.0)],
            5 => &[(-5.0, 0.0), (4.0, -5.0), (4.0, 5.0)],
            6 => &[(5.0, 0.0), (-4.0, -5.0), (-4.0, 5.0)],
            _ => &[(-5.0, -2.0), (5.0, -2.0), (5.0, 2.0), (-5.0, 2.0)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TONES, Tone};
    use model::PageKind;

    #[test]
    fn things_of_one_kind_or_none_still_differ() {
        let kinds = [
            None,
            Some(PageKind::Base),
            Some(PageKind::Base),
            Some(PageKind::Thp),
            None,
        ];
        let looks: Vec<usize> = Tone::distinct(kinds).iter().map(|tone| tone.index).collect();
        assert_eq!(looks, [2, 0, 3, 1, 4]);
        assert_eq!(Tone::distinct([None; 20]).len(), 20);
    }

    #[test]
    fn the_usual_kinds_never_share_a_look() {
        let kinds = [
            PageKind::Base,
            PageKind::Thp,
            PageKind::HUGETLB_2M,
            PageKind::HUGETLB_1G,
        ];
        for (place, &kind) in kinds.iter().enumerate() {
            assert_eq!(Tone::of(kind).index, place);
        }
        for (place, tone) in TONES.iter().enumerate() {
            assert_eq!(tone.index, place);
            let same = TONES.iter().filter(|other| other.corners() == tone.corners());
            assert_eq!(same.count(), 1, "the shape of {place}");
        }
    }
}
