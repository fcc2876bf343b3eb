//! What comparisons of a program can show here, in words and as a table.

use std::time::Duration;

use model::compare::{Compare, Forecast, Visible};

use super::events::seconds;
use crate::cli::args::MOST_RUNS;
use draw::{Sheet, columns};

/// The answer, in place of a verdict on a program compared with itself.
pub(super) fn headlines(compare: &Compare, forecast: &Forecast) -> Vec<String> {
    let seen = forecast.visible.first().map(|visible| {
        let ends = match forecast.most == Some(visible.blocks) {
            true => format!(
                " It ends after {} runs of each arm, whatever time it has, unless --runs asks for more.",
                visible.blocks
            ),
            false => String::new(),
        };
        format!(
            "A comparison of {} shows differences in {} from about {:.2} % on, as this machine is now.{ends}",
            time(visible),
            forecast.metric,
            visible.effect * 100.0
        )
    });
    let (asked, needed) = (compare.design.smallest_effect * 100.0, time(&forecast.smallest));
    let needed = format!(
        "To show {asked:.1} % takes about {needed} ({}).",
        options(forecast, None)
    );
    seen.into_iter().chain([needed]).collect()
}

/// What the smallest effect asked for takes, as options: time where that ends the comparison, and runs where their number does.
pub(super) fn options(forecast: &Forecast, budget: Option<Duration>) -> String {
    let Visible { seconds, blocks, .. } = forecast.smallest;
    let is_longer = budget.is_none_or(|budget| seconds > budget.as_secs_f64());
    let takes = format!("--budget {}", time(&forecast.smallest));
    match forecast.most.is_some_and(|most| blocks > most) {
        false => takes,
        true if blocks > MOST_RUNS => format!("{blocks} runs of each arm, more than --runs takes"),
        // Without --budget a number of runs takes the time that it takes.
        true if budget.is_some() && is_longer => format!("--runs {blocks} {takes}"),
        true => format!("--runs {blocks}"),
    }
}

/// What can be seen in which time.
pub(super) fn sheet(forecast: &Forecast) -> Sheet {
    let title = format!("What can be seen in {}", forecast.metric);
    let fields = columns![|visible| &Visible;
        "#time" => time(visible), "#blocks of runs" => visible.blocks,
        "#difference from" => format!("{:.2} %", visible.effect * 100.0),
    ];
    let all = forecast.visible.iter().chain([&forecast.smallest]);
    let mut sheet = Sheet::of(&title, fields, all);
    sheet.note("found by four of five comparisons, if the machine stays as noisy as it was; a block is three runs");
    sheet
}

fn time(visible: &Visible) -> String {
    seconds(visible.seconds)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::compare::{Forecast, Visible};

    use super::options;

    #[test]
    fn the_option_is_the_one_that_ends_the_comparison() {
        let of = |blocks: u32, budget: Option<u64>| {
            let forecast = Forecast {
                metric: "wall".to_owned(),
                block_seconds: 1.0,
                most: Some(30),
                visible: Vec::new(),
                smallest: Visible {
                    seconds: f64::from(blocks),
                    blocks,
                    effect: 0.01,
                },
            };
            options(&forecast, budget.map(Duration::from_secs))
        };
        assert_eq!(of(20, None), "--budget 20s");
        assert_eq!(of(90, None), "--runs 90");
        assert_eq!(of(90, Some(600)), "--runs 90");
        assert_eq!(of(20_000, None), "20000 runs of each arm, more than --runs takes");
        assert_eq!(of(90, Some(60)), "--runs 90 --budget 90s");
    }
}
