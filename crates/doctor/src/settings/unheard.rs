//! Lines that are right and come to nothing, as nothing reads them.

use programs::Evidence;
use programs::config::{Distribution, Unheard, UnheardWhy};

use crate::facts::{default_size, distribution, file_of, persistent};
use crate::kept::{add_boot, boot_again, boot_fix, entry_fix};
use crate::links;
use crate::remedy::{Need, Remedy};
use crate::rule::Case;

pub(super) fn cases(evidence: &Evidence) -> Vec<Case> {
    let is_misnamed = |line: &&Unheard| line.why == UnheardWhy::SysctlName;
    let (misnamed, others): (Vec<_>, Vec<_>) = evidence.config.unheard.iter().partition(is_misnamed);
    let others = others.into_iter().filter_map(|line| unheard(evidence, line));
    // One file is renamed once, whatever it sets.
    let of_files = misnamed.chunk_by(|a, b| file_of(&a.place) == file_of(&b.place));
    let misnamed = of_files.filter_map(|lines| named_wrong(evidence, lines));
    others.chain(misnamed).collect()
}

/// In place of a fix for which there is no memory.
pub(super) const LOWER: &str =
    "lower its count first: beside the other findings of this report the machine has no room for it";

/// The words without those that the running kernel was started with, if any are left.
fn not_running(evidence: &Evidence, words: &str) -> Option<String> {
    let running = evidence.snapshot.kernel.command_line.known().map_or("", String::as_str);
    let is_running = |word: &str| running.split_whitespace().any(|other| other == word);
    let words: Vec<&str> = words.split(' ').filter(|word| !is_running(word)).collect();
    let words = words.join(" ");
    let is_left = !words.is_empty() && !is_running(&as_parameter(&words));
    is_left.then_some(words)
}

/// A line that is right and comes to nothing. What the running kernel was started with all the same came another way.
fn unheard(evidence: &Evidence, Unheard { place, words, why }: &Unheard) -> Option<Case> {
    let words = not_running(evidence, words)?;
    // systemd is to change that of images (systemd/systemd#43781).
    let own = distribution(evidence);
    let new: fn(String) -> Case = match why {
        UnheardWhy::ImageConf | UnheardWhy::PerhapsByCommand => Case::likely,
        UnheardWhy::NoGrub if is_by_files(own) => Case::likely,
        _ => Case::sure,
    };
    let case = |what: &str| new(format!("`{words}` has no effect: {what}")).seen(place, "", &words);
    let of_boot = |what: &str| case(what).link(Some(links::BOOT));
    let fix = |text: String| Remedy::new(text).with_line(evidence, &words);
    let by_entry = |what: &str| of_boot(what).remedy(fix(entry_fix(evidence, &words))).otherwise(LOWER);
    Some(match why {
        UnheardWhy::AssignedAnew { variable, by } => of_boot(&format!(
            "{by} is read later, and assigns {variable} without its old value"
        ))
        .remedy(fix(format!(
            "write it in a file of /etc/default/grub.d that is read last: {variable}=\"${variable} {words}\""
        )))
        .remedy(fix(boot_again(evidence, &words)))
        .otherwise(LOWER),
        UnheardWhy::OwnVariable => of_boot(
            "it is a shell variable of its own there, and only GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT come to the kernel",
        )
        .remedy(match words.contains("transparent_hugepage=") {
            true => fix(add_boot(evidence, own, &words)).need(Need::HasThp),
            false => fix(add_boot(evidence, own, &words)),
        })
        .fix(format!("delete it at {place}")),
        UnheardWhy::Semicolon => of_boot(Unheard::AT_SEMICOLON)
            .remedy(fix(Unheard::ESCAPED.to_owned()))
            .otherwise(LOWER),
        UnheardWhy::BootEntries => by_entry(
            "kernels are started here by the entries of /boot/loader/entries, and those lack it; the defaults of GRUB are for kernels that are installed later",
        ),
        UnheardWhy::NoGrub => by_entry(without_grub(own)),
        UnheardWhy::ImageConf => by_entry(
            "kernel-install and mkinitcpio pass a command line of their own, from /etc/kernel/cmdline or the running kernel, which overrides this file's",
        ),
        UnheardWhy::NoSystemd | UnheardWhy::PerhapsByCommand => case(without_systemd(why))
            .fix(boot_fix(evidence, &as_parameter(&words)))
            .fix("or systemd=true below [boot] in /etc/wsl.conf, then: wsl --shutdown"),
        // Files with a wrong name have a case each.
        UnheardWhy::SysctlConf | UnheardWhy::SysctlName => {
            let case = case("this release of Debian reads the files of sysctl.d at boot, and not this one");
            moved(case, evidence, why, &words)
        }
    })
}

/// With the way to have it in a file that is read.
fn moved(case: Case, evidence: &Evidence, why: &UnheardWhy, words: &str) -> Case {
    let file = "/etc/sysctl.d/60-hugepages.conf";
    let case = case.fix(format!("move it to a file of its own: echo '{words}' >> {file}"));
    let like_it = evidence.config.unheard.iter().filter(|line| line.why == *why);
    let all: Vec<&str> = like_it.map(|line| &*line.words).collect();
    applied(case, evidence, file, &all)
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
    let case = case.fix(match is_there {
        true => format!("add its lines to {right}, which is there already"),
        false => format!("mv -n {file} {right} (where {right} is there already, add the lines to it)"),
    });
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
        (Ok(pages), Some(now)) if pages >= now => case.remedy(command.need(Need::Pool(page, pages))),
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
