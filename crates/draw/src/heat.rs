//! Shades of a heat map: how far a value is above the best, the same in every form. The number always stands beside.

use super::charts::number;
use super::words::joined;

/// Upper ends of all shades but the last, as multiples of the best value. The first is what noise alone can do.
const STEPS: [f64; 4] = [1.03, 1.15, 1.4, 1.8];

/// Red, green, blue on light and on dark ground, under black and under white text. One hue that gets darker (or, on dark
/// ground, lighter), so that it is read in the right order without seeing colours.
const SHADES: [([u8; 3], [u8; 3]); 5] = [
    ([0xe3, 0xf1, 0xe6], [0x14, 0x2e, 0x22]),
    ([0xff, 0xf3, 0xc9], [0x33, 0x2c, 0x0c]),
    ([0xff, 0xdf, 0x9a], [0x4d, 0x37, 0x08]),
    ([0xfb, 0xbd, 0x74], [0x6b, 0x3d, 0x0c]),
    ([0xf2, 0x97, 0x66], [0x8a, 0x3a, 0x16]),
];

/// One shade; a larger one is further from the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Heat(usize);

impl Heat {
    /// The shade of a value that is so many times the best one.
    pub fn of(times: f64) -> Self {
        Self(STEPS.iter().take_while(|&&step| times > step).count())
    }

    /// The shade of a share, of which nothing is the best.
    pub fn of_share(share: f64) -> Self {
        Self::of(1.0 + share)
    }

    /// All of them, the best first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHADES.len()).map(Self)
    }

    /// Place in the scale, for CSS variables (`--h0`, ...).
    pub fn index(self) -> usize {
        self.0
    }

    /// Its colour under dark text.
    pub fn light(self) -> [u8; 3] {
        SHADES[self.0].0
    }

    /// Its colour under light text.
    pub fn dark(self) -> [u8; 3] {
        SHADES[self.0].1
    }
}

/// What the shades of shares mean, in words.
pub fn share_legend(whole: &str) -> String {
    let steps = joined(STEPS.map(|step| number((step - 1.0) * 100.0)), ", ");
    format!("shade: up to {steps} % of the {whole}, or more")
}

/// What the shades mean, in words.
pub fn legend(best: &str) -> String {
    format!("shade: up to {} times {best}, or more", joined(STEPS, ", "))
}

#[cfg(test)]
mod tests {
    use super::{Heat, legend};

    #[test]
    fn shades_rise_with_the_distance_from_the_best() {
        let shades = [1.0, 1.03, 1.1, 1.3, 1.55, 1.8, 9.0].map(|times| Heat::of(times).index());
        assert_eq!(shades, [0, 0, 1, 2, 3, 3, 4]);
        assert_eq!(Heat::all().last(), Some(Heat::of(f64::INFINITY)));
        assert_eq!(
            legend("the fastest"),
            "shade: up to 1.03, 1.15, 1.4, 1.8 times the fastest, or more"
        );
    }

    /// Relative luminance after WCAG 2.
    fn luminance(color: [u8; 3]) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.039_28 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        };
        let [red, green, blue] = color.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn text_is_readable_on_every_shade_and_their_order_is_seen_without_colour() {
        let contrast = |a: f64, b: f64| (a.max(b) + 0.05) / (a.min(b) + 0.05);
        let (ink, pale) = (luminance([0x1d, 0x21, 0x26]), luminance([0xe6, 0xe9, 0xed]));
        for heat in Heat::all() {
            assert!(contrast(luminance(heat.light()), ink) > 7.0, "{heat:?}");
            assert!(contrast(luminance(heat.dark()), pale) > 4.5, "{heat:?}");
        }
        let lights: Vec<f64> = Heat::all().skip(1).map(|heat| luminance(heat.light())).collect();
        assert!(lights.windows(2).all(|pair| pair[0] > pair[1]), "{lights:?}");
        let darks: Vec<f64> = Heat::all().skip(1).map(|heat| luminance(heat.dark())).collect();
        assert!(darks.windows(2).all(|pair| pair[0] < pair[1]), "{darks:?}");
    }
}
