//! Settings themselves: values that nothing takes, and switches that nothing here knows.

use host::snapshot::Feature;
use model::findings::Severity;
use model::{Bytes, Cause, Unread};
use programs::config::given::FileKind;
use programs::config::{BootForm, BootLine, Distribution, Setting, Settings, is_packaged};
use programs::{Evidence, Program};

use super::demand::Room;
use super::facts::{default_size, distribution, each_looked_into, file_name, known, pages_for, running, thp, unit};
use super::kept::{add_boot, apply_again};
use super::links;
use super::remedy::Remedy;
use super::rule::answers::{each, parts};
use super::rule::{Answer, Case, Checks, Reason};
use super::topics::Topic;

mod keys;
mod mounts;
mod surplus;
#[cfg(test)]
mod tests;
mod unheard;

use mounts::{by_scripts, stacked};
use surplus::gigantic_surplus;
use unheard::LOWER;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_both("I01", refused, &FileKind::ALL, refused_in_files),
        Checks::of_machine("I02", unknown),
    ],
};

fn refused(evidence: &Evidence) -> Answer {
    let config = &evidence.config;
    let nothing = |read: Result<(), Unread>| Ok(read.map(|()| Vec::new())?);
    parts([
        lines(evidence),
        units(evidence),
        nothing(config.thp_policy.as_ref().map(drop).or_if_absent(())),
        nothing(config.pool_lines.as_ref().map(drop).or_if_absent(())),
        nothing(config.starter.clone().into_result()),
        known(&config.sysctl).and_then(|sysctl| by_kernel(evidence, sysctl, &default_size(evidence))),
        Ok(stacked(evidence)),
    ])
}

/// Lines of the machine's own files.
fn lines(evidence: &Evidence) -> Answer {
    let of_programs = running(evidence).flat_map(of_program);
    let mut all: Vec<&Unread> = evidence.config.refused.iter().chain(of_programs).collect();
    all.sort_by_key(|why| (&why.place, &why.why));
    // Services of one unit share its file.
    all.dedup();
    let mut cases: Vec<Case> = all.into_iter().map(|why| case(evidence, why)).collect();
    cases.extend(unheard::cases(evidence));
    Ok(cases)
}

/// Could the units of all services be read?
fn units(evidence: &Evidence) -> Answer {
    each_looked_into(evidence, |_, details| {
        details.cgroup.as_ref().map(drop).or_if_absent(())?;
        let unit = details
            .unit
            .as_ref()
            .map(|unit| unit.as_ref().map(drop).or_if_absent(()));
        Ok(unit.transpose()?.and(None))
    })
}

/// Settings that releases of the kernel refuse whatever their value is; of files alone the release is not known.
fn by_kernel(evidence: &Evidence, sysctl: &Settings, default: &Result<Bytes, Reason>) -> Answer {
    let kernel = &evidence.snapshot.kernel;
    let mut cases = keys::of_no_kernel(evidence, sysctl);
    if let Some(line) = sysctl.last("vm.hugepages_treat_as_movable")
        && kernel.has(Feature::NoTreatAsMovable) != Some(false)
    {
        let why = "Linux 4.16 and later have no such setting, and sysctl and tuned report an error";
        let fix = match is_packaged(&line.place) && file_name(&line.place) == "tuned.conf" {
            true => "copy the directory of the profile to /etc/tuned, and remove the line there",
            false => "remove the line",
        };
        cases.push(not_taken(line, why).fix(fix));
    }
    let surplus = gigantic_surplus(evidence, sysctl, default);
    parts([Ok(cases), surplus])
}

fn not_taken(line: &Setting, why: &str) -> Case {
    Case::sure(format!("`{} = {}` is refused: {why}", line.name, line.value)).seen_line(line)
}

/// Lines of its own files, and of its unit.
fn of_program(program: &Program) -> impl Iterator<Item = &Unread> {
    let own = program.details.iter().flat_map(|details| &details.refused);
    own.chain(unit(program).into_iter().flat_map(|unit| &unit.refused))
}

fn refused_in_files(evidence: &Evidence) -> Answer {
    let files = &evidence.files;
    let refused = files.refused();
    let mut cases: Vec<Case> = refused.iter().map(|why| case(evidence, why)).collect();
    cases.extend(files.refusals.iter().map(|own| {
        let case = seen(evidence, &own.unread).fix(&own.fix);
        case.link(Some(own.link))
    }));
    let of_boot = files.boot.iter().rev().find_map(|line| line.boot.default_size);
    let of_machine = default_size(evidence).ok();
    let default = of_boot.or(of_machine).unwrap_or(Bytes::mib(2));
    cases.extend(by_kernel(evidence, &files.sysctl, &Ok(default))?);
    cases.extend(by_scripts(&files.mounts, default));
    cases.extend(vpp_buffers(&files.vpp, of_boot.or(of_machine)));
    cases.extend(vpp_socket_mem(evidence));
    let by_installer = files.boot.iter().filter_map(|line| by_installer(evidence, line));
    cases.extend(by_installer);
    Ok(cases)
}

/// Talos's installer writes a command line for GRUB alone (siderolabs/talos#10339): of a node of Talos it is seen, else it is not known.
fn by_installer(evidence: &Evidence, line: &BootLine) -> Option<Case> {
    let running = evidence.snapshot.kernel.command_line.known();
    let running = running.filter(|_| distribution(evidence) == Distribution::Talos);
    let is_lost = |word: &&str| {
        let is_running = |line: &String| line.split_whitespace().any(|other| other == *word);
        word.contains("huge") && !running.is_some_and(is_running)
    };
    let words: Vec<&str> = line.words.split_whitespace().filter(is_lost).collect();
    if words.is_empty() || line.form != BootForm::ByInstaller {
        return None;
    }
    let words = words.join(" ");
    let case = match running {
        Some(_) => Case::likely(format!(
            "`{words}` is not on the command line of this node: Talos ignores machine.install.extraKernelArgs where systemd-boot starts it (UEFI, installed with 1.10 or later)"
        )),
        None => Case::hint(format!(
            "only nodes that GRUB starts get `{words}`: Talos ignores machine.install.extraKernelArgs where systemd-boot starts it (UEFI, installed with 1.10 or later)"
        ))
        .severity(Severity::Info),
    };
    let fix = Remedy::new(add_boot(evidence, Distribution::Talos, &words)).with_line(evidence, &words);
    let case = case
        .link(Some(links::BOOT))
        .seen(&line.place, "extraKernelArgs", &line.words)
        .remedy(fix);
    Some(case.otherwise(LOWER))
}

/// VPP's buffers are on base pages or on those of its default size (vppinfra/pmalloc.c).
fn vpp_buffers(settings: &[Setting], default: Option<Bytes>) -> Option<Case> {
    let set = |name: &str| settings.iter().rfind(|set| set.name == name);
    let size = |set: &Setting| set.value.parse::<Bytes>().ok();
    let line = set("buffers page-size")?;
    let default = set("memory default-hugepage-size").and_then(size).or(default);
    let is_other = |page: &Bytes| *page >= Bytes::mib(1) && *page != default.unwrap_or(Bytes::mib(2));
    let page = size(line).filter(is_other)?.exact();
    Some(
        match default {
            Some(default) => Case::sure(format!(
                "VPP does not start: its buffers are to be on pages of {page}, and its default size is {}",
                default.exact()
            )),
            None => Case::likely(format!(
                "VPP does not start where the default size is 2M: its buffers are to be on pages of {page}"
            )),
        }
        .seen(&line.place, "page-size", &line.value)
        .fix(format!(
            "default-hugepage-size {page} in the section memory, or default_hugepagesz={page} on the boot command line"
        )),
    )
}

/// What VPP's section dpdk asks for: later releases warn that it is deprecated, and go on (plugins/dpdk/device/init.c).
fn vpp_socket_mem(evidence: &Evidence) -> Option<Case> {
    let line = evidence.files.socket_mem_of_vpp()?;
    let parts: Option<Vec<u64>> = line.value.split(',').map(|mib| mib.parse().ok()).collect();
    let asked = Bytes::mib(parts?.into_iter().fold(0, u64::saturating_add));
    let room = Room::of(evidence).ok()?;
    let has = room
        .filled()
        .map(|(page, (pages, _))| Bytes(page.0.saturating_mul(*pages)));
    let has: Bytes = has.sum();
    if has >= asked {
        return None;
    }
    let pages = pages_for(asked, room.default);
    let case = Case::hint(format!(
        "an older VPP does not start: its socket-mem asks for {asked} ({pages} pages of {}), and the pools have {has}; later releases ignore that line",
        room.default.exact()
    ))
    .severity(Severity::Info)
    .seen(&line.place, "socket-mem", &line.value);
    Some(case.fix("leave socket-mem out where VPP warns that it is deprecated; an older VPP needs pools of that size"))
}

fn case(evidence: &Evidence, why: &Unread) -> Case {
    let place = &why.place;
    let is_of_jvm = why.why.starts_with("the JVM does not start");
    let again = match apply_again(evidence, place) {
        Some(command) => format!("then: {command}"),
        None if is_of_jvm => "start the JVM anew".to_owned(),
        None => "apply it again".to_owned(),
    };
    let correct = match is_outside(evidence, place) {
        true => format!("write [Service] above {place}"),
        false => format!("correct {place}"),
    };
    let link = is_of_jvm.then_some(links::JAVA).or_else(|| links::of_file(place));
    let case = seen(evidence, why).with(link, |case, link| case.link(Some(link)));
    case.fix(format!("{correct}, and {again}"))
}

/// Is it a limit of a unit that is not in a section?
fn is_outside(evidence: &Evidence, place: &str) -> bool {
    let of_programs = running(evidence).filter_map(unit);
    let given = evidence.files.services.iter().map(|service| &service.unit);
    let mut lines = of_programs.chain(given).filter_map(|unit| unit.outside.as_ref());
    lines.any(|line| line.place == place)
}

/// With the line as it is there, where it is one of settings, and the documentation of what reads it.
fn seen(evidence: &Evidence, why: &Unread) -> Case {
    let Unread { place, why, unread } = why;
    let lines = evidence.files.written_at(place);
    let line = lines.iter().find(|(_, line)| why.contains(&line.name));
    let seen = match unread {
        Cause::Garbled => "refused or ignored",
        _ => "could not be read",
    };
    let case = match line {
        Some((kind, line)) => Case::sure(why).seen_line(line).link(kind.and_then(links::of_server)),
        None => Case::sure(why).seen(place, "", seen),
    };
    case.when(why.contains("not start"), |case| case.severity(Severity::Error))
}

fn unknown(evidence: &Evidence) -> Answer {
    each([newer(evidence), switches(evidence)], |case| case)
}

/// A release of which changes are not known here.
fn newer(evidence: &Evidence) -> Result<Option<Case>, Reason> {
    let release = known(&evidence.snapshot.kernel.release)?;
    let beyond = evidence.snapshot.kernel.beyond_known();
    Ok(beyond.map(|(_, [major, minor])| {
        Case::hint(format!(
            "this kernel is newer than the releases that hugewise knows (up to {major}.{minor}): findings about THP are those of older ones"
        ))
        .seen("/proc/sys/kernel/osrelease", "", release)
        .fix("look for a newer version of hugewise")
    }))
}

fn switches(evidence: &Evidence) -> Result<Option<Case>, Reason> {
    let thp = thp(evidence)?;
    known(&thp.enabled)?;
    let Some(first) = thp.unknown.first() else {
        return Ok(None);
    };
    let case = Case::hint(format!(
        "this kernel has settings of THP that hugewise does not know, and that may change what the others mean: {}",
        thp.unknown.join(", ")
    ));
    let files = thp
        .unknown
        .iter()
        .take(4)
        .map(|name| format!("{}/{name}", thp.directory));
    let case = files.fold(case, |case, file| case.seen(file, "", "not known"));
    Ok(Some(case.fix(format!(
        "read what it does in that kernel's transhuge.rst, and its value: cat {}/{first}",
        thp.directory
    ))))
}
