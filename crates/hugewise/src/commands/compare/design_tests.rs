//! Which design is taken for which arms and metrics.

use clap::Parser;
use compare::design::{enough, has_ended, in_effect, is_unfit};
use compare::inplace::{Pair, Whose};
use compare::{Choice, Error, Outcome};
use host::Snapshot;
use model::Reading;
use model::compare::{Because, Ended, Method};

use super::{asked, request};
use crate::cli::args;

/// `compare` alone.
#[derive(Parser)]
struct Words {
    #[command(flatten)]
    compare: args::Compare,
}

fn chosen(options: &str, kept: Option<Method>) -> anyhow::Result<Choice> {
    let words = ["compare"]
        .into_iter()
        .chain(options.split(' ').filter(|word| !word.is_empty()));
    let args = Words::try_parse_from(words.chain(["--", "program"]))?.compare;
    let ui = crate::ui::Ui::open(&crate::cli::args::Global::default(), crate::files::Access::Usual)?;
    let snapshot = Snapshot::take(&host::Source::live());
    let (request, _) = request(&args, &[], 1, &snapshot, &ui)?;
    let in_place = Pair::new(&request, Whose::Own, &snapshot);
    Ok(Choice::of(&request, &in_place, kept)?)
}

#[track_caller]
fn assert_chosen(options: &str, method: Method, reason: &Because) {
    let choice = chosen(options, None).expect("a design");
    assert_eq!((choice.method, &choice.reason), (method, reason), "{options}");
}

fn at_end(metric: &str) -> Because {
    let metric = metric.to_owned();
    Because::AtEnd { metric }
}

/// Has this machine transparent huge pages at all?
fn has_large_pages() -> bool {
    std::path::Path::new("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").exists()
}

#[test]
fn one_process_is_both_arms_where_all_that_is_judged_goes_up_while_it_works() {
    if !has_large_pages() {
        return;
    }
    for options in [
        "--metric ops=([0-9]+)",
        "--metric ops=([0-9]+),from=/tmp/x --arms thp,base",
        "--metric ops=([0-9]+),from=/x --metric puts=([0-9]+)",
    ] {
        assert_chosen(options, Method::Flip, &Because::Counters);
    }
    for options in ["--load x --ready y", "--load x --ready y --metric us=([0-9]+),lower"] {
        assert_chosen(options, Method::Flip, &Because::Loads);
    }
}

#[test]
fn arms_that_are_different_programs_take_slices_or_runs() {
    let metric = "--metric ops=([0-9]+),from=/tmp/";
    let counters = &Because::CountersOfArms;
    assert_chosen(&format!("{metric}{{arm}}"), Method::Slices, counters);
    for options in [
        "--arms base,system",
        "--arms base,thp,text",
        "--place pack",
        "--technique tunables",
    ] {
        assert_chosen(&format!("{metric}x {options}"), Method::Runs, &at_end("ops"));
        assert_chosen(&format!("{metric}{{arm}} {options}"), Method::Slices, counters);
    }
}

#[test]
fn what_is_known_at_the_end_takes_whole_runs() {
    for (options, metric) in [
        ("", "wall"),
        ("--metric cpu", "cpu"),
        ("--metric p99=([0-9]+),lower,from=/x", "p99"),
        ("--metric ops=([0-9]+) --metric wall", "ops"),
    ] {
        assert_chosen(options, Method::Runs, &at_end(metric));
    }
    for options in [
        "--load x",
        "--load x --ready y --metric memory",
        "--load x --ready y --metric lag=([0-9]+),lower,from=/x",
        "--load x{arm} --ready y",
    ] {
        assert_chosen(options, Method::Runs, &Because::Load);
    }
}

#[test]
fn what_was_typed_or_begun_stands_unless_it_makes_no_sense() {
    let counter = "--metric ops=([0-9]+)";
    for (design, method) in [("runs", Method::Runs), ("slices", Method::Slices)] {
        let args = chosen(&format!("--design {design} {counter}"), None).expect("a design");
        assert_eq!((args.method, args.is_asked()), (method, true));
        let begun = chosen(counter, Some(method)).expect("a design");
        assert_eq!((begun.method, begun.is_asked()), (method, true));
        assert_eq!(begun.reason, Because::Resumed);
    }
    for (options, why) in [
        ("--design slices --metric wall", "`wall` belongs to whole runs"),
        ("--design slices --metric ops=([0-9]+),from=/tmp/x", "write {arm}"),
        ("--design flip --metric wall", "--design flip: "),
        (
            "--design flip --metric ops=([0-9]+) --arms base,text",
            "--design flip: ",
        ),
        (
            "--design flip --metric ops=([0-9]+) --place pack",
            "--place makes them different ones",
        ),
    ] {
        let error = chosen(options, None).expect_err("no sense").to_string();
        assert!(error.contains(why), "{options}: {error}");
    }
}

/// A comparison of slices that a program's end cut short.
fn cut(blocks: u32) -> Outcome {
    let mut compare = crate::render::prove::compare::tests::compare(model::compare::Verdict::Unknown);
    (compare.design.ended, compare.design.blocks) = (Ended::ProgramEnded, blocks);
    (compare, Vec::new())
}

#[test]
fn a_result_without_its_pages_is_unfit_and_its_reason_stays() {
    let (mut compare, warnings) = cut(30);
    let last = compare.arms[1].runs.last_mut().expect("a run");
    last.notes.push("prctl".to_owned());
    assert!(in_effect((compare.clone(), warnings.clone())).is_ok());
    compare.arms[1].took_effect = Reading::Known(false);
    let error = in_effect((compare, warnings)).expect_err("nothing was compared");
    assert!(is_unfit(&error));
    let text = error.to_string();
    assert!(
        text.contains("did not take effect") && text.ends_with("(prctl)"),
        "{text}"
    );
}

#[test]
fn too_few_slices_and_a_program_that_does_not_suit_are_unfit_and_a_wish_to_stop_is_not() {
    assert!(enough(cut(5)).is_err_and(|error| is_unfit(&error)) && enough(cut(6)).is_ok());
    let gone = Error::Gone {
        arm: "base".to_owned(),
        status: "0".to_owned(),
        said: String::new(),
    };
    assert!(has_ended(&gone) && !has_ended(&Error::InPlace("x".to_owned())));
    assert!(is_unfit(&gone) && is_unfit(&Error::InPlace("x".to_owned())));
    assert!(!is_unfit(&Error::Interrupted) && !is_unfit(&Error::Keep("full".to_owned())));
}

#[test]
fn a_metric_of_the_recipe_is_asked_for_by_its_name() {
    let own = crate::recipes::choose("jbb", std::path::Path::new("")).and_then(|chosen| chosen.metrics());
    let own = own.expect("metrics");
    let words = ["mutator", "cpu", "lines=([0-9]+)"].map(str::to_owned);
    let found = asked(&words, &own).expect("all three");
    let names: Vec<&str> = found.iter().map(|asked| asked.wanted.name.as_str()).collect();
    assert_eq!(names, ["mutator", "cpu", "lines"]);
    assert_eq!(
        found[0].pattern.as_ref().map(|pattern| pattern.as_str()),
        Some("mutator: ([0-9.]+) us")
    );
    let why = asked(&["speed".to_owned()], &own)
        .expect_err("no such metric")
        .to_string();
    assert!(
        why.starts_with("--metric speed: ") && why.ends_with("the recipe has work, mutator, collections, throughput"),
        "{why}"
    );
}
