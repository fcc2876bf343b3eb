//! Pools as boot parameters and sysctl files ask for them.

use host::config::given::{BootLine, FileKind};
use host::config::{Ignored, IgnoredWhy};
use model::Bytes;

use super::demand::Room;
use super::{Check, Scope};
use crate::pools::asked::disagreement;
use crate::pools::boot::{is_out_of_order, no_effect};
use crate::rule::{Answer, Case};

const BOTH: &[FileKind] = &[FileKind::Cmdline, FileKind::Sysctl];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "A05",
        of: BOTH,
        look: wrong_default,
    },
    Check {
        id: "A08",
        of: &[FileKind::Sysctl],
        look: overcommit_only,
    },
    Check {
        id: "A12",
        of: BOTH,
        look: several_writers,
    },
    Check {
        id: "A13",
        of: &[FileKind::Cmdline],
        look: unsupported,
    },
    Check {
        id: "A14",
        of: &[FileKind::Cmdline],
        look: order,
    },
    Check {
        id: "B05",
        of: &[FileKind::Sysctl],
        look: shm_limits,
    },
];

fn wrong_default(scope: &Scope<'_>) -> Answer {
    let room = Room::of(scope)?;
    let default = room.default.exact();
    if room.pages(room.default) > 0 {
        return Ok(Vec::new());
    }
    let others = room.filled().map(|(page, (pages, place))| {
        let size = page.exact();
        Case::likely(format!(
            "programs that name no size ask for pages of {default} and find none, while {} of pages of {size} are set aside",
            Bytes(page.0.saturating_mul(*pages))
        ))
        .seen(place, format!("pages of {size}"), pages)
        .seen(place, format!("pages of {default}, the default size"), 0)
        .fix(format!("name the size in the program: huge_page_size={size}B (PostgreSQL), -XX:LargePageSizeInBytes={size} (Java)"))
        .fix(format!("or default_hugepagesz={size} on the boot command line"))
    });
    Ok(others.collect())
}

fn overcommit_only(scope: &Scope<'_>) -> Answer {
    let Some((allowed, line)) = scope.given.sysctl.number("vm.nr_overcommit_hugepages")? else {
        return Ok(Vec::new());
    };
    let own = scope
        .given
        .sysctl
        .number("vm.nr_hugepages")?
        .map_or(0, |(pages, _)| pages);
    let at_boot = scope.given.boot.iter().any(|line| !line.boot.pools.is_empty());
    if allowed == 0 || own > 0 || at_boot {
        return Ok(Vec::new());
    }
    let case = Case::likely(format!(
        "up to {allowed} pages exist only if memory is unbroken when they are asked for: none is set aside"
    ))
    .seen(&line.place, &line.name, allowed)
    .fix("set pages aside for what must have them at start: vm.nr_hugepages, or hugepages= at boot");
    Ok(vec![case])
}

fn several_writers(scope: &Scope<'_>) -> Answer {
    let name = "vm.nr_hugepages";
    let room = Room::of_files(scope.given)?;
    let at_boot = scope.given.boot.iter().filter_map(|line| {
        let pages = line.boot.pages_of(room.default, Some(room.default))?;
        Some((line.place.clone(), pages.to_string()))
    });
    let in_files = scope
        .given
        .sysctl
        .all(name)
        .map(|line| (line.place.clone(), line.value.clone()));
    let writers: Vec<(String, String)> = at_boot.chain(in_files).collect();
    Ok(disagreement(&writers).into_iter().collect())
}

fn ignored(scope: &Scope<'_>, ours: fn(IgnoredWhy) -> bool, case: fn(&BootLine, &Ignored) -> Case) -> Answer {
    let lines = scope.given.boot.iter();
    let ignored = lines.flat_map(|line| line.boot.ignored.iter().map(move |ignored| (line, ignored)));
    let ours = ignored.filter(|(_, ignored)| ours(ignored.why));
    Ok(ours.map(|(line, ignored)| case(line, ignored)).collect())
}

fn unsupported(scope: &Scope<'_>) -> Answer {
    ignored(
        scope,
        |why| why == IgnoredWhy::UnsupportedSize,
        |line, ignored| {
            Case::sure(format!(
                "`{}` and the page count after it are ignored: no machine that Linux runs on has such pages",
                ignored.parameter
            ))
            .seen(&line.place, "", &ignored.parameter)
            .fix("2M and 1G are the sizes of x86-64; of arm64 with pages of 4K, 64K and 32M too: hugepagesz=2M")
        },
    )
}

fn order(scope: &Scope<'_>) -> Answer {
    ignored(scope, is_out_of_order, |line, ignored| no_effect(&line.place, ignored))
}

fn shm_limits(scope: &Scope<'_>) -> Answer {
    let room = Room::of(scope)?;
    let pool = Bytes(room.pages(room.default).saturating_mul(room.default.0));
    let in_pages = |pages: u64| pages.saturating_mul(4096);
    let mut cases = Vec::new();
    for (name, bytes) in [
        ("kernel.shmmax", (|bytes| bytes) as fn(u64) -> u64),
        ("kernel.shmall", in_pages),
    ] {
        let Some((limit, line)) = scope.given.sysctl.number(name)? else {
            continue;
        };
        if pool.0 > 0 && bytes(limit) < pool.0 {
            cases.push(
                Case::likely(format!(
                    "System V segments cannot use the pool of {pool}: {name} allows {}",
                    Bytes(bytes(limit))
                ))
                .severity(model::findings::Severity::Warning)
                .seen(&line.place, name, limit)
                .fix(format!(
                    "take {name} out: the kernel's default has been as good as unlimited since Linux 3.16"
                )),
            );
        }
    }
    Ok(cases)
}
