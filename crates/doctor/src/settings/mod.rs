//! Settings themselves: values that nothing takes, and switches that nothing here knows.

use host::snapshot::Feature;
use model::findings::Severity;
use model::{Bytes, Cause, Unread};
use programs::config::given::FileKind;
use programs::config::{BootLine, Distribution, Setting, Settings, Unheard, UnheardWhy};
use programs::{Evidence, Program};

use super::demand::Room;
use super::facts::{
    apply_again, boot_again, default_size, distribution, each, entry_fix, known, parts, persistent, thp,
};
use super::remedy::{Need, Remedy};
use super::rule::{Answer, Case, Checks, Reason};
use super::topic::Topic;

mod keys;
#[cfg(test)]
mod tests;

pub(super) const TOPIC: Topic = Topic {
    words: include_str!("rules.toml"),
    checks: &[
        Checks::of_both("I01", refused, &FileKind::ALL, refused_in_files),
        Checks::of_machine("I02", unknown),
    ],
};

fn refused(evidence: &Evidence) -> Answer {
    let config = &evidence.config;
    let sysctl = known(&config.sysctl)?;
    let policies = config.thp_policy.as_ref().map(drop).or_if_absent(());
    let pools = config.pool_lines.as_ref().map(drop).or_if_absent(());
    parts([
        lines(evidence),
        policies.map(|()| Vec::new()).map_err(Reason::from),
        pools.map(|()| Vec::new()).map_err(Reason::from),
        config
            .starter
            .as_ref()
            .map(|()| Vec::new())
            .into_result()
            .map_err(Reason::from),
        by_kernel(evidence, sysctl, default_size(evidence)),
    ])
}

/// Lines of the machine's own files.
fn lines(evidence: &Evidence) -> Answer {
    let programs = evidence.programs.known().into_iter().flatten();
    let of_programs = programs.flat_map(of_program);
    let mut all: Vec<&Unread> = evidence.config.refused.iter().chain(of_programs).collect();
    all.sort_by_key(|why| (&why.place, &why.why));
    // Services of one unit share its file.
    all.dedup();
    let mut cases: Vec<Case> = all.into_iter().map(|why| case(evidence, why)).collect();
    let is_misnamed = |line: &&Unheard| line.why == UnheardWhy::SysctlName;
    let (misnamed, others): (Vec<_>, Vec<_>) = evidence.config.unheard.iter().partition(is_misnamed);
    cases.extend(others.into_iter().filter_map(|line| unheard(evidence, line)));
    // One file is renamed once, whatever it sets.
    let of_files = misnamed.chunk_by(|a, b| file_of(&a.place) == file_of(&b.place));
    cases.extend(of_files.filter_map(|lines| named_wrong(evidence, lines)));
    Ok(cases)
}

fn file_of(place: &str) -> &str {
    place.rsplit_once(':').map_or(place, |(file, _)| file)
}

/// Settings that releases of the kernel refuse whatever their value is; of files alone the release is not known.
fn by_kernel(evidence: &Evidence, sysctl: &Settings, default: Result<Bytes, Reason>) -> Answer {
    let kernel = &evidence.snapshot.kernel;
    let mut cases = keys::of_no_kernel(evidence, sysctl);
    let refused = |line: &Setting, why: &str, fix: &str| {
        Case::sure(format!("`{} = {}` is refused: {why}", line.name, line.value))
            .seen(&line.place, &line.name, &line.value)
            .fix(fix)
    };
    if let Some(line) = sysctl.last("vm.hugepages_treat_as_movable")
        && kernel.has(Feature::NoTreatAsMovable) != Some(false)
    {
        let why = "Linux 4.16 and later have no such setting, and sysctl and tuned report an error";
        cases.push(refused(line, why, "remove the line"));
    }
    let surplus = sysctl
        .last("vm.nr_overcommit_hugepages")
        .filter(|line| line.value != "0");
    if let Some(line) = surplus
        && kernel.has(Feature::GiganticSurplus) != Some(true)
    {
        match default {
            Ok(default) if default >= Bytes::gib(1) => {}
            Ok(_) => return Ok(cases),
            Err(reason) => return parts([Ok(cases), Err(reason)]),
        }
        let why = "it is for the default size, and pages of 1G and more cannot be surplus pages before Linux 6.19";
        let fix = "set the pool itself: hugepages= on the boot line, or vm.nr_hugepages; or make 2M the default size";
        cases.push(refused(line, why, fix));
    }
    Ok(cases)
}

/// Where to read of parameters of the boot command line.
const OF_BOOT: &str = "https://docs.kernel.org/admin-guide/kernel-parameters.html";

/// In place of a fix for which there is no memory.
const LOWER: &str = "lower its count first: beside the other findings of this report the machine has no room for it";

/// A line that is right and comes to nothing. What the running kernel was started with all the same came another way.
fn unheard(evidence: &Evidence, Unheard { place, words, why }: &Unheard) -> Option<Case> {
    let running = evidence.snapshot.kernel.command_line.known().map_or("", String::as_str);
    let is_running = |word: &str| running.split_whitespace().any(|other| other == word);
    let words: Vec<&str> = words.split(' ').filter(|word| !is_running(word)).collect();
    if words.is_empty() {
        return None;
    }
    let words = words.join(" ");
    if is_running(&as_parameter(&words)) {
        return None;
    }
    // systemd is to change that of images (systemd/systemd#43781).
    let own = distribution(evidence);
    let new: fn(String) -> Case = match why {
        UnheardWhy::ImageConf | UnheardWhy::PerhapsByCommand => Case::likely,
        UnheardWhy::NoGrub if is_by_files(own) => Case::likely,
        _ => Case::sure,
    };
    let link = match why {
        UnheardWhy::SysctlConf | UnheardWhy::SysctlName => None,
        UnheardWhy::NoSystemd | UnheardWhy::PerhapsByCommand => None,
        _ => Some(OF_BOOT),
    };
    let case = |what: &str| {
        let case = new(format!("`{words}` has no effect: {what}"));
        case.link(link).seen(place, "", &words)
    };
    let fix = |text: String| Remedy::new(text).with_line(evidence, &words);
    let by_entry = |what: &str| case(what).remedy(fix(entry_fix(evidence, &words))).otherwise(LOWER);
    Some(match why {
        UnheardWhy::AssignedAnew { variable, by } => case(&format!(
            "{by} is read later, and assigns {variable} without its old value"
        ))
        .remedy(fix(format!(
            "write it in a file of /etc/default/grub.d that is read last: {variable}=\"${variable} {words}\""
        )))
        .remedy(fix(boot_again(evidence, &words)))
        .otherwise(LOWER),
        UnheardWhy::BootEntries => by_entry(
            "kernels are started here by the entries of /boot/loader/entries, and those lack it; the defaults of GRUB are for kernels that are installed later",
        ),
        UnheardWhy::NoGrub => by_entry(without_grub(own)),
        UnheardWhy::ImageConf => by_entry(
            "kernel-install and mkinitcpio pass a command line of their own, from /etc/kernel/cmdline or the running kernel, which overrides this file's",
        ),
        UnheardWhy::NoSystemd | UnheardWhy::PerhapsByCommand => case(without_systemd(why))
            .fix(distribution(evidence).add_boot_parameters(&as_parameter(&words)))
            .fix("or systemd=true below [boot] in /etc/wsl.conf, then: wsl --shutdown"),
        // Files with a wrong name have a case each.
        UnheardWhy::SysctlConf | UnheardWhy::SysctlName => {
            let file = "/etc/sysctl.d/60-hugepages.conf";
            let case = case("this release of Debian reads the files of sysctl.d at boot, and not this one")
                .fix(format!("move it to a file of its own: echo '{words}' >> {file}"));
            let like_it = evidence.config.unheard.iter().filter(|line| line.why == *why);
            let all: Vec<&str> = like_it.map(|line| &*line.words).collect();
            applied(case, evidence, file, &all)
        }
    })
}

fn without_systemd(why: &UnheardWhy) -> &'static str {
    match why {
        UnheardWhy::PerhapsByCommand => {
            "WSL starts no systemd here, and reads sysctl settings at start only if the command of /etc/wsl.conf does"
        }
        _ => "WSL starts no systemd here, and nothing else reads sysctl settings at start",
    }
}

/// Lines of one file of sysctl.d whose name lacks its end.
fn named_wrong(evidence: &Evidence, lines: &[&Unheard]) -> Option<Case> {
    let file = file_of(&lines.first()?.place);
    let right = format!("{file}.conf");
    let running = evidence.snapshot.kernel.command_line.known().map_or("", String::as_str);
    let is_running = |words: &str| running.split_whitespace().any(|word| word == as_parameter(words));
    let lines = lines.iter().filter(|line| !is_running(&line.words));
    let (words, places): (Vec<&str>, Vec<&str>) = lines.map(|line| (&*line.words, &*line.place)).unzip();
    let all = words.iter().map(|words| format!("`{words}`")).collect::<Vec<_>>();
    let has = if all.len() == 1 { "has" } else { "have" };
    let case = Case::sure(format!(
        "{} {has} no effect: files of sysctl.d are read whose names end in .conf, and this one's does not",
        all.join(" and ")
    ));
    let seen = places.iter().zip(&words);
    let case = seen.fold(case, |case, (place, words)| case.seen(*place, "", *words));
    let settings = evidence.config.sysctl.known();
    let is_there = settings.is_some_and(|all| all.iter().any(|line| file_of(&line.place) == right));
    let case = match is_there {
        true => case.fix(format!("add its lines to {right}, which is there already")),
        false => case.fix(format!(
            "mv -n {file} {right} (where {right} is there already, add the lines to it)"
        )),
    };
    (!words.is_empty()).then(|| applied(case, evidence, &right, &words))
}

/// With the command that applies a file of these settings, unless it takes pages off a pool that runs.
fn applied(case: Case, evidence: &Evidence, file: &str, words: &[&str]) -> Case {
    let command = Remedy::new(format!("sysctl -p {file}"));
    let pool = |words: &&&str| words.starts_with("vm.nr_hugepages = ");
    let Some(asked) = words.iter().rev().find(pool) else {
        return case.remedy(command);
    };
    let asked = asked.rsplit(' ').next().unwrap_or_default();
    let page = default_size(evidence).unwrap_or_default();
    let now = evidence.snapshot.pool(page).and_then(|pool| persistent(pool).ok());
    match (asked.parse::<u64>(), now) {
        (Ok(pages), Some(now)) if pages >= now => case.remedy(command.need(Need::Pool { page, pages })),
        (Ok(pages), Some(now)) => case.fix(format!(
            "the pool has {now} pages now, and `sysctl -p` would leave {pages}: raise the number there to keep them"
        )),
        _ => case,
    }
}

/// `vm.nr_hugepages = 4` as a boot parameter (Linux 5.8 and later).
fn as_parameter(words: &str) -> String {
    format!("sysctl.{}", words.replace(" = ", "="))
}

/// Do files alone show what starts the machine, and not the boot line?
fn is_by_files(own: Distribution) -> bool {
    matches!(
        own,
        Distribution::UnifiedImage | Distribution::Extlinux | Distribution::Armbian
    )
}

/// Why nothing reads the defaults of GRUB.
fn without_grub(own: Distribution) -> &'static str {
    match own {
        Distribution::SuseEntries => {
            "sdbootutil writes the boot entries here, from /etc/kernel/cmdline, and nothing reads the defaults of GRUB"
        }
        Distribution::UnifiedImage => {
            "kernel-install makes unified kernel images here, whose command line is part of them, and nothing reads the defaults of GRUB"
        }
        Distribution::Extlinux | Distribution::Armbian => {
            "U-Boot starts this machine, and nothing reads the defaults of GRUB"
        }
        _ => {
            "this kernel was started by EFI and not by GRUB (`initrd=\\...` on its line), whose files nothing reads here"
        }
    }
}

/// Lines of its own files, and of its unit.
fn of_program(program: &Program) -> impl Iterator<Item = &Unread> {
    let details = program.details.iter();
    details.flat_map(|details| {
        let unit = details.unit.as_ref().and_then(|unit| unit.known());
        details
            .refused
            .iter()
            .chain(unit.into_iter().flat_map(|unit| &unit.refused))
    })
}

fn refused_in_files(evidence: &Evidence) -> Answer {
    let files = &evidence.files;
    let refused = files.refused();
    let mut cases: Vec<Case> = refused.iter().map(|why| case(evidence, why)).collect();
    cases.extend(files.refusals.iter().map(|own| {
        let case = seen(&own.unread).fix(&own.fix);
        case.link(Some(own.link))
    }));
    let of_boot = files.boot.iter().rev().find_map(|line| line.boot.default_size);
    let of_machine = default_size(evidence).ok().filter(|_| evidence.has_machine);
    let default = of_boot.or(of_machine).unwrap_or(Bytes::mib(2));
    cases.extend(by_kernel(evidence, &files.sysctl, Ok(default))?);
    cases.extend(vpp_buffers(&files.vpp, of_boot.or(of_machine)));
    cases.extend(vpp_socket_mem(evidence));
    cases.extend(
        files
            .by_installer
            .iter()
            .filter_map(|line| by_installer(evidence, line)),
    );
    Ok(cases)
}

/// Talos's installer writes a command line for GRUB alone (siderolabs/talos#10339): of a node of Talos it is seen, else it is not known.
fn by_installer(evidence: &Evidence, line: &BootLine) -> Option<Case> {
    let running = evidence
        .snapshot
        .kernel
        .command_line
        .known()
        .filter(|_| evidence.has_machine && distribution(evidence) == Distribution::Talos);
    let is_lost = |word: &&str| {
        let is_running = |line: &String| line.split_whitespace().any(|other| other == *word);
        word.contains("huge") && !running.is_some_and(is_running)
    };
    let words: Vec<&str> = line.words.split_whitespace().filter(is_lost).collect();
    if words.is_empty() {
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
    let fix = Remedy::new(Distribution::Talos.add_boot_parameters(&words)).with_line(evidence, &words);
    let case = case
        .link(Some(OF_BOOT))
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
    let line = evidence.files.of_vpp("dpdk socket-mem")?;
    let parts: Option<Vec<u64>> = line.value.split(',').map(|mib| mib.parse().ok()).collect();
    let asked = Bytes::mib(parts?.into_iter().fold(0, u64::saturating_add));
    let room = Room::of(evidence).ok()?;
    let has = room.filled().map(|(page, (pages, _))| page.0.saturating_mul(*pages));
    let has = Bytes(has.fold(0, u64::saturating_add));
    if has >= asked {
        return None;
    }
    let pages = asked.0.div_ceil(room.default.0.max(1));
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
    let again =
        apply_again(evidence, place).map_or_else(|| "apply it again".to_owned(), |command| format!("then: {command}"));
    seen(why).fix(format!("correct {place}, and {again}"))
}

fn seen(why: &Unread) -> Case {
    let Unread { place, why, unread } = why;
    let seen = if *unread == Cause::Garbled {
        "refused or ignored"
    } else {
        "could not be read"
    };
    Case::sure(why).seen(place, "", seen)
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
