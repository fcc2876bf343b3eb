//! A chart before it is drawn: points along working sets or along time, whatever draws them.

use model::{Bytes, Estimate, PageKind};

use super::axis::{Axis, Scale};
use super::tone::Tone;

/// A chart of values, one look for each series.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A name for links and files, such as `latency-random-line-read`.
    pub id: String,
    /// What it shows, in one line.
    pub title: String,
    /// What the points lie along.
    pub along: Along,
    /// The values and their unit.
    pub y_label: String,
    pub scale: Scale,
    /// The lines or clouds of points.
    pub series: Vec<Series>,
    /// Places to point out.
    pub marks: Vec<Mark>,
}

impl Figure {
    /// A chart of the series that have points.
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        along: Along,
        (y_label, scale): (&str, Scale),
        series: impl IntoIterator<Item = Series>,
    ) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            along,
            y_label: y_label.to_owned(),
            scale,
            series: series.into_iter().filter(|series| !series.dots.is_empty()).collect(),
            marks: Vec::new(),
        }
    }
}

/// What the points of a chart lie along, from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Working sets in bytes; equal factors are equally far apart.
    WorkingSet,
    /// Turns in order of time, from 1; what one of them is called.
    Turns(&'static str),
    /// Rows, one for each series; the values are gains in percent and lie along the axis.
    Gain,
}

/// A place at which something happens to one series, such as a knee of its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub tone: Tone,
    pub at: u64,
    /// What happens there, in a few words.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub tone: Tone,
    /// The median and its 95 % CI of points that stand for themselves; points without it are joined by a line.
    pub level: Option<Estimate>,
    /// Are its values limits of values that are not known? Then its marks are hollow.
    pub is_limit: bool,
    /// The points, from left to right.
    pub dots: Vec<Dot>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Dot {
    /// Where it lies: a working set in bytes, or a turn.
    pub at: u64,
    pub value: f64,
    /// Lower end of its 95 % CI; the value itself without one.
    pub low: f64,
    /// Upper end of its 95 % CI; the value itself without one.
    pub high: f64,
    /// All there is to say about it, for hovering.
    pub tip: String,
}

impl Series {
    /// Points that are joined by a line.
    pub fn line(name: &str, tone: Tone, dots: Vec<Dot>) -> Self {
        Self {
            name: name.to_owned(),
            tone,
            level: None,
            is_limit: false,
            dots,
        }
    }

    /// The sign of its points in a terminal; `?` marks limits in tables, too.
    pub fn sign(&self) -> char {
        if self.is_limit { '?' } else { self.tone.mark }
    }

    /// The line of a page kind.
    pub fn of_kind(kind: PageKind, dots: Vec<Dot>) -> Self {
        Self::line(&kind.to_string(), Tone::of(kind), dots)
    }
}

impl Dot {
    /// A point with the ends of its interval.
    pub fn new(at: u64, [value, low, high]: [f64; 3], tip: String) -> Self {
        Self {
            at,
            value,
            low,
            high,
            tip,
        }
    }

    pub fn of(at: u64, estimate: Estimate, tip: String) -> Self {
        Self::new(at, [estimate.median, estimate.low, estimate.high], tip)
    }
}

impl Along {
    /// What stands below the axis.
    pub fn label(self) -> String {
        match self {
            Self::WorkingSet => "working set".to_owned(),
            Self::Turns(turn) => format!("{turn}, in order of time"),
            Self::Gain => "row".to_owned(),
        }
    }

    pub fn text(self, at: u64) -> String {
        match self {
            Self::WorkingSet => Bytes(at).to_string(),
            Self::Turns(_) | Self::Gain => at.to_string(),
        }
    }

    /// Are its series rows, which bear their names and decide the height?
    pub(crate) fn is_rows(self) -> bool {
        match self {
            Self::Gain => true,
            Self::WorkingSet | Self::Turns(_) => false,
        }
    }

    fn place(self, at: u64) -> f64 {
        match self {
            Self::WorkingSet => (at.max(1) as f64).log2(),
            Self::Turns(_) | Self::Gain => at as f64,
        }
    }
}

/// How many times beyond all values a logarithmic axis shows intervals.
const BEYOND: f64 = 2.0;

impl Figure {
    pub fn is_empty(&self) -> bool {
        self.dots().next().is_none()
    }

    pub fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.series.iter().flat_map(|series| &series.dots)
    }

    /// The lines and their marks; rows bear their names.
    pub(crate) fn legend(&self) -> &[Series] {
        if self.along.is_rows() { &[] } else { &self.series }
    }

    /// Points of one of its series that a line joins. It breaks where another series of the same tone has a point in between: a value
    /// that did not converge has its limit there, and is not to be read off a line above or below it.
    pub fn joined<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = &'a [Dot]> {
        let others = self
            .series
            .iter()
            .filter(|other| other.tone == series.tone && other.name != series.name);
        let between: Vec<u64> = others.flat_map(|other| other.dots.iter().map(|dot| dot.at)).collect();
        let is_whole = move |left: &Dot, right: &Dot| !between.iter().any(|&at| left.at < at && at < right.at);
        let dots = if series.level.is_none() { &series.dots[..] } else { &[] };
        dots.chunk_by(is_whole)
    }

    /// The axis from left to right with at most `max` labels.
    pub fn x_axis(&self, max: usize) -> Axis {
        let places = self.dots().map(|dot| dot.at);
        match self.along {
            Along::WorkingSet => Axis::sizes(places.map(Bytes), max),
            Along::Turns(_) | Along::Gain => Axis::turns(places.max().unwrap_or(1), max),
        }
    }

    /// The axis of values with at most `max` labels, wide enough for every interval; on a logarithmic one a disturbed point's
    /// interval ends with the axis, and does not flatten all others.
    pub fn y_axis(&self, max: usize) -> Axis {
        let levels = self.series.iter().filter_map(|series| series.level);
        let values = || self.dots().map(|dot| dot.value);
        let [least, most] = match self.scale {
            Scale::Log => [
                values().fold(f64::INFINITY, f64::min) / BEYOND,
                values().fold(0.0, f64::max) * BEYOND,
            ],
            Scale::Linear | Scale::Close => [f64::NEG_INFINITY, f64::INFINITY],
        };
        let values = self
            .dots()
            .flat_map(|dot| [dot.value, dot.low.max(least), dot.high.min(most)]);
        Axis::values(
            values.chain(levels.flat_map(|level| [level.low, level.high])),
            self.scale,
            max,
        )
    }

    /// Where a point lies on both axes.
    pub fn place(&self, at: u64, value: f64) -> (f64, f64) {
        (self.along.place(at), self.scale.place(value))
    }
}
