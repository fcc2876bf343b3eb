//! Resources that the API server rejects: of a container, or of a pod as a whole.

use model::Bytes;
use programs::config::given::{Asked, Container, Pod, Quantity};

use super::{requests_other, same};
use crate::demand::who;
use crate::rule::Case;

fn rejected(pod: &Pod, container: &Container, why: &str) -> Case {
    Case::sure(format!("the API server rejects {}: {why}", who(pod, container)))
}

/// A limit alone is its request too; a request alone, or another amount, is not allowed.
pub(super) fn differs(pod: &Pod, container: &Container) -> Option<Case> {
    let limit = |asked: &Quantity| same(&container.limits, &asked.resource);
    let mut asked = container.requests.iter().filter(|quantity| quantity.page().is_some());
    let wrong = asked.find(|asked| limit(asked).is_none_or(|limit| limit.amount != asked.amount))?;
    let limit = limit(wrong);
    let case = rejected(
        pod,
        container,
        "hugetlb pages cannot be overcommitted, so requests and limits must be equal",
    )
    .seen(&wrong.place, format!("requests: {}", wrong.resource), &wrong.written)
    .seen(
        limit.map_or(&container.place, |limit| &limit.place),
        format!("limits: {}", wrong.resource),
        limit.map_or("not set", |limit| &limit.written),
    );
    Some(case.fix(format!("set both to the same amount of {}", wrong.resource)))
}

pub(super) fn alone(pod: &Pod, container: &Container) -> Option<Case> {
    let (.., quantity) = container.hugetlb().into_iter().next()?;
    // A pod has what its containers request.
    let is_alone = match container.is_whole() {
        true => !pod.holders().any(requests_other),
        false => !requests_other(container),
    };
    is_alone.then(|| {
        rejected(
            pod,
            container,
            "what requests hugetlb pages must request cpu or memory too",
        )
        .seen(&quantity.place, quantity.field(), &quantity.written)
        .seen(&container.place, "cpu and memory", "not requested")
        .fix("add a request of cpu and memory")
    })
}

pub(super) fn no_multiple(pod: &Pod, container: &Container) -> Option<Case> {
    let odd = |(page, _, quantity): &Asked<'_>| page.0 > 0 && !quantity.amount.is_multiple_of(page.0);
    let (page, _, quantity) = container.hugetlb().into_iter().find(odd)?;
    let small = Bytes::mib(2);
    let is_of_2m = page > small && quantity.amount > 0 && quantity.amount.is_multiple_of(small.0);
    Some(
        rejected(
            pod,
            container,
            &format!(
                "{} is not a multiple of the page size {}",
                quantity.written,
                page.exact()
            ),
        )
        .seen(&quantity.place, quantity.field(), &quantity.written)
        .fix(format!(
            "make it a multiple of {}, such as {}i",
            page.exact(),
            Bytes(quantity.amount).round_up_to(page).exact()
        ))
        .fix_if(
            is_of_2m,
            format!(
                "or request pages of 2Mi, of which it needs {}",
                quantity.amount / small.0
            ),
        ),
    )
}

/// Containers that may have more than the pod as a whole.
pub(super) fn over_whole(pod: &Pod) -> Option<Case> {
    pod.whole.as_ref()?.hugetlb().into_iter().find_map(|(page, _, own)| {
        let asked = pod.by_container(page);
        let sum: Bytes = asked.iter().map(|(.., part)| Bytes(part.amount)).sum();
        let (_, _, first) = asked.first().filter(|_| sum.0 > own.amount)?;
        let case = Case::sure(format!(
            "the API server rejects the pod {}: its containers have {sum} in pages of {}, and it has {}",
            pod.name,
            page.exact(),
            Bytes(own.amount)
        ));
        Some(
            case.seen(&own.place, own.field(), &own.written)
                .seen(&first.place, first.field(), &first.written)
                .fix(format!("{}: {}Mi in the pod's resources", own.resource, sum.0 >> 20)),
        )
    })
}
