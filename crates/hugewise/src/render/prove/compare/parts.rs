//! Why wall, user and system time disagree, in sentences: the gain, the cost, and the run length from which on it pays.

use model::compare::{Difference, Even, Metric, Parts};

use super::amounts::value;
use draw::{joined, or, or_empty};

/// `thp: the program's own work took 0.26 s less (95 % CI 0.24 s to 0.28 s), the kernel's part 0.51 s more (..), ..`
pub(super) fn sentence(parts: &Parts) -> String {
    let named = [
        ("the program's own work (user time)", parts.user),
        ("the kernel's part (system time)", parts.system),
        ("the whole run (wall time)", parts.wall),
    ];
    let all = joined(named.map(|(name, part)| difference(name, part)), ", ");
    let pays = or_empty(parts.even.map(|even| pays(parts, even)));
    format!("{} against {}: {all}.{pays}", parts.arm, parts.against)
}

fn difference(name: &str, part: Difference) -> String {
    let Difference { seconds, low, high } = part;
    let [size, least, most] = [seconds, low, high].map(|seconds| time(seconds.abs()));
    match part.sign() {
        0 => {
            let (low, high) = (signed(low), signed(high));
            format!("{name} no difference detected (95 % CI {low} to {high})")
        }
        1 => format!("{name} took {size} more (95 % CI {least} to {most})"),
        _ => format!("{name} took {size} less (95 % CI {most} to {least})"),
    }
}

fn time(seconds: f64) -> String {
    value(Metric::Wall.name(), seconds)
}

fn signed(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "-" } else { "+" };
    format!("{sign}{}", time(seconds.abs()))
}

/// Where the two are even: user time goes on with the run, and what the kernel does at the first touch comes once.
fn pays(parts: &Parts, even: Even) -> String {
    let high = or(even.high.map(|high| format!("{high:.2}")), "unknown");
    let than = if parts.user.sign() < 0 { "longer" } else { "shorter" };
    format!(
        " If the kernel's part comes once, at the start (first touch and zeroing of pages), {} pays in CPU time for runs {than} than {:.2} \
         times the work of these runs (95 % CI {:.2} to {high}), that is {} of CPU time of {}.",
        parts.arm,
        even.times,
        even.low,
        time(even.cpu_seconds),
        parts.against
    )
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use model::compare::{Difference, Even, Parts};

    fn of(seconds: f64, half: f64) -> Difference {
        Difference {
            seconds,
            low: seconds - half,
            high: seconds + half,
        }
    }

    #[test]
    fn gain_cost_and_the_length_from_which_on_it_pays_stand_in_one_place() {
        let mut parts = Parts {
            arm: "thp".to_owned(),
            against: "base".to_owned(),
            wall: of(0.24, 0.02),
            user: of(-0.26, 0.01),
            system: of(0.51, 0.02),
            even: Some(Even {
                times: 1.96,
                low: 1.8,
                high: Some(2.2),
                cpu_seconds: 3.73,
            }),
        };
        let text = sentence(&parts);
        for part in [
            "user time) took 260 ms less (95 % CI 250 ms to 270 ms)",
            "system time) took 510 ms more (95 % CI 490 ms to 530 ms)",
            "thp pays in CPU time for runs longer than 1.96 times the work of these runs (95 % CI 1.80 to 2.20)",
            "3.730 s of CPU time of base",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        (parts.even, parts.system) = (None, of(0.001, 0.002));
        let text = sentence(&parts);
        assert!(
            text.contains("system time) no difference detected (95 % CI -1.00 ms to +3.00 ms)")
                && !text.contains("pays"),
            "{text}"
        );
    }
}
