//! Logs of a JVM's garbage collector (`-Xlog:gc*`, unified logging since JDK 9): `[0.123s][info][gc,cpu] GC(3) User=0.01s ...`. Pure.

use std::collections::BTreeSet;

use model::gc::GcLog;

use host::parse::amount;

/// More of them say nothing new.
const MOST_WARNINGS: usize = 5;

/// Reads a log, whatever its decorations are, as long as the tags are among them.
pub fn parse(text: &str) -> GcLog {
    let mut log = GcLog::default();
    let mut numbers = BTreeSet::new();
    for line in text.lines().filter_map(Line::of) {
        add(&mut log, &line);
        numbers.extend(line.number.filter(|_| line.tags == "gc"));
    }
    log.collections = numbers.len() as u64;
    log
}

/// A line without its decorations.
struct Line<'a> {
    /// Such as `gc,cpu`.
    tags: &'a str,
    is_warning: bool,
    /// Of the collection that it is about.
    number: Option<u64>,
    message: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (mut tags, mut is_warning, mut rest) = (None, false, line);
        while let Some((decoration, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let decoration = decoration.trim();
            is_warning |= decoration == "warning";
            let first = decoration.split(',').next();
            if matches!(first, Some("gc" | "pagesize")) {
                tags = Some(decoration);
            }
            rest = after;
        }
        let message = rest.trim();
        let (number, message) = numbered(message).map_or((None, message), |(number, rest)| (Some(number), rest));
        let tags = tags.or(is_warning.then_some(""))?;
        Some(Self {
            tags,
            is_warning,
            number,
            message,
        })
    }
}

/// `GC(12) Pause ...`.
fn numbered(message: &str) -> Option<(u64, &str)> {
    let (number, rest) = message.strip_prefix("GC(")?.split_once(')')?;
    Some((number.parse().ok()?, rest.trim()))
}

/// A time at the end of a line: `... 12.345ms`.
fn milliseconds(message: &str) -> Option<f64> {
    amount(message.rsplit(' ').next()?.strip_suffix("ms")?)
}

/// `User=0.01s`.
fn cpu_seconds(word: &str) -> Option<f64> {
    let (name, time) = word.split_once('=')?;
    amount(time.strip_suffix('s').filter(|_| ["User", "Sys"].contains(&name))?)
}

fn add(log: &mut GcLog, line: &Line<'_>) {
    let message = line.message;
    if line.is_warning && log.warnings.len() < MOST_WARNINGS {
        log.warnings.push(message.to_owned());
    }
    match line.tags {
        // ZGC's pauses are phases of its collections.
        "gc" | "gc,phases" if line.number.is_some() && message.starts_with("Pause") => {
            if let Some(time) = milliseconds(message) {
                log.pauses += 1;
                log.pause_seconds += time / 1e3;
            }
        }
        "gc,cpu" => {
            let times: Vec<f64> = message.split(' ').filter_map(cpu_seconds).collect();
            if !times.is_empty() {
                *log.cpu_seconds.get_or_insert(0.0) += times.iter().sum::<f64>();
            }
        }
        _ => {}
    }
    if let Some(collector) = message.strip_prefix("Using ").filter(|_| line.tags == "gc") {
        log.collector = Some(collector.to_owned());
    }
    if let Some(support) = message.strip_prefix("Large Page Support: ") {
        log.large_pages = Some(support.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    /// JDK 17, ParallelGC.
    const PARALLEL: &str = "[0.004s][info][gc] Using Parallel\n\
        [0.005s][info][gc,init] Large Page Support: Enabled (Explicit)\n\
        [1.100s][info][gc,start    ] GC(0) Pause Young (Allocation Failure)\n\
        [1.150s][info][gc          ] GC(0) Pause Young (Allocation Failure) 256M->170M(981M) 50.000ms\n\
        [1.150s][info][gc,cpu      ] GC(0) User=0.07s Sys=0.02s Real=0.05s\n\
        [2.000s][info][gc,phases   ] GC(1) Marking Phase 20.1ms\n\
        [2.100s][info][gc          ] GC(1) Pause Full (Ergonomics) 170M->160M(981M) 100.500ms\n\
        [2.100s][info][gc,cpu      ] GC(1) User=0.15s Sys=0.00s Real=0.10s\n";

    #[test]
    fn pauses_and_their_cpu_time_are_added_up() {
        let log = parse(PARALLEL);
        assert_eq!((log.collections, log.pauses), (2, 2));
        assert!((log.pause_seconds - 0.1505).abs() < 1e-9 && (log.cpu_seconds.expect("times") - 0.24).abs() < 1e-9);
        assert_eq!(log.collector.as_deref(), Some("Parallel"));
        assert_eq!(log.large_pages.as_deref(), Some("Enabled (Explicit)"));
        assert!(log.warnings.is_empty());
    }

    #[test]
    fn a_concurrent_collector_pauses_in_phases_and_has_no_cpu_times() {
        let log = parse(
            "[0.1s][info][gc,init] Large Page Support: Disabled\n\
             [0.2s][info][gc,phases] GC(0) Pause Mark Start 0.012ms\n[0.3s][info][gc,phases] GC(0) Concurrent Mark 30.0ms\n\
             [0.3s][info][gc,phases] GC(0) Pause Mark End 0.010ms\n[0.4s][info][gc,phases] GC(0) Pause Relocate Start 0.008ms\n\
             [0.5s][info][gc] GC(0) Garbage Collection (Warmup) 104M(10%)->30M(3%)\n",
        );
        assert_eq!((log.collections, log.pauses, log.cpu_seconds), (1, 3, None));
        assert!((log.pause_seconds - 30e-6).abs() < 1e-12);
    }

    #[test]
    fn warnings_are_kept_and_other_texts_say_nothing() {
        let log = parse(
            "[0.1s][warning][pagesize] UseLargePages disabled, no large pages configured and available on the system.\nplain text\n\
             [x\n[1s][info][safepoint] Pause 5ms\n[1s][info][gc] GC(x) Pause Young 5ms\n[1s][info][gc] GC(1) Pause Young infms\n",
        );
        assert_eq!((log.pauses, log.warnings.len(), log.collections), (0, 1, 1));
        assert!(log.warnings[0].starts_with("UseLargePages disabled"));
    }
}
