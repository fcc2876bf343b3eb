//! Moves over the time of a recording, as a chart.

use model::placement::Recording;

use draw::{Along, Dot, Figure, Scale, Series, TONES, number};

/// Moves in each second, slice by slice; those by `/proc` are a lower bound, and the title says so. A recording of one slice has no course.
pub(super) fn chart(recording: &Recording) -> Option<Figure> {
    let slices = &recording.slices;
    let is_least = !recording.has_all_moves();
    let last = slices.migrations.len().checked_sub(1).filter(|&last| last > 0)?;
    let dot = |(at, &count): (usize, &u64)| {
        let start = at as f64 * slices.seconds;
        // The last slice ends with the recording.
        let end = recording.seconds.min(start + slices.seconds);
        let length = if at == last { end - start } else { slices.seconds };
        let rate = count as f64 / length.max(slices.seconds / 10.0);
        let tip = format!("{} to {} s: {count} moves", number(start), number(end));
        Dot::new(at as u64 + 1, [rate; 3], tip)
    };
    let dots = slices.migrations.iter().enumerate().map(dot).collect();
    let series = Series::line("moves a second", TONES[0], dots);
    let title = format!(
        "Moves from one CPU to another in slices of {} s{}",
        number(slices.seconds),
        if is_least { ", at least" } else { "" }
    );
    let y = ("moves a second", Scale::Linear);
    Some(Figure::new("moves", title, Along::Turns("slice"), y, [series]))
}

#[cfg(test)]
mod tests {
    use model::placement::NoRecords;

    use super::super::tests::recording;
    use super::chart;

    #[test]
    fn each_slice_has_its_rate_and_the_last_that_of_its_own_length() {
        let mut recording = recording(None, None);
        recording.seconds = 2.5;
        recording.slices.seconds = 1.0;
        recording.slices.migrations = vec![4, 0, 6];
        let figure = chart(&recording).expect("a chart");
        let rates: Vec<f64> = figure.series[0].dots.iter().map(|dot| dot.value).collect();
        assert_eq!(rates, [4.0, 0.0, 12.0]);
        assert!(!figure.title.contains("at least"));
        recording.slices.migrations.truncate(1);
        assert_eq!(chart(&recording), None);
    }

    #[test]
    fn moves_by_procfs_are_called_a_lower_bound() {
        let mut recording = recording(Some(NoRecords::NotWanted), None);
        recording.slices.seconds = 1.0;
        recording.slices.migrations = vec![1, 2];
        assert!(chart(&recording).is_some_and(|figure| figure.title.ends_with("at least")));
    }
}
