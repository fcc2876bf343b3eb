//! Built-in experiments name what there is, and a mistake in a file of one's own is named with its line.

use model::suite::Experiment;

use studies::claims::{self, How};

use super::{Place, Planned, planned};

fn named(only: &[&str]) -> Vec<String> {
    let only: Vec<String> = only.iter().map(|only| (*only).to_owned()).collect();
    let planned = planned(&only, &Place::default()).expect("experiments");
    planned.into_iter().map(|planned| planned.experiment.name).collect()
}

#[test]
fn every_built_in_experiment_has_what_was_published_and_why_that_may_differ() {
    let all = planned(&[], &Place::default()).expect("experiments");
    for planned in &all {
        let experiment = &planned.experiment;
        let published = experiment.published.as_ref().expect("a figure");
        let is_claimed = claims::ALL.claims.iter().any(|claim| claim.source == published.source);
        let is_other = ["Redis documentation", "PostgreSQL documentation"]
            .iter()
            .any(|source| published.source.starts_with(source));
        assert!(is_claimed || is_other, "{experiment:?}");
        let texts = [&experiment.title, &published.figure, &published.source].into_iter();
        assert!(
            texts.chain(&experiment.differs).all(|text| !text.contains(['{', '}'])),
            "{experiment:?}"
        );
        assert!(!experiment.differs.is_empty(), "{experiment:?}");
    }
}

#[test]
fn an_entry_stands_for_each_combination_of_its_rows() {
    let heaps = |beginning: &str, heaps: &[u32]| -> Vec<String> {
        heaps.iter().map(|heap| format!("{beginning}-{heap}g")).collect()
    };
    assert_eq!(named(&["jbb-g1"]), heaps("jbb-g1", &[1, 2, 4, 8]));
    assert_eq!(named(&["jboss"]), heaps("jboss", &[1, 2, 4]));
    let one = experiment("jbb-z-2g");
    assert_eq!(one.workload, "jbb:heap=2g,gc=Z,warehouses=24,warm_up=3,seconds=8");
    assert_eq!(one.arms.join(","), "base,thp,hugetlb-2M,hugetlb-1G");
    assert!(one.differs.iter().any(|why| why.starts_with("ZGC")), "{one:?}");
    let other = experiment("jbb-g1-2g").differs;
    assert!(
        other.iter().all(|why| !why.is_empty() && !why.starts_with("ZGC")),
        "{other:?}"
    );
}

fn experiment(name: &str) -> Experiment {
    let planned = planned(&[name.to_owned()], &Place::default()).expect("experiments");
    planned.into_iter().next().expect("one").experiment
}

#[test]
fn a_name_stands_for_itself_and_for_those_that_begin_with_it() {
    assert_eq!(named(&["compile"]), ["compile", "compile-httpd"]);
    assert_eq!(named(&["jbb-flip"]), ["jbb-flip"]);
    assert!(named(&["jbb"]).len() > 10 && named(&["oltp"]).len() == 8);
    let error = planned(&["jb".to_owned()], &Place::default())
        .expect_err("none")
        .to_string();
    assert!(
        error.contains("--only jb: there is no such experiment (write jbb-parallel-1g,"),
        "{error}"
    );
}

const OWN: &str = "\
[[experiment]]
name = 'chase-{size}'
title = 'A chase'
workload = 'graph:size={size}'
arms = ['base', 'thp']
time = '1m'
memory = '1G'
each = [[{ size = '64' }, { size = '128' }]]
";

#[test]
fn a_mistake_in_a_file_of_one_s_own_is_named_with_its_line_and_what_is_expected() {
    let place = Place::default();
    let parsed = place.parse("own.toml", OWN).expect("experiments");
    assert_eq!(
        (parsed.len(), parsed[1].experiment.workload.as_str()),
        (2, "graph:size=128")
    );
    assert_eq!(parsed[1].experiment.published, None);
    for (from, to, line, part) in [
        (
            "chase-{size}",
            "chase-{sice}",
            2,
            "there is no `{sice}` here: expected one of size",
        ),
        ("chase-{size}", "chase", 2, "there are two experiments `chase`"),
        ("chase-{size}", "../x", 2, "expected a-z, 0-9 and -"),
        ("graph:", "grph:", 4, "there is no such recipe (write compile,"),
        ("graph:size", "graph:sice", 4, "there is no parameter `sice`"),
        ("'thp'", "'tph'", 5, "`tph` is not an arm (write base"),
        (", 'thp'", "", 5, "expected two arms at least"),
        ("'1m'", "'1x'", 6, "write a number and a unit"),
        ("'1G'", "'1'", 7, ""),
        (
            "title =",
            "titel =",
            3,
            "unknown field `titel`, expected one of `name`, `title`",
        ),
        (
            "time = '1m'",
            "metrics = ['stpes']\ntime = '1m'",
            6,
            "expected one of steps",
        ),
        (
            "time = '1m'",
            "differs = ['x']\ntime = '1m'",
            6,
            "`x` is not in [differences]",
        ),
    ] {
        let error = format!("{:#}", place.parse("own.toml", &OWN.replace(from, to)).expect_err(to));
        assert!(
            error.contains("own.toml") && error.contains(&format!("line {line}")),
            "{to}: {error}"
        );
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn experiments_quote_the_claims_that_name_them_with_the_measure_that_they_have() {
    let all = planned(&[], &Place::default()).expect("experiments");
    let mut named = 0;
    for claim in &claims::ALL.claims {
        for here in &claim.here {
            let Some(name) = here.by.strip_prefix("suite --only ") else {
                continue;
            };
            let beginning = format!("{name}-");
            let is_it =
                |planned: &&Planned| planned.experiment.name == name || planned.experiment.name.starts_with(&beginning);
            let experiment = &all
                .iter()
                .find(is_it)
                .unwrap_or_else(|| panic!("{}: {name}", claim.id))
                .experiment;
            let figure = &experiment.published.as_ref().expect("claims").figure;
            named += 1;
            let mut others = figure
                .split("of other quantities: ")
                .skip(1)
                .flat_map(|ids| ids.split([',', ' ']));
            let is_shown = figure.contains(&claim.what);
            assert!(is_shown || others.any(|id| id == claim.id), "{}: {figure}", claim.id);
            // The reason stands beside each figure of another measure, and beside no other.
            if here.how == How::Measured && here.measure == claim.measure {
                let said = format!("{}: {} (", claim.what, claim.figure);
                assert!(
                    figure.contains(&said) || claim.measure.quantity == "response time",
                    "{figure}"
                );
                let rest = figure.split(&said).nth(1).unwrap_or_default();
                let own = rest.split("; ").next().unwrap_or_default();
                assert!(
                    !own.contains("cannot be compared") || claim.measure.quantity == "response time",
                    "{figure}"
                );
            }
        }
    }
    assert!(named > 10, "{named}");
    let jboss = experiment("jboss-2g").published.expect("claims").figure;
    assert_eq!(
        jboss,
        "Large pages with heaps above 2 GB: more (throughput, huge pages over base pages, % more); of other quantities: \
         jboss-heap-alone, jboss-gc-count, jboss-gc-time, jboss-gc-each (hugewise suite --claims)"
    );
    let memtest = experiment("memtest").published.expect("a claim").figure;
    assert!(
        !memtest.contains("12") && !memtest.contains("cannot be compared"),
        "{memtest}"
    );
    let compile = experiment("compile").published.expect("a claim").figure;
    assert!(
        compile.contains("48") && compile.contains("cannot be compared"),
        "{compile}"
    );
}
