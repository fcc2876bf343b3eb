//! A chart before it is drawn: values by page kind over working sets, whatever draws them.

use model::{Bytes, PageKind};

use super::axis::{Axis, Scale};

/// A chart of values over working sets, one line for each page kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A name for links and files, such as `latency-random-line-read`.
    pub id: String,
    /// What it shows, in one line.
    pub title: String,
    /// The values and their unit.
    pub y_label: String,
    /// The scale of the values.
    pub scale: Scale,
    /// The lines.
    pub series: Vec<Series>,
    /// Working sets to point out.
    pub marks: Vec<Mark>,
}

/// A working set at which something happens to one page kind, such as a knee of its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The page kind.
    pub kind: PageKind,
    /// Where.
    pub bytes: Bytes,
    /// What happens there, in a few words.
    pub text: String,
}

/// One page kind's line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The page kind.
    pub kind: PageKind,
    /// Its points, by ascending size.
    pub dots: Vec<Dot>,
}

/// One point with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Dot {
    /// Working set.
    pub bytes: Bytes,
    /// The value.
    pub value: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
    /// All there is to say about it, for hovering.
    pub tip: String,
}

impl Figure {
    /// Are there points to draw?
    pub fn is_empty(&self) -> bool {
        self.dots().next().is_none()
    }

    /// All points of all lines.
    pub fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.series.iter().flat_map(|series| &series.dots)
    }

    /// The axis of working sets with at most `max` labels.
    pub fn x_axis(&self, max: usize) -> Axis {
        Axis::sizes(self.dots().map(|dot| dot.bytes), max)
    }

    /// The axis of values, wide enough for every interval, with at most `max` labels.
    pub fn y_axis(&self, max: usize) -> Axis {
        Axis::values(
            self.dots().flat_map(|dot| [dot.value, dot.low, dot.high]),
            self.scale,
            max,
        )
    }

    /// Where a point lies on both axes.
    pub fn place(&self, bytes: Bytes, value: f64) -> (f64, f64) {
        ((bytes.0.max(1) as f64).log2(), self.scale.place(value))
    }
}
