//! Which ways to other pages each kind of program has.

use super::{Collapse, Setup, Technique, ThpSwitch, setups};
use crate::Error;
use crate::policy::Policy;
use crate::program::{Allocator, Memory};
use model::Bytes;

const POOL: Policy = Policy::Hugetlb(Bytes::mib(2));

fn chosen(policy: Policy, memory: Memory) -> Result<Setup, Error> {
    setups(policy, memory, None, &|_| None).map(|mut setups| setups.remove(0))
}

fn ways(policy: Policy, memory: Memory) -> usize {
    setups(policy, memory, None, &|_| None).expect("a way").len()
}

#[test]
fn each_program_gets_the_technique_that_reaches_its_memory() {
    let words = |policy, memory| chosen(policy, memory).expect("a way").words;
    assert!(words(Policy::Thp, Memory::Glibc).contains("glibc.malloc.hugetlb=1:"));
    assert!(words(POOL, Memory::Glibc).contains("glibc.malloc.hugetlb=2:"));
    assert!(words(Policy::Hugetlb(Bytes::gib(1)), Memory::Glibc).contains("hugetlb=1073741824:"));
    assert!(words(POOL, Memory::Jvm).contains("-XX:+UseLargePages -XX:LargePageSizeInBytes=2m"));
    assert!(words(Policy::Thp, Memory::Allocator(Allocator::Jemalloc)).contains("thp:always"));
    let collapsed = chosen(Policy::Thp, Memory::Static).expect("a way");
    assert_eq!((collapsed.collapse, collapsed.env.len()), (Some(Collapse::Private), 0));
    assert_eq!(chosen(Policy::Base, Memory::Go).expect("a way").thp, ThpSwitch::Off);
}

#[test]
fn programs_whose_files_do_not_tell_have_further_ways_and_the_override_has_none() {
    assert_eq!((ways(Policy::Thp, Memory::Glibc), ways(POOL, Memory::Glibc)), (3, 2));
    assert_eq!((ways(Policy::Thp, Memory::Jvm), ways(POOL, Memory::Jvm)), (2, 1));
    assert_eq!(ways(POOL, Memory::Allocator(Allocator::Mimalloc)), 2);
    assert_eq!(
        (ways(Policy::Thp, Memory::Static), ways(Policy::Base, Memory::Glibc)),
        (1, 1)
    );
    let asked = setups(POOL, Memory::Glibc, Some(Technique::Preload), &|_| None).expect("a way");
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].preload.as_ref().map(ToString::to_string),
        Some("hugetlb-2M,min=256K".to_owned())
    );
    assert!(asked[0].words.contains("LD_PRELOAD") && asked[0].words.contains("glibc.malloc.hugetlb=2:"));
    let alone = setups(POOL, Memory::Allocator(Allocator::Mimalloc), None, &|_| None).expect("ways");
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
    let error = setups(POOL, Memory::Glibc, Some(Technique::Collapse), &|_| None).expect_err("no way");
    assert!(
        error.to_string().contains("this technique gives no such pages"),
        "{error}"
    );
}

#[test]
fn every_way_has_the_name_that_would_ask_for_it() {
    for memory in [Memory::Glibc, Memory::Jvm, Memory::Allocator(Allocator::Mimalloc)] {
        for setup in setups(POOL, memory, None, &|_| None).expect("ways") {
            let name = setup.way.expect("a technique").to_string();
            assert_eq!(name.parse(), Ok(setup.way.expect("a technique")));
        }
    }
    assert_eq!(chosen(Policy::Base, Memory::Glibc).expect("a way").way, None);
}

#[test]
fn variables_that_are_set_are_added_to() {
    let given = |name: &str| (name == "JAVA_TOOL_OPTIONS").then(|| "-Xss1m".into());
    let setups = setups(Policy::Thp, Memory::Jvm, None, &given).expect("a way");
    assert_eq!(
        setups[0].env,
        [("JAVA_TOOL_OPTIONS".into(), "-Xss1m -XX:+UseTransparentHugePages".into())]
    );
}
