//! Made trees of control groups, nested, v1 and v2.

use model::{Bytes, Reading};

use super::{own, own_hugetlb};
use crate::{Source, Tree};

const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const V1: &str = "35 25 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                  36 25 0:31 / /sys/fs/cgroup/huge\\040tlb rw - cgroup cgroup rw,hugetlb\n\
                  37 25 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

fn source(mounts: &str, groups: &str, files: &[(&str, &str)]) -> Source {
    let mut tree = Tree::new()
        .file("/proc/self/mountinfo", mounts)
        .file("/proc/self/cgroup", groups);
    for (path, text) in files {
        tree = tree.file(path, text);
    }
    Source::from_tree("test", tree)
}

fn least(source: &Source) -> Option<(String, Bytes)> {
    let least = own(source).into_result().expect("it can be read");
    least.map(|least| (least.set_by, least.left))
}

const MIB: u64 = 1 << 20;

#[test]
fn without_control_groups_or_limits_there_is_no_bound() {
    assert_eq!(least(&Source::from_tree("test", Tree::new())), None);
    let unlimited = source(
        V2,
        "0::/a\n",
        &[
            ("/sys/fs/cgroup/a/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.high", "max\n"),
        ],
    );
    assert_eq!(least(&unlimited), None);
}

#[test]
fn of_v2_the_least_of_all_groups_above_counts_less_what_is_in_use() {
    let (used, half) = (format!("{}\n", 400 * MIB), format!("{}\n", 512 * MIB));
    let gib = format!("{}\n", 1024 * MIB);
    let stat = format!("anon 1\ninactive_file {}\nactive_file {}\n", 90 * MIB, 10 * MIB);
    let nested = source(
        V2,
        "0::/pod/container/own\n",
        &[
            ("/sys/fs/cgroup/pod/memory.max", &half),
            ("/sys/fs/cgroup/pod/memory.current", &used),
            ("/sys/fs/cgroup/pod/memory.stat", &stat),
            ("/sys/fs/cgroup/pod/container/memory.max", "max\n"),
            ("/sys/fs/cgroup/pod/container/own/memory.max", &gib),
            ("/sys/fs/cgroup/pod/container/own/memory.current", "4096\n"),
        ],
    );
    let expected = ("/sys/fs/cgroup/pod/memory.max".to_owned(), Bytes::mib(212));
    assert_eq!(least(&nested), Some(expected));
}

#[test]
fn memory_high_counts_too_because_beyond_it_a_group_is_held_back() {
    let high = source(
        V2,
        "0::/a\n",
        &[
            ("/sys/fs/cgroup/a/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/a/memory.high", "268435456\n"),
            ("/sys/fs/cgroup/a/memory.current", "0\n"),
        ],
    );
    assert_eq!(
        least(&high),
        Some(("/sys/fs/cgroup/a/memory.high".to_owned(), Bytes::mib(256)))
    );
}

#[test]
fn of_v1_the_groups_above_count_as_does_what_a_container_does_not_see() {
    let memory = "/sys/fs/cgroup/memory/docker/x";
    let file = |name: &str| format!("{memory}/{name}");
    let (limit, usage, stat) = (
        file("memory.limit_in_bytes"),
        file("memory.usage_in_bytes"),
        file("memory.stat"),
    );
    let groups = "4:memory:/docker/x\n3:hugetlb:/docker/x\n0::/\n";
    let own_limit = source(
        V1,
        groups,
        &[
            (&limit, "536870912\n"),
            (&usage, "104857600\n"),
            (
                &stat,
                "total_inactive_file 1048576\ntotal_active_file 0\nhierarchical_memory_limit 536870912\n",
            ),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ],
    );
    assert_eq!(least(&own_limit), Some((limit.clone(), Bytes::mib(413))));
    let hidden = source(
        V1,
        groups,
        &[
            (&limit, "9223372036854771712\n"),
            (&usage, "0\n"),
            (&stat, "hierarchical_memory_limit 134217728\n"),
        ],
    );
    let expected = format!("hierarchical_memory_limit in {stat}");
    assert_eq!(least(&hidden), Some((expected, Bytes::mib(128))));
}

#[test]
fn a_container_s_own_group_is_the_top_of_its_mount() {
    let mounts = "35 25 0:30 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    let files = [
        ("/sys/fs/cgroup/memory.max", "268435456\n"),
        ("/sys/fs/cgroup/memory.current", "0\n"),
        ("/sys/fs/cgroup/own/memory.max", "134217728\n"),
        ("/sys/fs/cgroup/own/memory.current", "0\n"),
    ];
    let at = |path: &str| least(&source(mounts, &format!("0::{path}\n"), &files)).map(|(_, left)| left);
    assert_eq!(at("/docker/x"), Some(Bytes::mib(256)));
    assert_eq!(at("/docker/x/own"), Some(Bytes::mib(128)));
    assert_eq!(
        at("/docker/xy/own"),
        Some(Bytes::mib(256)),
        "another group's name may begin alike"
    );
    assert_eq!(at("/../elsewhere"), Some(Bytes::mib(256)));
}

#[test]
fn a_limit_whose_use_cannot_be_read_is_not_taken_for_room() {
    let blind = source(V2, "0::/a\n", &[("/sys/fs/cgroup/a/memory.max", "1073741824\n")]);
    assert!(matches!(own(&blind), Reading::Unread(_)));
    let garbled = source(V2, "0::/a\n", &[("/sys/fs/cgroup/a/memory.max", "lots\n")]);
    assert!(matches!(own(&garbled), Reading::Unread(_)));
}

#[test]
fn limits_of_the_process_count_too() {
    let limits = "Limit  Soft Limit  Hard Limit  Units\n\
                  Max data size             unlimited            unlimited            bytes     \n\
                  Max address space         1073741824           unlimited            bytes     \n";
    let tree = Tree::new()
        .file("/proc/self/limits", limits)
        .file("/proc/self/status", "VmSize:\t  524288 kB\nVmData:\t 1024 kB\n");
    let source = Source::from_tree("test", tree);
    assert_eq!(least(&source), Some(("ulimit -v".to_owned(), Bytes::mib(512))));
}

#[test]
fn pages_of_a_pool_have_limits_of_their_own() {
    let v1 = "/sys/fs/cgroup/huge tlb/db/hugetlb.2MB";
    let (limit, usage) = (format!("{v1}.limit_in_bytes"), format!("{v1}.usage_in_bytes"));
    let (reserved, reserved_usage) = (format!("{v1}.rsvd.limit_in_bytes"), format!("{v1}.rsvd.usage_in_bytes"));
    let files = [
        (limit.as_str(), "134217728\n"),
        (usage.as_str(), "2097152\n"),
        (reserved.as_str(), "67108864\n"),
        (reserved_usage.as_str(), "0\n"),
    ];
    let groups = "4:memory:/\n3:hugetlb:/db/own\n0::/\n";
    let left = |page| {
        let left = own_hugetlb(&source(V1, groups, &files), page)
            .into_result()
            .expect("it can be read");
        left.map(|left| (left.set_by, left.left))
    };
    assert_eq!(left(Bytes::mib(2)), Some((reserved.clone(), Bytes::mib(64))));
    assert_eq!(left(Bytes::gib(1)), None);
    let v2 = source(
        V2,
        "0::/db\n",
        &[
            ("/sys/fs/cgroup/db/hugetlb.1GB.max", "0\n"),
            ("/sys/fs/cgroup/db/hugetlb.1GB.current", "0\n"),
        ],
    );
    let left = own_hugetlb(&v2, Bytes::gib(1)).into_result().expect("it can be read");
    assert_eq!(left.map(|left| left.left), Some(Bytes(0)));
}

#[test]
fn the_running_machine_can_be_asked() {
    assert!(own(&Source::live()).known().is_some(), "{:?}", own(&Source::live()));
}
