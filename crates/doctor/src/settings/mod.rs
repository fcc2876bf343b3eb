//! Settings themselves: values that nothing takes, and switches that nothing here knows.

use host::snapshot::Feature;
use model::findings::Severity;
use model::{Bytes, Cause, Unread};
use programs::config::given::FileKind;
use programs::config::{BootLine, Distribution, Setting, Settings, Unheard, UnheardWhy};
use programs::{Evidence, Program};

use super::demand::Room;
use super::facts::{apply_again, boot_again, default_size, distribution, each, entry_fix, known, parts, thp};
use super::remedy::Remedy;
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
    cases.extend(
        evidence
            .config
            .unheard
            .iter()
            .filter_map(|line| unheard(evidence, line)),
    );
    Ok(cases)
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
    let new: fn(String) -> Case = match why {
        UnheardWhy::ImageConf => Case::likely,
        _ => Case::sure,
    };
    let link = match why {
        UnheardWhy::SysctlConf | UnheardWhy::SysctlName | UnheardWhy::NoSystemd => None,
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
        UnheardWhy::NoGrub => by_entry(without_grub(distribution(evidence))),
        UnheardWhy::ImageConf => by_entry(
            "kernel-install and mkinitcpio pass a command line of their own, from /etc/kernel/cmdline or the running kernel, which overrides this file's",
        ),
        UnheardWhy::SysctlConf | UnheardWhy::SysctlName | UnheardWhy::NoSystemd => {
            sysctl_unheard(evidence, why, place, &words, case)
        }
    })
}

/// The same of a sysctl setting.
fn sysctl_unheard(
    evidence: &Evidence,
    why: &UnheardWhy,
    place: &str,
    words: &str,
    case: impl Fn(&str) -> Case,
) -> Case {
    match why {
        UnheardWhy::SysctlName => {
            let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
            case("files of sysctl.d are read whose names end in .conf, and this one's does not")
                .fix(format!("mv {file} {file}.conf && sysctl -p {file}.conf"))
        }
        UnheardWhy::NoSystemd => case("WSL starts no systemd here, and nothing else reads sysctl settings at start")
            .fix(distribution(evidence).add_boot_parameters(&as_parameter(words)))
            .fix("or systemd=true below [boot] in /etc/wsl.conf, then: wsl --shutdown"),
        _ => case("this release of Debian reads the files of sysctl.d at boot, and not this one")
            .fix(format!(
                "move it to a file of its own: echo '{words}' >> /etc/sysctl.d/60-hugepages.conf"
            ))
            .fix("sysctl -p /etc/sysctl.d/60-hugepages.conf"),
    }
}

/// `vm.nr_hugepages = 4` as a boot parameter (Linux 5.8 and later).
fn as_parameter(words: &str) -> String {
    format!("sysctl.{}", words.replace(" = ", "="))
}

/// Why nothing reads the defaults of GRUB.
fn without_grub(own: Distribution) -> &'static str {
    match own {
        Distribution::SuseEntries => {
            "sdbootutil writes the boot entries here, from /etc/kernel/cmdline, and nothing reads the defaults of GRUB"
        }
        Distribution::UnifiedImage => {
            "this kernel was started as a unified kernel image, whose command line is part of it, and nothing reads the defaults of GRUB"
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
