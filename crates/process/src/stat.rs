//! /proc/PID/stat: faults so far, and when the process began. Pure.

/// What is taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Faults without input or output.
    pub faults: u64,
    /// Faults that waited for a disk.
    pub major_faults: u64,
    /// Clock ticks from boot to the process's begin: with its id, its name for as long as the machine runs.
    pub started: u64,
}

/// Reads the line; `None` if it is not one. The name, in parentheses, may hold anything.
pub fn parse(line: &str) -> Option<Stat> {
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    // Fields 10, 12 and 22 of proc_pid_stat(5); the first one here is its third.
    let number = |field: usize| fields.get(field - 3)?.parse().ok();
    Some(Stat {
        faults: number(10)?,
        major_faults: number(12)?,
        started: number(22)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Stat, parse};

    #[test]
    fn a_name_with_parentheses_and_blanks_is_no_obstacle() {
        let line = "71 (a) b (c) S 1 71 71 0 -1 4194560 1234 0 56 0 10 20 0 0 20 0 1 0 987654 4096 100";
        let wanted = Stat {
            faults: 1234,
            major_faults: 56,
            started: 987_654,
        };
        assert_eq!(parse(line), Some(wanted));
        assert_eq!(parse("71 (cut) S 1"), None);
    }
}
