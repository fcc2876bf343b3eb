//! The kernel's command line in the defaults of GRUB: /etc/default/grub, and the files of grub.d that are read after it. systemd-boot has another file.

mod defaults;

use host::Source;
use model::Unread;

use super::files::{Line, all_in, content, first, listed, said};
use super::{BootForm, BootLine, Distribution, Unheard, UnheardWhy};
use defaults::{assignment, assignments, cut, is_open, values};
pub(super) use defaults::{cut_off, in_grub, is_of_pages, parameter, stray, unresolved};

/// In the order in which they come to the kernel.
const GRUB: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];
/// Where these are, the kernel's command line is theirs, and the defaults are for kernels that are installed later.
const ENTRIES: &str = "/boot/loader/entries";
/// What kernel-install and proxmox-boot-tool make entries of.
const CMDLINE: &str = "/etc/kernel/cmdline";
/// Settings of unified kernel images, whose `Cmdline=` kernel-install and others overrule (systemd/systemd#39373).
const UKI: &str = "/etc/kernel/uki.conf";
/// Variables that entries name.
const VARIABLES: &str = "/boot/grub2/grubenv";

/// What the defaults of GRUB come to.
#[derive(Default)]
pub(super) struct Grub {
    /// The command line that GRUB's scripts write for the next boot; `None` where they do not, or say nothing of it.
    pub(super) next_boot: Option<BootLine>,
    /// What is written there about huge pages, and comes to no kernel.
    pub(super) unheard: Vec<Unheard>,
}

pub(super) fn read(source: &Source) -> Result<Grub, Unread> {
    let files = files(source)?;
    let lines: Vec<Line<'_>> = files.iter().flat_map(|(path, text)| said(path, text, &['#'])).collect();
    let mut grub = of_lines(source, &lines)?;
    grub.unheard.extend(
        stray(&lines)
            .into_iter()
            .map(|(line, words)| Unheard::of(&line, words, UnheardWhy::OwnVariable)),
    );
    Ok(grub)
}

/// The defaults of GRUB, each file with its path.
fn files(source: &Source) -> Result<Vec<(String, String)>, Unread> {
    let mut more = all_in(source, "/etc/default/grub.d", |name| name.ends_with(".cfg"))?;
    more.sort();
    let own = first(source, ["/etc/default/grub".to_owned()])?;
    Ok(own
        .into_iter()
        .chain(more.into_iter().map(|(_, path, text)| (path, text)))
        .collect())
}

fn of_lines(source: &Source, lines: &[Line<'_>]) -> Result<Grub, Unread> {
    // Of words that only a run of GRUB's scripts shows nothing is said.
    let in_grub = values(lines).filter(|(_, words)| !words.split_whitespace().any(is_open));
    let listed_entries = listed(source, ENTRIES);
    let starter = Distribution::by_start(source).filter(|_| listed_entries.as_ref().is_ok_and(Vec::is_empty));
    if starter.is_some_and(Distribution::is_without_grub) {
        return without_grub(source, in_grub);
    }
    let Some((line, words)) = in_grub else {
        return Ok(Grub::default());
    };
    if listed_entries?.is_empty() {
        let (heard, lost) = cut(&words);
        let lost = lost.map(|lost| Unheard::of(&line, lost, UnheardWhy::Semicolon));
        return Ok(Grub {
            unheard: assigned_anew(lines, &words).into_iter().chain(lost).collect(),
            next_boot: Some(BootLine {
                form: match assignment(line.text) {
                    Some(set) if set.name == GRUB[1] => BootForm::OfDefault,
                    _ => BootForm::Parameters,
                },
                ..BootLine::new(line.place(), heard)
            }),
        });
    }
    let unheard = entries(source)?.and_then(|entries| not_in(&words, &entries));
    Ok(Grub {
        next_boot: None,
        unheard: unheard
            .map(|words| Unheard::of(&line, words, UnheardWhy::BootEntries))
            .into_iter()
            .collect(),
    })
}

/// The entries of systemd-boot are on a partition that is often mounted for updates alone: the file that they are made of is read in their place.
fn without_grub(source: &Source, in_grub: Option<(Line<'_>, String)>) -> Result<Grub, Unread> {
    let own = content(source, CMDLINE)?.unwrap_or_default();
    let words = own.split_whitespace().collect::<Vec<_>>().join(" ");
    let of_image = content(source, UKI)?.unwrap_or_default();
    let of_image = said(UKI, &of_image, &['#', ';']).filter_map(|line| {
        let (_, in_file) = line.pair().filter(|(key, _)| *key == "Cmdline")?;
        let lost = not_in(in_file.trim_matches('"'), &words)?;
        Some(Unheard::of(&line, lost, UnheardWhy::ImageConf))
    });
    let of_image: Vec<Unheard> = of_image.collect();
    let unheard =
        in_grub.and_then(|(line, in_grub)| Some(Unheard::of(&line, not_in(&in_grub, &words)?, UnheardWhy::NoGrub)));
    Ok(Grub {
        unheard: unheard.into_iter().chain(of_image).collect(),
        next_boot: (!words.is_empty()).then(|| BootLine::new(format!("{CMDLINE}:1"), words)),
    })
}

/// What the boot entries hand to kernels; `None` where a variable is not known, or an entry does not say.
fn entries(source: &Source) -> Result<Option<String>, Unread> {
    let variables = content(source, VARIABLES)?.unwrap_or_default();
    let variable = |name: &str| {
        variables
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    let mut options = Vec::new();
    for (_, _, text) in all_in(source, ENTRIES, |_| true)? {
        let Some(own) = text.lines().find_map(|line| line.strip_prefix("options ")) else {
            return Ok(None);
        };
        for word in own.split_whitespace() {
            match word.strip_prefix('$').map(variable) {
                // What tuned sets is read of its profile.
                _ if word == "$tuned_params" => {}
                Some(None) => return Ok(None),
                Some(Some(value)) => options.push(value.trim_matches('"').to_owned()),
                None => options.push(word.to_owned()),
            }
        }
    }
    Ok(Some(options.join(" ")))
}

/// The words about huge pages that a command line lacks.
fn not_in(words: &str, line: &str) -> Option<String> {
    let known = words.split_whitespace().filter(|word| !is_open(word));
    let missing: Vec<&str> = known
        .filter(|word| is_of_pages(word))
        .filter(|word| line.split_whitespace().all(|other| other != *word))
        .collect();
    (!missing.is_empty()).then(|| missing.join(" "))
}

/// What a later line takes away again, which assigns the same variable without its old value.
fn assigned_anew(lines: &[Line<'_>], words: &str) -> Vec<Unheard> {
    let mut assigned = assignments(lines);
    assigned.retain(|(_, set)| GRUB.contains(&set.name));
    let lost = assigned.iter().filter_map(|(line, set)| {
        let words = not_in(&set.value, words)?;
        let (last, _) = assigned.iter().rfind(|(_, other)| other.name == set.name)?;
        let by = last.place();
        let variable = set.name.to_owned();
        (by != line.place()).then(|| Unheard::of(line, words, UnheardWhy::AssignedAnew { variable, by }))
    });
    lost.collect()
}
