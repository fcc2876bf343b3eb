//! Names of page sizes: resources that no node has, and media of volumes that the kubelet cannot mount.

use std::collections::BTreeSet;

use model::Bytes;
use programs::config::given::{Container, Pod, Volume};

use super::USUAL;
use crate::demand::who;
use crate::rule::Case;

/// A resource that no node has: the pod stays Pending, or the API server rejects it.
pub(super) fn misnamed(pod: &Pod, container: &Container) -> Option<Case> {
    let quantity = container.misnamed()?;
    let text = format!(
        "{} does not run: no node has the resource {}",
        who(pod, container),
        quantity.resource
    );
    let case = |text: String| Case::sure(text).seen(&quantity.place, quantity.field(), &quantity.written);
    let Some(page) = quantity.meant() else {
        return Some(
            case(text).fix("name a page size of the node: hugepages-2Mi, hugepages-1Gi (kubectl describe node)"),
        );
    };
    let (size, whole) = (page.exact(), Bytes(quantity.amount).round_up_to(page).exact());
    let fix = match quantity.key {
        // KubeVirt makes the resource of it.
        Some(_) => format!("pageSize: {size}i below its hugepages"),
        None => format!(
            "hugepages-{size}i: {whole}i in {}, and the medium HugePages-{size}i of its volume",
            container.sized_in
        ),
    };
    let case = case(format!("{text}, which the kubelet names hugepages-{size}i"));
    Some(case.wants(page).fix(fix))
}

/// Volumes that the kubelet cannot mount.
pub(super) fn volumes(pod: &Pod) -> Vec<Case> {
    let pages = pod.holders().flat_map(Container::hugetlb);
    let sizes: BTreeSet<Bytes> = pages.map(|(page, ..)| page).collect();
    // Of a misnamed size another case says so.
    let is_misnamed = pod.holders().any(|own| own.misnamed().is_some());
    let is_unfit = |volume: &Volume| match volume.page() {
        Some(page) => !sizes.contains(&page),
        // The medium without a size stands for the only one that is asked for.
        None => sizes.len() != 1,
    };
    let wrong = pod.volumes.iter();
    let wrong = wrong.filter(|volume| !volume.is_known() || (!is_misnamed && is_unfit(volume)));
    let asked: Vec<String> = sizes.iter().map(|size| size.exact()).collect();
    let asked = match asked.is_empty() {
        true => "none".to_owned(),
        false => asked.join(" "),
    };
    wrong
        .map(|volume| {
            let why = match volume.is_known() {
                true => "fits no page size that it requests",
                false => "is no medium that the kubelet knows",
            };
            let own = volume.meant().filter(|page| sizes.is_empty() || sizes.contains(page));
            let page = own.or(sizes.first().copied()).unwrap_or(USUAL);
            Case::sure(format!(
                "the pod {} stays in FailedMount: {} {why}",
                pod.name, volume.medium
            ))
            .seen(&volume.place, "medium", &volume.medium)
            .seen(&pod.place, "page sizes requested", &asked)
            .fix(format!(
                "name the size in the medium (HugePages-{}i), and request hugepages of that size in resources",
                page.exact()
            ))
        })
        .collect()
}
