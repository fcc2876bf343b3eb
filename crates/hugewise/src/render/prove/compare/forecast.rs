//! What comparisons of a program can show here, in words and as a table.

use std::time::Duration;

use model::compare::{Compare, Forecast, Visible};

use super::events::minutes;
use draw::{Sheet, columns};

/// The answer, in place of a verdict on a program compared with itself.
pub(super) fn headlines(compare: &Compare, forecast: &Forecast) -> Vec<String> {
    let seen = forecast.visible.first().map(|visible| {
        format!(
            "A comparison of {} shows differences in {} from about {:.2} % on, as this machine is now.",
            time(visible),
            forecast.metric,
            visible.effect * 100.0
        )
    });
    let (asked, needed) = (compare.design.smallest_effect * 100.0, time(&forecast.smallest));
    let needed = format!("To show {asked:.1} % takes about {needed} (--budget {needed}).");
    seen.into_iter().chain([needed]).collect()
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
    minutes(Duration::from_secs_f64(visible.seconds.min(1e9)))
}
