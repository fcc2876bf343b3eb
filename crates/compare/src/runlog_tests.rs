//! Lines of the log of runs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::Backing;
use model::compare::{Ran, Run};

use super::{Finished, Parsed};

#[test]
fn a_run_is_read_as_it_was_written_with_the_cpus_that_it_ran_on() {
    let ran = Ran {
        cpu_s: BTreeMap::from([(0, 0.25), (17, 1.5)]),
        ..Ran::default()
    };
    let run = Run {
        ran: Some(ran),
        ..Run::bare([("wall".to_owned(), 1.0)], Ok(Backing::default()))
    };
    let line = Finished {
        at: 0.0,
        arm: "base".into(),
        way: None,
        run: Cow::Borrowed(&run),
    };
    let mut read = Parsed::default();
    let text = serde_json::to_string(&line).expect("JSON");
    read.add(&text).expect("a line");
    assert_eq!(*read.done[0].run, run);
}
