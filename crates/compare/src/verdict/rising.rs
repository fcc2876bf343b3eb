//! Whether numbers go up while a program works, which distinguishes a counter from a result that stands still. Pure.

/// Readings of counters, until each has gone up so many times in a row.
#[derive(Debug)]
pub(crate) struct Rising {
    times: u32,
    risen: u32,
    last: Option<Vec<f64>>,
}

impl Rising {
    pub(crate) fn new(times: u32) -> Self {
        Self {
            times,
            risen: 0,
            last: None,
        }
    }

    /// Takes a reading; has every number gone up often enough by now? What went back was left there by an earlier program,
    /// or is no counter: then it begins anew.
    pub(crate) fn is_enough_with(&mut self, now: &[f64]) -> bool {
        let Some(last) = &self.last else {
            self.last = Some(now.to_vec());
            return false;
        };
        let pairs = || last.iter().zip(now);
        let went_back = pairs().any(|(last, now)| now < last);
        if went_back || pairs().all(|(last, now)| now > last) {
            self.risen = if went_back { 0 } else { self.risen + 1 };
            self.last = Some(now.to_vec());
        }
        self.risen >= self.times
    }
}

#[cfg(test)]
mod tests {
    use super::Rising;

    /// After how many readings it is enough.
    fn enough(times: u32, readings: &[[f64; 2]]) -> Option<usize> {
        let mut rising = Rising::new(times);
        readings.iter().position(|now| rising.is_enough_with(now))
    }

    #[test]
    fn every_number_has_to_go_up_and_none_may_go_back() {
        let slow = [[1.0, 5.0], [2.0, 5.0], [3.0, 6.0], [4.0, 7.0]];
        assert_eq!((enough(1, &slow), enough(2, &slow)), (Some(2), Some(3)));
        let left_by_another = [[900.0, 900.0], [1.0, 1.0], [2.0, 2.0]];
        assert_eq!(
            (enough(1, &left_by_another), enough(2, &left_by_another)),
            (Some(2), None)
        );
        let up_and_down = [[5.0, 5.0], [6.0, 6.0], [5.5, 5.5], [6.0, 6.0], [4.0, 4.0]];
        assert_eq!(enough(2, &up_and_down), None);
        assert_eq!(enough(1, &[[7.0, 7.0]; 9]), None);
    }
}
