//! Names of page sizes, and what a pod needs at a time.

use model::Bytes;

use super::{Quantity, Volume};
use crate::config::Given;

#[test]
fn a_page_size_has_one_name() {
    let read = |resource: &str| {
        let quantity = Quantity {
            place: String::new(),
            resource: resource.to_owned(),
            key: None,
            written: String::new(),
            amount: 1,
        };
        (quantity.page(), quantity.meant())
    };
    let (small, large) = (Some(Bytes::mib(2)), Some(Bytes::gib(1)));
    assert_eq!(read("hugepages-2Mi"), (small, small));
    assert_eq!(read("hugepages-64Ki").0, Some(Bytes::kib(64)));
    assert_eq!(read("hugepages-1G"), (None, large));
    for name in ["hugepages-2M", "hugepages-2048Ki", "Hugepages-2Mi", "hugepages-2MB"] {
        assert_eq!(read(name), (None, small), "{name}");
    }
    assert_eq!(read("hugepages-3Mi"), (None, None));
    let medium = |medium: &str| Volume {
        place: String::new(),
        name: String::new(),
        medium: medium.to_owned(),
    };
    assert_eq!(medium("HugePages-2048Ki").page(), small, "the kubelet compares sizes");
    let known = ["HugePages", "HugePages-1Gi", "Hugepages-2Mi", "HugePages2Mi"].map(|name| medium(name).is_known());
    assert_eq!(known, [true, true, false, false]);
}

/// What a pod with these containers needs of pages of 2M, in MiB by container.
fn needs(first: &[(&str, u64)], others: &[u64]) -> Vec<(String, u64)> {
    let limits = |mib: &u64| format!("resources: {{limits: {{hugepages-2Mi: {mib}Mi, memory: 1Gi}}}}");
    let first = first.iter().enumerate();
    let first = first.map(|(at, (policy, mib))| format!("  - {{name: i{at}, {policy}{}}}\n", limits(mib)));
    let others = others.iter().enumerate();
    let others = others.map(|(at, mib)| format!("  - {{name: c{at}, {}}}\n", limits(mib)));
    let text = format!(
        "apiVersion: v1\nkind: Pod\nspec:\n  initContainers:\n{}  containers:\n{}",
        first.collect::<String>(),
        others.collect::<String>()
    );
    let mut given = Given::default();
    given.add("p.yaml", text.as_bytes(), None).expect("a pod");
    let asked = given.pods[0].hugetlb().into_iter();
    asked
        .map(|(_, own, quantity)| (own.name.clone(), quantity.amount >> 20))
        .collect()
}

#[test]
fn containers_that_run_first_need_their_pages_at_another_time() {
    const SIDECAR: &str = "restartPolicy: Always, ";
    let all = |names: &[(&str, u64)]| -> Vec<(String, u64)> {
        names.iter().map(|(name, mib)| ((*name).to_owned(), *mib)).collect()
    };
    assert_eq!(needs(&[("", 1024)], &[512, 512]), all(&[("c0", 512), ("c1", 512)]));
    assert_eq!(needs(&[("", 64), ("", 1026)], &[512, 512]), all(&[("i1", 1026)]));
    assert_eq!(needs(&[(SIDECAR, 512)], &[512]), all(&[("i0", 512), ("c0", 512)]));
    assert_eq!(
        needs(&[("", 1024), (SIDECAR, 512), ("", 1024), (SIDECAR, 64)], &[256]),
        all(&[("i1", 512), ("i2", 1024)])
    );
}
