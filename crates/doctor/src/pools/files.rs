//! Pools as boot parameters and sysctl files ask for them.

use model::Bytes;
use model::findings::Severity;
use programs::Evidence;
use programs::config::given::FileKind;
use programs::config::{Boot, IgnoredWhy, Setting};

use super::boot::{of_line, of_no_size};
use super::scripts;
use super::size::{named, on_demand, unnamed};
use super::writers::{disagreement, of_boot, of_files};
use crate::demand::{Room, Shortage, all_name_sizes, demands, shortages};
use crate::facts::pages_for;
use crate::remedy::Need;
use crate::rule::{Answer, Case, Reason};

pub(super) const BOTH: &[FileKind] = &[FileKind::Cmdline, FileKind::Sysctl];

pub(super) fn wrong_default(evidence: &Evidence) -> Answer {
    // Of a machine the other check looks at the pools that there are.
    if evidence.has_machine {
        return Ok(Vec::new());
    }
    let room = Room::of(evidence)?;
    if room.pages(room.default) > 0 || all_name_sizes(evidence, &room) {
        return Ok(Vec::new());
    }
    let refused = &evidence.files.refusals;
    // What is refused makes no such pool.
    let is_taken = |place: &str| refused.iter().all(|own| own.unread.place != place);
    let taken = room.filled().filter(|(_, (_, place))| is_taken(place));
    let others = taken.map(|(page, (pages, place))| {
        let size = page.exact();
        let memory = Bytes(page.0.saturating_mul(*pages));
        unnamed(room.default, memory, &format!("pages of {size}"))
            .seen(place, format!("pages of {size}"), pages)
            .seen(place, format!("pages of {}, the default size", room.default.exact()), 0)
            .fix(named(page))
            .fix(format!("or default_hugepagesz={size} on the boot command line"))
    });
    Ok(others.collect())
}

/// Instances of Oracle whose SGA the pool cannot hold beside those before them.
pub(super) fn instances(evidence: &Evidence) -> Answer {
    let case = |short: Shortage<'_>| {
        let (outcome, severity) = match short.demand.strict {
            true => ("does not start, as use_large_pages is ONLY", Severity::Error),
            false => (
                "takes base pages for the rest, and only its alert log shows it",
                Severity::Warning,
            ),
        };
        let who = &short.demand.who;
        short
            .case(format!("{who} {outcome}: its SGA {}", short.text()))
            .severity(severity)
    };
    Ok(shortages(evidence, FileKind::Oracle)?.into_iter().map(case).collect())
}

pub(super) fn overcommit_only(evidence: &Evidence) -> Answer {
    let Some((allowed, line)) = evidence.files.sysctl.number("vm.nr_overcommit_hugepages")? else {
        return Ok(Vec::new());
    };
    let own = evidence.files.sysctl.number("vm.nr_hugepages")?;
    let has_own = own.is_some_and(|(pages, _)| pages > 0);
    let at_boot = evidence.files.boot.iter().any(|line| !line.boot.pools.is_empty());
    if allowed == 0 || has_own || at_boot {
        return Ok(Vec::new());
    }
    let case = on_demand(&format!("{allowed} pages"), "vm.nr_hugepages, or hugepages= at boot");
    let room = Room::of_files(evidence)?;
    let must_have = demands(evidence, &room)
        .into_iter()
        .find(|own| own.strict && own.page.is_none_or(|page| page == room.default));
    Ok(vec![
        case.seen(&line.place, &line.name, allowed)
            .with(must_have, |case, own| {
                case.severity(Severity::Warning).seen_line(&own.seen)
            }),
    ])
}

pub(super) fn several_writers(evidence: &Evidence) -> Answer {
    let name = "vm.nr_hugepages";
    let room = Room::of_files(evidence)?;
    let files = &evidence.files;
    let at_boot = files.boot.iter().filter_map(|line| {
        let pages = line.boot.pages_of(room.default, Some(room.default))?;
        Some(of_boot(&line.place, pages))
    });
    let writers: Vec<Setting> = at_boot.chain(of_files(&files.sysctl)).collect();
    let none = Boot::default();
    let boot = files.boot.last().map_or(&none, |line| &line.boot);
    let case = disagreement(evidence, &writers, boot, room.default).map(|case| match files.sysctl.number(name) {
        Ok(Some((pages, _))) if room.default >= Bytes::gib(1) => {
            case.fix_with(Need::Pool(Bytes::mib(2), pages), counted_in(room.default, pages))
        }
        _ => case,
    });
    let case = match case {
        Some(case) => Some(case),
        None => miscounted(evidence, room.default)?,
    };
    let undone = scripts::undone(evidence, room.default);
    Ok(case.into_iter().chain(undone).collect())
}

/// So much in one pool few machines have; from there on almost none.
const LARGE: Bytes = Bytes::gib(1 << 10);
const ALMOST_NONE: Bytes = Bytes::gib(4 << 10);

/// A count that comes to so much by the default size alone. Of a machine its memory decides.
fn miscounted(evidence: &Evidence, default: Bytes) -> Result<Option<Case>, Reason> {
    let Some((pages, line)) = evidence.files.sysctl.number("vm.nr_hugepages")? else {
        return Ok(None);
    };
    let of = |page: Bytes| Bytes(page.0.saturating_mul(pages));
    let (all, meant) = (of(default), of(Bytes::mib(2)));
    if evidence.has_machine || default < Bytes::gib(1) || all < LARGE {
        return Ok(None);
    }
    let case = Case::likely(format!(
        "{pages} pages of {} are asked for, which is {all} of memory: the kernel takes all that it can get, and leaves programs little",
        default.exact()
    ))
    .info_if(all < ALMOST_NONE)
    .seen_line(line);
    let mut boot = evidence.files.boot.iter().rev();
    let by = boot.find(|own| own.boot.default_size.is_some());
    let case = case.with(by, |case, by| {
        case.seen(&by.place, "default_hugepagesz", default.exact())
    });
    Ok(Some(
        case.fix(format!(
            "for {}, as {pages} pages of 2M are: vm.nr_hugepages = {} at {}",
            meant,
            pages_for(meant, default),
            line.place
        ))
        .fix(counted_in(default, pages)),
    ))
}

/// sysctl counts pages of the default size, which is a large one here.
fn counted_in(default: Bytes, pages: u64) -> String {
    let size = default.exact();
    format!(
        "{name} counts pages of the default size, which default_hugepagesz={size} makes {size}: {pages} of them are {all}. \
         If pages of 2M are meant: leave default_hugepagesz= out, or hugepagesz=2M hugepages={pages} on the boot command line in its place",
        name = "vm.nr_hugepages",
        all = Bytes(default.0.saturating_mul(pages)).exact(),
    )
}

pub(super) fn unsupported(evidence: &Evidence) -> Answer {
    let lines = evidence.files.boot.iter();
    let pools = evidence.snapshot.pools.known().filter(|pools| !pools.is_empty());
    if let Some(pools) = pools.filter(|_| evidence.has_machine) {
        let sizes: Vec<Bytes> = pools.iter().map(|pool| pool.size).collect();
        return Ok(lines
            .flat_map(|line| of_no_size(&line.place, &line.boot, &sizes))
            .collect());
    }
    let ignored = lines.flat_map(|line| line.boot.ignored.iter().map(move |ignored| (line, ignored)));
    let unsupported = ignored.filter(|(_, ignored)| ignored.why == IgnoredWhy::UnsupportedSize);
    let cases = unsupported.map(|(line, ignored)| {
        Case::sure(format!(
            "`{}` and the page count after it are ignored: Linux has no pages of that size on any machine",
            ignored.parameter
        ))
        .seen(&line.place, "", &ignored.parameter)
        .fix("2M and 1G are the sizes of x86-64; of arm64 with pages of 4K, 64K and 32M too: hugepagesz=2M")
    });
    Ok(cases.collect())
}

pub(super) fn order(evidence: &Evidence) -> Answer {
    let lines = evidence.files.boot.iter();
    let cases = lines.flat_map(|line| of_line(evidence, (&line.place, &line.words), &line.boot, None));
    Ok(cases.collect())
}
