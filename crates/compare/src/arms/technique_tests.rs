//! Which ways to other pages each kind of program has.

use std::time::Duration;

use super::{Collapse, Own, Setup, Technique, ThpSwitch, in_vain, setups};
use crate::Error;
use crate::policy::Policy;
use crate::program::{Allocator, Database, Glibc, Memory, Program};
use crate::request::{Request, Task};
use host::snapshot::thp::THP;
use host::{Snapshot, Source, Tree};
use model::Bytes;
use model::PageKind::{Base, Hugetlb, Mthp, Thp};

const POOL: Policy = Policy::Of(Hugetlb(Bytes::mib(2)));

fn program(memory: Memory) -> Program {
    Program {
        path: "/made/up".into(),
        memory,
        glibc: Some(Glibc(2, 39)),
    }
}

/// Where the THP mode is not `always`.
fn chosen(policy: Policy, memory: Memory) -> Result<Setup, Error> {
    let setups = setups(policy, &program(memory), None, &|_| None)?;
    let mut own = setups.into_iter().filter(|setup| setup.way != Some(Technique::Switch));
    Ok(own.next().expect("a way"))
}

fn ways(policy: Policy, memory: Memory) -> usize {
    setups(policy, &program(memory), None, &|_| None).expect("a way").len()
}

#[test]
fn under_the_mode_always_the_program_as_it_is_comes_first() {
    let first = |mode: &str, technique| {
        let tree = Tree::new()
            .line(&format!("{THP}/enabled"), mode)
            .line(&format!("{THP}/hpage_pmd_size"), "2097152");
        let task = Task {
            command: vec!["/bin/true".into()],
            ..Task::default()
        };
        let arms = vec!["base".to_owned(), "thp".to_owned()];
        let request = Request {
            technique,
            ..Request::plain(task, arms, Duration::from_secs(1), 7)
        };
        let arms = crate::arms::resolve(&request, &Snapshot::take(&Source::from_tree("made", tree)));
        arms.expect("arms").live[1].setup.way
    };
    let always = "[always] madvise never";
    assert_eq!(first(always, None), Some(Technique::Switch));
    assert_eq!(first(always, Some(Technique::Collapse)), Some(Technique::Collapse));
    assert_ne!(first("always [madvise] never", None), Some(Technique::Switch));
}

#[test]
fn each_program_gets_the_technique_that_reaches_its_memory() {
    let words = |policy, memory| chosen(policy, memory).expect("a way").words;
    assert!(words(Policy::Of(Thp), Memory::Glibc).contains("glibc.malloc.hugetlb=1:"));
    assert!(words(POOL, Memory::Glibc).contains("glibc.malloc.hugetlb=2097152:"));
    assert!(words(Policy::Of(Hugetlb(Bytes::gib(1))), Memory::Glibc).contains("hugetlb=1073741824:"));
    assert!(words(POOL, Memory::Jvm).contains("-XX:+UseLargePages -XX:LargePageSizeInBytes=2m"));
    assert!(words(Policy::Of(Thp), Memory::Allocator(Allocator::Jemalloc)).contains("thp:always"));
    let collapsed = chosen(Policy::Of(Thp), Memory::Static).expect("a way");
    assert_eq!((collapsed.collapse, collapsed.env.len()), (Some(Collapse::Private), 0));
    assert_eq!(chosen(Policy::Of(Base), Memory::Go).expect("a way").thp, ThpSwitch::Off);
}

#[test]
fn programs_whose_files_do_not_tell_have_further_ways_and_the_override_has_none() {
    assert_eq!(
        (ways(Policy::Of(Thp), Memory::Glibc), ways(POOL, Memory::Glibc)),
        (4, 2)
    );
    assert_eq!((ways(Policy::Of(Thp), Memory::Jvm), ways(POOL, Memory::Jvm)), (3, 1));
    assert_eq!(ways(POOL, Memory::Allocator(Allocator::Mimalloc)), 2);
    assert_eq!(
        (
            ways(Policy::Of(Thp), Memory::Static),
            ways(Policy::Of(Base), Memory::Glibc)
        ),
        (2, 1)
    );
    let asked = setups(POOL, &program(Memory::Glibc), Some(Technique::Preload), &|_| None).expect("a way");
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].preload.as_ref().map(ToString::to_string),
        Some("hugetlb-2M,min=256K".to_owned())
    );
    assert!(asked[0].words.contains("LD_PRELOAD") && asked[0].words.contains("glibc.malloc.hugetlb=2097152:"));
    let alone = setups(POOL, &program(Memory::Allocator(Allocator::Mimalloc)), None, &|_| None).expect("ways");
    assert!(alone[0].preload.is_some() && alone[0].env.is_empty());
}

#[test]
fn what_cannot_work_is_refused_with_what_would() {
    for memory in [Memory::Static, Memory::Go, Memory::OtherLibc] {
        let error = chosen(POOL, memory).expect_err("no way").to_string();
        assert!(
            error.contains("--arms hugetlb-2M") && error.contains("compare thp"),
            "{error}"
        );
    }
    let error = setups(POOL, &program(Memory::Glibc), Some(Technique::Collapse), &|_| None).expect_err("no way");
    assert!(
        error.to_string().contains("this technique gives no such pages"),
        "{error}"
    );
}

#[test]
fn what_would_do_nothing_is_known_from_the_program_s_file() {
    let why = |technique, memory| in_vain(technique, &program(memory));
    for memory in [
        Memory::Static,
        Memory::Go,
        Memory::OtherLibc,
        Memory::Allocator(Allocator::Jemalloc),
    ] {
        let why = why(Technique::Tunables, memory).expect("no malloc of glibc");
        assert!(why.contains("/made/up is a") && why.contains(memory.title()), "{why}");
    }
    for memory in [
        Memory::Glibc,
        Memory::StaticGlibc,
        Memory::Jvm,
        Memory::Database(Database::Mysql),
    ] {
        assert_eq!(why(Technique::Tunables, memory), None);
    }
    assert!(why(Technique::Preload, Memory::StaticGlibc).is_some() && why(Technique::Preload, Memory::Glibc).is_none());
    assert!(why(Technique::Jvm, Memory::Glibc).is_some() && why(Technique::Jvm, Memory::Jvm).is_none());
    assert!(why(Technique::Collapse, Memory::Go).is_none());
    let old = Program {
        glibc: Some(Glibc(2, 34)),
        ..program(Memory::Glibc)
    };
    assert!(in_vain(Technique::Tunables, &old).is_some_and(|why| why.contains("2.35") && why.contains("2.34")));
    let ways = setups(POOL, &old, None, &|_| None).expect("a way");
    assert_eq!(
        (ways.len(), ways[0].way, ways[0].env.len()),
        (1, Some(Technique::Preload), 0)
    );
}

#[test]
fn a_static_program_with_glibc_has_its_tunables_and_no_library() {
    let ways = |policy| setups(policy, &program(Memory::StaticGlibc), None, &|_| None).expect("a way");
    let names = |policy| {
        ways(policy)
            .into_iter()
            .filter_map(|setup| setup.way)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(POOL), [Technique::Tunables]);
    let thp = [Technique::Switch, Technique::Collapse, Technique::Tunables];
    assert_eq!(names(Policy::Of(Thp)), thp);
}

#[test]
fn every_way_has_the_name_that_would_ask_for_it() {
    for memory in [Memory::Glibc, Memory::Jvm, Memory::Allocator(Allocator::Mimalloc)] {
        for setup in setups(POOL, &program(memory), None, &|_| None).expect("ways") {
            let name = setup.way.expect("a technique").to_string();
            assert_eq!(name.parse(), Ok(setup.way.expect("a technique")));
        }
    }
    assert_eq!(chosen(Policy::Of(Base), Memory::Glibc).expect("a way").way, None);
}

#[test]
fn variables_that_are_set_are_added_to() {
    let given = |name: &str| (name == "_JAVA_OPTIONS").then(|| "-Xss1m".into());
    let setups = setups(Policy::Of(Thp), &program(Memory::Jvm), None, &given).expect("a way");
    let options = "-Xss1m -XX:+UseLargePages -XX:+UseTransparentHugePages";
    assert_eq!(setups[1].env, [("_JAVA_OPTIONS".into(), options.into())]);
}

#[test]
fn what_takes_huge_pages_by_itself_is_told_not_to_in_every_arm_without_a_pool() {
    let of = |policy, memory| chosen(policy, memory).expect("a way");
    let value = |setup: &Setup, name: &str| {
        let found = setup.env.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    };
    let jvm = of(Policy::Of(Base), Memory::Jvm);
    let off = "-XX:-UseLargePages -XX:-UseTransparentHugePages";
    assert_eq!(value(&jvm, "_JAVA_OPTIONS").as_deref(), Some(off));
    assert!(jvm.words.contains(off), "{}", jvm.words);
    let mimalloc = Memory::Allocator(Allocator::Mimalloc);
    for policy in [Policy::Of(Base), Policy::Of(Thp)] {
        assert_eq!(
            value(&of(policy, mimalloc), "MIMALLOC_ALLOW_LARGE_OS_PAGES").as_deref(),
            Some("0")
        );
    }
    let by_itself = setups(
        POOL,
        &program(mimalloc),
        Some(Technique::Allocator(Allocator::Mimalloc)),
        &|_| None,
    )
    .expect("a way");
    assert_eq!(
        value(&by_itself[0], "MIMALLOC_ALLOW_LARGE_OS_PAGES").as_deref(),
        Some("1")
    );
    let jemalloc = of(Policy::Of(Base), Memory::Allocator(Allocator::Jemalloc));
    assert_eq!(value(&jemalloc, "MALLOC_CONF").as_deref(), Some("thp:never"));
    let given = |name: &str| (name == "GLIBC_TUNABLES").then(|| "glibc.malloc.hugetlb=2".into());
    let glibc = setups(Policy::Of(Base), &program(Memory::Glibc), None, &given)
        .expect("a way")
        .remove(0);
    let no_pool = "glibc.malloc.hugetlb=2:glibc.malloc.hugetlb=0";
    assert_eq!(value(&glibc, "GLIBC_TUNABLES").as_deref(), Some(no_pool));
    let as_it_is = setups(Policy::Of(Thp), &program(Memory::Glibc), None, &given);
    assert_eq!(
        value(&as_it_is.expect("ways")[0], "GLIBC_TUNABLES").as_deref(),
        Some(no_pool)
    );
    assert!(of(Policy::System, Memory::Jvm).env.is_empty());
    // What is advised would get the largest size.
    let sized = of(Policy::Of(Mthp(Bytes::kib(64))), Memory::Jvm);
    assert_eq!(value(&sized, "_JAVA_OPTIONS").as_deref(), Some(off));
    assert_eq!(sized.thp, ThpSwitch::Left);
    assert!(
        sized
            .words
            .contains("THP of 64K by the machine's switch, for every program"),
        "{}",
        sized.words
    );
}

#[test]
fn a_database_is_set_by_its_own_switch_in_every_arm() {
    let own = |policy| chosen(policy, Memory::Database(Database::Postgres)).expect("a way").own;
    assert_eq!(own(Policy::Of(Base)), Some(Own::Off));
    assert_eq!(own(Policy::Of(Thp)), Some(Own::Off));
    assert_eq!(own(Policy::Of(Mthp(Bytes::kib(64)))), Some(Own::Off));
    assert_eq!(own(POOL), Some(Own::Pool(Bytes::mib(2))));
    assert_eq!(own(Policy::System), None);
}

#[test]
fn a_tunable_that_a_glibc_takes_by_chance_is_not_chosen_and_is_said_to_be_so_where_it_was_asked_for() {
    let of = |glibc, policy, asked| {
        let program = Program {
            glibc,
            ..program(Memory::Glibc)
        };
        setups(policy, &program, asked, &|_| None).expect("a way")
    };
    let ways = |setups: Vec<Setup>| setups.into_iter().filter_map(|setup| setup.way).collect::<Vec<_>>();
    let by_chance = Some(Glibc(2, 36));
    assert_eq!(
        ways(of(by_chance, Policy::Of(Thp), None)),
        [Technique::Switch, Technique::Preload, Technique::Collapse]
    );
    assert_eq!(
        ways(of(Some(Glibc(2, 39)), Policy::Of(Thp), None))[1],
        Technique::Tunables
    );
    assert_eq!(ways(of(by_chance, POOL, None))[0], Technique::Tunables);
    let asked = of(by_chance, Policy::Of(Thp), Some(Technique::Tunables));
    assert!(
        asked[0].words.contains("glibc 2.36 switches it on by chance"),
        "{}",
        asked[0].words
    );
}
