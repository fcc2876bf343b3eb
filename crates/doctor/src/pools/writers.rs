//! Several places that set one pool: which of them holds, and which pages the others lose by that.

use host::snapshot::Pool;
use model::Bytes;
use programs::Evidence;
use programs::config::{Boot, Setting, Settings, is_packaged};

use super::missing::at_run_time;
use super::usual::MeantFor2m;
use crate::facts::{default_size, file_name, file_of, known, node_file, persistent, pool_file, pools};
use crate::kept::{apply_again, pool_path};
use crate::remedy::{Need, Remedy, fits_alone};
use crate::rule::{Answer, Case};

/// The line by which a boot line sets a pool.
pub(super) fn of_boot(place: &str, pages: u64) -> Setting {
    Setting::new(place, "hugepages", pages.to_string())
}

/// The lines of files of sysctl settings that set a pool, in their order, without those that the kernel refuses.
pub(super) fn of_files(files: &Settings) -> impl Iterator<Item = Setting> {
    files.taken("vm.nr_hugepages").cloned()
}

fn pages(line: &Setting) -> Option<u64> {
    line.value.parse().ok()
}

pub(super) fn pool_clobbered(evidence: &Evidence) -> Answer {
    let pools = pools(evidence)?;
    let files = known(&evidence.config.sysctl)?;
    let default = default_size(evidence)?;
    let boot = known(&evidence.config.boot)?;
    let at_boot = boot.pages_of(default, Some(default));
    let at_boot = at_boot.map(|pages| of_boot("/proc/cmdline", pages));
    let writers: Vec<Setting> = at_boot.into_iter().chain(of_files(files)).collect();
    // A count that was meant for another size is wrong whatever the others are: A01 says it.
    let own = evidence.snapshot.pool(default);
    let is_meant = own.is_some_and(|pool| MeantFor2m::of(evidence, pool).is_some());
    let own = disagreement(evidence, &writers, boot, default).filter(|_| !is_meant);
    let mut cases: Vec<Case> = own.into_iter().collect();
    cases.extend(pools.iter().filter_map(|pool| cut_later(evidence, pool)));
    cases.extend(pools.iter().filter_map(|pool| overwritten(evidence, pool)));
    Ok(cases)
}

/// Places, in the order in which they are applied, that set the pool of the default size to different values.
pub(super) fn disagreement(evidence: &Evidence, writers: &[Setting], boot: &Boot, default: Bytes) -> Option<Case> {
    let name = "vm.nr_hugepages";
    let last = writers
        .last()
        .filter(|last| writers.iter().any(|own| own.value != last.value))?;
    if let Some(case) = cut_after_boot(evidence, writers, boot, default) {
        return Some(case);
    }
    let place = &last.place;
    let case = Case::sure(format!(
        "{} places set {name} to different values; {place} is applied last, and the pool changes when their order does",
        writers.len()
    ));
    let case = writers.iter().fold(case, Case::seen_line);
    let case = match place.split_once("/usr/lib/tuned/") {
        Some(("", rest)) => return Some(included(case, rest)),
        _ if is_packaged(place) => masked(case, place),
        _ => case.fix(format!(
            "decide on one value; to keep that of {place}, remove the other lines, else remove this one"
        )),
    };
    Some(case.fix(apply_again(evidence, place).unwrap_or("sysctl --system")))
}

/// A sysctl line that is applied after boot, and gives pages of the boot line back.
fn cut_after_boot(evidence: &Evidence, writers: &[Setting], boot: &Boot, default: Bytes) -> Option<Case> {
    let (first, last) = (writers.first()?, writers.last()?);
    let (asked, left) = (pages(first)?, pages(last)?);
    let is_own = !is_packaged(&last.place) && writers.len() == 2;
    if first.name != "hugepages" || left >= asked || !is_own || !fits_alone(evidence, default, asked) {
        return None;
    }
    let (size, place) = (default.exact(), &last.place);
    let case = Case::sure(format!(
        "{} of the {asked} pages of {size} that {} reserves are given back after boot: {place} sets {left}",
        asked - left,
        first.place
    ));
    let other = boot.pools.iter().find_map(|pool| {
        let size = pool.size.filter(|size| *size != default)?;
        (pool.pages.total() == left && left > 0).then_some(size)
    });
    // Nor is the pool to be freed whose count it is.
    let case = writers.iter().fold(case, Case::seen_line);
    let case = case.wants(other.unwrap_or(default));
    let again = format!("then echo {asked} > {}", pool_path(default));
    let need = Need::Pool(default, asked);
    // Of tools that write these files.
    let by_tool = apply_again(evidence, place).filter(|how| *how != "sysctl --system");
    let case = match other.map(Bytes::exact) {
        Some(other) => case
            .fix(format!(
                "remove {place}: {left} is the count of hugepagesz={other}, and vm.nr_hugepages sets the default size, {size}"
            ))
            .fix_with(need, format!("{again}, or reboot")),
        None => case
            .fix(format!(
                "to keep the {asked} of {}: remove {place}, or make it {asked}",
                first.place
            ))
            .fix_with(need, again)
            .fix(format!(
                "to keep {left}: take the count of {size} off the boot command line"
            )),
    };
    Some(case.with(by_tool, |case, how| case.fix(how)))
}

/// What was asked for of a pool at boot or by sysctl, and what a unit, a script or a profile made of it: it has exactly that number.
fn later(evidence: &Evidence, pool: &Pool) -> Option<(Setting, Setting)> {
    let default = default_size(evidence).ok();
    let has = persistent(pool).ok()?;
    let files = evidence.config.sysctl.known().filter(|_| default == Some(pool.size));
    let first = files.and_then(|files| of_files(files).last());
    let boot = || evidence.config.boot.known()?.pages_of(pool.size, default);
    let first = first.or_else(|| Some(of_boot("/proc/cmdline", boot()?)))?;
    let size = pool.size;
    let lines = move || at_run_time(evidence).filter(move |line| line.size.or(default) == Some(size));
    let last = lines().find(|line| line.pages == has && has > 0)?;
    let is_cut = pages(&first).is_some_and(|asked| asked > has && fits_alone(evidence, pool.size, asked));
    // Another such place may ask for as many as the first one.
    let is_only = lines().all(|line| line.pages <= has);
    (is_cut && is_only).then(|| (first, Setting::new(&last.place, "pages", has.to_string())))
}

fn cut_later(evidence: &Evidence, pool: &Pool) -> Option<Case> {
    let (first, last) = later(evidence, pool)?;
    let (asked, size, place) = (pages(&first)?, pool.size.exact(), &last.place);
    let case = Case::sure(format!(
        "{place} leaves {} of the {asked} pages of {size} that {} asks for: it is applied later",
        last.value, first.place
    ))
    .wants(pool.size)
    .seen(pool_file(pool, "nr_hugepages"), "", &pool.nr);
    Some(
        case.seen_line(&first)
            .seen_line(&last)
            .fix(format!("to keep the {asked}: remove {place}, or make it {asked}"))
            .fill_as(pool, asked, |command| format!("then {command}"))
            .fix(format!("to keep {}: lower the request in {}", last.value, first.place)),
    )
}

/// Does the boot line ask for pages of this pool that a later place gave back?
pub(super) fn is_cut(evidence: &Evidence, pool: &Pool) -> bool {
    let default = default_size(evidence).ok();
    let has = persistent(pool).unwrap_or(u64::MAX);
    let boot = evidence.config.boot.known();
    let asked = boot.and_then(|boot| boot.pages_of(pool.size, default));
    let files = evidence.config.sysctl.known().filter(|_| default == Some(pool.size));
    let set = files.and_then(|files| pages(&of_files(files).last()?));
    let by_sysctl =
        set == Some(has) && asked.is_some_and(|asked| asked > has && fits_alone(evidence, pool.size, asked));
    by_sysctl || later(evidence, pool).is_some()
}

/// A package's profile of tuned wins: a file of its name would have to repeat all of it.
fn included(case: Case, rest: &str) -> Case {
    let profile = rest.rsplit_once('/').map_or(rest, |(profile, _)| profile);
    case.fix(format!(
        "the profile {profile} belongs to a package: write one of your own, /etc/tuned/hugepages/tuned.conf, with `[main]`, `include={profile}`, `[sysctl]` and your value"
    ))
    .fix("tuned-adm profile hugepages")
    .fix("or, where reapply_sysctl is on (/etc/tuned/tuned-main.conf, the default): your value in /etc/sysctl.d/99-hugepages.conf, then systemctl restart tuned")
}

/// A package's file wins: the next update brings it again, so it is hidden or outdone, not edited.
fn masked(case: Case, place: &str) -> Case {
    let (file, name) = (file_of(place), file_name(place));
    case.fix(format!(
        "{file} belongs to a package: hide it with a file of its name and the value that you want, /etc/sysctl.d/{name}"
    ))
    .fix(format!(
        "or give your own file a name that is sorted after {name}, such as /etc/sysctl.d/99-hugepages.conf"
    ))
}

/// Was a value that hugewise applied changed by something else?
fn overwritten(evidence: &Evidence, pool: &Pool) -> Option<Case> {
    let applied = evidence.applied.known()?;
    let all = persistent(pool).unwrap_or(0);
    let changed = |(file, now): (String, u64)| {
        let applied = applied.iter().rfind(|applied| applied.path == file)?;
        (applied.value != now.to_string()).then(|| {
            let again = Remedy::new(format!("find the other writer, then: echo {} > {file}", applied.value));
            // A node's part comes to those of the others.
            let pages = applied.value.parse::<u64>().unwrap_or(u64::MAX);
            let need = Need::Pool(pool.size, all.saturating_sub(now).saturating_add(pages));
            Case::sure(format!(
                "hugewise set the pool of {} pages to {}, and it has {now} now: something else writes it too",
                pool.size.exact(),
                applied.value
            ))
            .seen("journal", &applied.path, &applied.value)
            .seen(&file, "", now)
            .remedy(again.need(need))
            .otherwise("find the other writer; memory has no room for what was set beside the other findings")
        })
    };
    let whole = persistent(pool).ok().map(|now| (pool_file(pool, "nr_hugepages"), now));
    let nodes = pool.nodes.known().into_iter().flatten().filter_map(|node| {
        let (nr, surplus) = (node.nr.known()?, node.surplus.or_if_absent(0).ok()?);
        Some((node_file(pool, node.node), nr.saturating_sub(surplus)))
    });
    whole.into_iter().chain(nodes).find_map(changed)
}
