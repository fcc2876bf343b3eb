//! Medians, intervals that hold when visits differ, and when to stop sampling. Pure.
//!
//! | what was measured | what to ask |
//! |---|---|
//! | visits to a point, each with samples | [`of_visits`], [`of_medians`] |
//! | values that are independent of each other | [`estimate`] |
//! | one thing over another, visited in the same rounds | [`ratio`] |
//! | values in clusters that share what they found | [`of_clusters`] |
//! | one thing in two runs that share nothing | [`apart`], [`of_intervals`], [`together`] |
//! | is it enough? | [`is_enough`] |
//! | do visits agree? | [`disagreement`] |
//! | in which order are points visited? | [`rounds::order`] |

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod apart;
mod clusters;
mod interval;
mod quantiles;
mod ratio;
pub mod rounds;
mod stop;
mod visits;

use model::Estimate;

pub use apart::{Apart, apart, of_intervals, together};
pub use clusters::of_clusters;
pub use interval::{CONFIDENCE, ranks};
pub use quantiles::{median, quantile, sorted};
pub use ratio::{confidence, ratio};
pub use stop::{LEAST_VISITS, is_enough};
pub use visits::{disagreement, medians, of_medians, of_visits};

/// The median of independent values with its 95 % interval. For samples of visits ask [`of_visits`]: they are not independent.
/// From 6 values on no distribution is assumed; of 2 to 5 values their logarithms are taken to be normal (the values
/// themselves, where one is not above zero). One value is its own estimate, with `samples` 1 and without a spread: its
/// [`Estimate::relative_error`] is infinite. `None` of nothing.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let one = |&value: &f64| Estimate {
        median: value,
        low: value,
        high: value,
        samples: 1,
    };
    visits::at(values, CONFIDENCE).or_else(|| values.first().map(one))
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
