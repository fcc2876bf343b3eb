//! The report of the suite: every outcome has its words, and a heap has its collections.

use std::collections::BTreeMap;

use model::compare::{Judged, Verdict};
use model::gc::GcLog;
use model::suite::{Experiment, Lack, Listed, Outcome, Page, Published, Suite, SuiteList};
use model::tlb::{HostBacking, Verdict as Host};

use crate::cli::args::Format;
use crate::render::prove::compare::tests::compare;
use crate::samples::envelope;
use crate::show::{Show, show};
use draw::Look;

const LOOK: Look = Look::plain(200);

fn experiment(name: &str, workload: &str) -> Experiment {
    Experiment {
        name: name.to_owned(),
        title: format!("What is {name}"),
        workload: workload.to_owned(),
        arms: vec!["base".to_owned(), "thp".to_owned()],
        published: Some(Published {
            figure: "8 % more".to_owned(),
            source: "A paper (2008)".to_owned(),
        }),
        differs: vec!["Another machine.".to_owned()],
        notice: None,
    }
}

fn page(name: &str, workload: &str, outcome: Outcome) -> Page {
    Page {
        experiment: experiment(name, workload),
        outcome,
        seconds: 61.0,
        gc: BTreeMap::new(),
    }
}

fn compared() -> Outcome {
    let mut compare = compare(Verdict::Better);
    compare.verdicts[0].metric = "work".to_owned();
    let mutator = Judged {
        metric: "mutator".to_owned(),
        ratio: Some(1.1),
        low: Some(1.05),
        high: Some(1.16),
        ..compare.verdicts[0].clone()
    };
    compare.verdicts.push(mutator);
    Outcome::Compared {
        compare: Box::new(compare),
        warnings: Vec::new(),
    }
}

fn text(suite: Suite) -> String {
    let shown = show(&envelope(suite), Format::Text, LOOK).expect("shown");
    String::from_utf8(shown).expect("text")
}

#[test]
fn every_outcome_says_what_came_of_it_beside_what_was_published() {
    let lacking = Lack::Program {
        program: "javac".to_owned(),
        package: "default-jdk-headless".to_owned(),
    };
    let pages = vec![
        page("a", "compile", compared()),
        page("b", "jbb", Outcome::Lacking(vec![lacking])),
        page("c", "oltp", Outcome::Failed("initdb ended with 1".to_owned())),
        page("d", "graph", Outcome::NoTime),
    ];
    let host = HostBacking {
        verdict: Host::Small,
        confidence: 0.9,
        splintered: None,
        evidence: Vec::new(),
    };
    let text = text(Suite {
        host: Some(host),
        pages,
    });
    for part in [
        "The host backs this machine's huge pages with 4 KiB pages (90 % sure)",
        "+34.0 % (+31.0 % to +36.0 %), better",
        "not made, as this is missing: javac",
        "could not be made: initdb ended with 1",
        "not made: the time was over before",
        "8 % more",
        "A paper (2008)",
        "Another machine.",
        "a: Kernel counters",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn collections_are_means_over_the_runs_and_their_collections() {
    let mut page = page("jbb-1g", "jbb:heap=1g,gc=G1", compared());
    let log = GcLog {
        collections: 30,
        pauses: 30,
        pause_seconds: 0.3,
        cpu_seconds: None,
        ..GcLog::default()
    };
    page.gc.insert("thp".to_owned(), vec![log.clone(), log]);
    let sheet = super::collections(&page).expect("a table");
    assert_eq!(sheet.rows, [["thp", "2", "30.0", "10.0", "not logged", "?"]]);
}

#[test]
fn a_list_sums_up_what_runs_and_how_to_install_the_rest() {
    let listed = |name: &str, lacking: Vec<Lack>| Listed {
        experiment: experiment(name, "x"),
        seconds: 300.0,
        lacking,
    };
    let program = |program: &str, package: &str| Lack::Program {
        program: program.to_owned(),
        package: package.to_owned(),
    };
    let list = SuiteList {
        experiments: vec![
            listed("a", Vec::new()),
            listed("b", vec![program("cc", "gcc"), program("redis-cli", "redis-tools")]),
            listed("c", vec![program("cc", "gcc")]),
            listed(
                "d",
                vec![Lack::Memory {
                    needed: 6 << 30,
                    available: 1 << 30,
                }],
            ),
        ],
    };
    assert_eq!(
        list.headlines(),
        [
            "1 of 4 experiments would run here and take at most 5 min (--budget limits it).",
            "What is missing on Debian: apt-get install gcc redis-tools"
        ]
    );
    assert_eq!(list.sheets()[0].rows[3][3], "6G of memory (1G available)");
    let (head, rows) = list.csv();
    assert_eq!((head.len(), rows.count()), (6, 4));
}

#[test]
fn every_page_has_a_chart_of_its_own_name_and_every_verdict_a_line() {
    let suite = Suite {
        host: None,
        pages: vec![page("a", "compile", compared()), page("b", "compile", compared())],
    };
    let ids: Vec<String> = suite.figures().into_iter().map(|figure| figure.id).collect();
    assert_eq!(ids, ["a-gains", "b-gains"]);
    let (head, rows) = suite.csv();
    let rows: Vec<Vec<String>> = rows.collect();
    assert_eq!((rows.len(), rows[0].len()), (4, head.len()));
    let html = String::from_utf8(show(&envelope(suite), Format::Html, LOOK).expect("a page")).expect("text");
    assert!(html.contains("a: What is a") && html.contains("b: What is b"));
}
