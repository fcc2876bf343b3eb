//! The kernel's command line in the defaults of GRUB: /etc/default/grub, and the files of grub.d that are read after it. systemd-boot has another file.

use host::Source;
use model::Unread;

use super::files::{Line, all_in, content, first, listed, open_quote, said};
use super::{BootForm, BootLine, Distribution, Unheard, UnheardWhy};

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
    let in_grub = in_grub(lines);
    let listed_entries = listed(source, ENTRIES);
    let starter = Distribution::by_start(source).filter(|_| listed_entries.as_ref().is_ok_and(Vec::is_empty));
    if starter.is_some_and(Distribution::is_without_grub) {
        return without_grub(source, in_grub);
    }
    let Some((line, words)) = in_grub else {
        return Ok(Grub::default());
    };
    if listed_entries?.is_empty() {
        return Ok(Grub {
            unheard: assigned_anew(lines, &words),
            next_boot: Some(BootLine {
                form: match assignment(line.text) {
                    Some((1, ..)) => BootForm::OfDefault,
                    _ => BootForm::Parameters,
                },
                ..BootLine::new(line.place(), words)
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
    let missing = words.split_whitespace().filter(|word| word.contains("huge"));
    let missing: Vec<&str> = missing
        .filter(|word| line.split_whitespace().all(|other| other != *word))
        .collect();
    (!missing.is_empty()).then(|| missing.join(" "))
}

/// What a later line takes away again, which assigns the same variable without its old value.
fn assigned_anew(lines: &[Line<'_>], words: &str) -> Vec<Unheard> {
    let assigned: Vec<(&Line<'_>, usize, String)> = lines
        .iter()
        .filter_map(|line| assignment(line.text).map(|(at, _, value)| (line, at, value)))
        .collect();
    let lost = assigned.iter().filter_map(|(line, at, value)| {
        let words = not_in(value, words)?;
        let (last, ..) = assigned.iter().rev().find(|(_, other, _)| other == at)?;
        let by = last.place();
        let variable = GRUB[*at].to_owned();
        (by != line.place()).then(|| Unheard::of(line, words, UnheardWhy::AssignedAnew { variable, by }))
    });
    lost.collect()
}

/// What GRUB's scripts hand to the kernel: both variables, each as the shell that reads the file leaves it.
pub(super) fn in_grub<'a>(lines: &[Line<'a>]) -> Option<(Line<'a>, String)> {
    let mut values = GRUB.map(|_| String::new());
    let mut place = None;
    for line in lines {
        let Some((at, adds, value)) = assignment(line.text) else {
            continue;
        };
        let value = GRUB.iter().zip(&values).rev().fold(value, |value, (name, known)| {
            value
                .replace(&format!("${{{name}}}"), known)
                .replace(&format!("${name}"), known)
        });
        values[at] = if adds { format!("{}{value}", values[at]) } else { value };
        // The first one that is about pages, or else the first one.
        let says = |line: &Line<'_>| line.text.contains("huge");
        if place.is_none_or(|first| !says(&first) && says(line)) {
            place = Some(*line);
        }
    }
    place.map(|line| (line, values.join(" ")))
}

/// `export GRUB_CMDLINE_LINUX="quiet hugepages=4" # why`, or `+=`: the variable, whether it is added to, and the value without quotes.
fn assignment(text: &str) -> Option<(usize, bool, String)> {
    let text = text.strip_prefix("export ").unwrap_or(text).trim_start();
    let (name, value) = text.split_once('=')?;
    let (name, adds) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let at = GRUB.iter().position(|known| *known == name)?;
    let unclosed = || vec![value.trim_matches(['"', '\'']).to_owned()];
    let words = if value.starts_with([' ', '\t']) {
        Vec::new()
    } else {
        shlex::split(value).unwrap_or_else(unclosed)
    };
    Some((at, adds, words.into_iter().next().unwrap_or_default()))
}

/// Parameters of the boot line that people write on lines of their own.
const PARAMETERS: [&str; 4] = ["transparent_hugepage", "hugepages", "hugepagesz", "default_hugepagesz"];

/// The name of such a parameter that a word assigns.
pub(super) fn parameter(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    PARAMETERS.contains(&name).then_some(name)
}

/// Lines of the defaults of GRUB that assign variables named like parameters, with these words. The shell that reads the file keeps them to itself.
pub(super) fn stray<'a>(lines: &[Line<'a>]) -> Vec<(Line<'a>, String)> {
    let (mut quote, mut last) = (None, 0);
    let is_used = |name: &str| {
        let forms = [format!("${name}"), format!("${{{name}")];
        lines
            .iter()
            .any(|line| forms.iter().any(|form| line.text.contains(form)))
    };
    let unused = PARAMETERS.map(|name| (name, !is_used(name)));
    let is_parameter = |word: &String| parameter(word).is_some_and(|name| unused.contains(&(name, true)));
    let mut stray: Vec<(Line<'a>, String)> = Vec::new();
    for line in lines {
        // A value in quotes may go on over several lines.
        let is_inside = quote.is_some();
        quote = open_quote(quote, line.text);
        let Some(words) = shlex::split(line.text).filter(|_| !is_inside && quote.is_none()) else {
            continue;
        };
        let own = line
            .text
            .strip_prefix("export ")
            .map_or(words.as_slice(), |_| words.get(1..).unwrap_or_default());
        if own.is_empty() || !own.iter().all(is_parameter) {
            continue;
        }
        // A size and its count may be on lines of their own.
        match stray.last_mut().filter(|_| line.number() == last + 1) {
            Some((_, words)) => *words += &format!(" {}", own.join(" ")),
            None => stray.push((*line, own.join(" "))),
        }
        last = line.number();
    }
    stray
}

#[cfg(test)]
mod tests {
    use super::{open_quote, said, stray};

    #[test]
    fn values_of_several_lines_are_no_lines_of_their_own() {
        let found = |text: &str| -> Vec<String> {
            let lines: Vec<_> = said("grub", text, &['#']).collect();
            stray(&lines).into_iter().map(|(_, words)| words).collect()
        };
        assert_eq!(
            found("A='x\nhugepages=5\n'\nhugepagesz=1G\nhugepages=4\n"),
            ["hugepagesz=1G hugepages=4"]
        );
        assert_eq!(found("A=\"it's\" # isn't\nhugepages=4\n"), ["hugepages=4"]);
        assert_eq!(found("hugepages=4\nB=\"$hugepages\"\n"), Vec::<String>::new());
        assert_eq!(open_quote(None, "A=\\\"b 'c"), Some('\''));
        let open = format!("A='x\n{}", "hugepages=5\n".repeat(100_000));
        assert_eq!(found(&open), Vec::<String>::new());
    }
}
