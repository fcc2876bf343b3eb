//! Files of variables: what each holds in the end.

use std::collections::BTreeMap;

use super::service::is_name;
use crate::config::Setting;
use crate::config::files::said;
use crate::config::unit::VARIABLES;

/// A file of variables, a line each (systemd.exec(5), EnvironmentFile=), and what conditions of a shell leave open.
pub(super) fn environment(path: &str, text: &str) -> (Vec<Setting>, Vec<String>) {
    let mut set: Vec<Setting> = Vec::new();
    // A value goes on behind a backslash, and up to the end of its quotes.
    let mut is_open = false;
    for line in said(path, text, &['#', ';']) {
        let text = line.text.strip_suffix('\\').unwrap_or(line.text);
        let begun = set.last_mut().filter(|_| is_open);
        if let Some(setting) = begun {
            setting.value += &format!(" {text}");
        } else if let Some((name, value)) = assignment(text) {
            set.push(line.setting(name, value));
        } else {
            continue;
        }
        let value = set.last().map_or("", |setting| setting.value.as_str());
        is_open = text.len() < line.text.len() || (value.starts_with(['"', '\'']) && shlex::split(value).is_none());
    }
    for setting in &mut set {
        let adds = setting.name.strip_suffix('+').map(str::to_owned);
        // What follows a quoted value is another command: `; export NAME`.
        let words = shlex::split(&setting.value).unwrap_or_default();
        let is_quoted = words.len() == 1 || setting.value.starts_with(['"', '\'']);
        if let Some(first) = words.first().filter(|_| is_quoted) {
            first.trim_end_matches(';').clone_into(&mut setting.value);
        }
        if let Some(name) = adds {
            setting.value = format!("${name} {}", setting.value);
            setting.name = name;
        }
    }
    // What systemd and init scripts take has no conditions.
    let is_shell = !VARIABLES.iter().any(|directory| path.starts_with(directory));
    let branches = if is_shell { branches(text) } else { Vec::new() };
    let line = |set: &Setting| set.place.rsplit_once(':')?.1.parse::<usize>().ok();
    let of = |set: &Setting| branches.get(line(set)?.checked_sub(1)?).cloned();
    let all = set.into_iter().map(|set| (of(&set).unwrap_or_default(), set));
    holding(text, all.collect())
}

/// A part of an `if` or a `case`: which of them, and which part of it.
type Branch = (usize, usize);

/// The branches that each line is in.
fn branches(text: &str) -> Vec<Vec<Branch>> {
    let (mut open, mut blocks): (Vec<Branch>, usize) = (Vec::new(), 0);
    let next = |open: &mut Vec<Branch>| open.iter_mut().next_back().into_iter().for_each(|last| last.1 += 1);
    let of_line = |line: &str| {
        let mut words = line.split([' ', '\t', ';']).filter(|word| !word.is_empty());
        match words.next().unwrap_or_default() {
            "if" | "case" if !matches!(words.next_back(), Some("fi" | "esac")) => {
                blocks += 1;
                open.push((blocks, 0));
            }
            "elif" | "else" => next(&mut open),
            "fi" | "esac" => drop(open.pop()),
            _ => {}
        }
        let own = open.clone();
        if line.trim_end().ends_with(";;") {
            next(&mut open);
        }
        own
    };
    text.lines().map(of_line).collect()
}

/// The settings that hold in the end. A later value replaces one of that name, unless it has it in itself. Where a condition decides between
/// several values about the heap or its pages, none is known; a condition with one value counts as met.
fn holding(text: &str, all: Vec<(Vec<Branch>, Setting)>) -> (Vec<Setting>, Vec<String>) {
    let mut kept: Vec<(Vec<Branch>, Setting)> = Vec::new();
    let mut open: BTreeMap<String, String> = BTreeMap::new();
    for (branches, set) in all {
        let own = [format!("${}", set.name), format!("${{{}", set.name)];
        let adds = own.iter().any(|own| set.value.contains(own));
        let is_other = |(_, known): &&(Vec<Branch>, Setting)| known.name == set.name && known.value != set.value;
        let mut others = kept.iter().filter(is_other);
        let is_about = |(_, known): &(Vec<Branch>, Setting)| is_about_heap(text, known) || is_about_heap(text, &set);
        let is_instead = |of_known: &[Branch]| match adds {
            true => excludes(of_known, &branches),
            false => !branches.is_empty(),
        };
        let is_open = others.any(|other| is_about(other) && is_instead(&other.0));
        if is_open {
            let why = format!(
                "{}: {} is not judged: a condition decides which value it has",
                set.place, set.name
            );
            open.insert(set.name.clone(), why);
        } else if !adds && branches.is_empty() {
            open.remove(&set.name);
        }
        if !adds {
            kept.retain(|(_, known)| known.name != set.name);
        }
        kept.push((branches, set));
    }
    kept.retain(|(_, set)| !open.contains_key(&set.name));
    let settings = kept.into_iter().map(|(_, set)| set);
    (settings.collect(), open.into_values().collect())
}

/// Does one of both alone run?
fn excludes(one: &[Branch], other: &[Branch]) -> bool {
    let is_other = |(block, part): &Branch| other.iter().any(|(known, own)| known == block && own != part);
    one.iter().any(is_other)
}

/// Are options about the heap or its pages in a value, or is it the size of one?
fn is_about_heap(text: &str, set: &Setting) -> bool {
    const WORDS: [&str; 6] = ["-Xmx", "MaxHeapSize", "LargePage", "HugePage", "-Xlp", "AllocateHeapAt"];
    let is_size = |form: String| text.contains(&form);
    let name = &set.name;
    WORDS.iter().any(|word| set.value.contains(word))
        || is_size(format!("-Xmx${name}"))
        || is_size(format!("-Xmx${{{name}}}"))
}

/// `export NAME=value`, `NAME+=value`.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.strip_prefix("export ").unwrap_or(text).split_once('=')?;
    let name = name.trim();
    is_name(name.strip_suffix('+').unwrap_or(name)).then_some((name, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::environment;

    /// Values of `O`, and how much is not judged.
    fn read(path: &str, text: &str) -> (String, usize) {
        let (settings, open) = environment(path, text);
        let own = settings.iter().filter(|set| set.name == "O");
        let own: Vec<&str> = own.map(|set| set.value.as_str()).collect();
        (own.join(" | "), open.len())
    }

    #[test]
    fn of_values_between_which_a_condition_decides_none_is_known() {
        let branches = "if [ $BIG ]; then\n  O=-Xmx8g\nelse\n  O=-Xmx4g\nfi\n";
        for text in [
            branches,
            "O=-Xmx4g\nif [ $BIG ]; then\n  O=-Xmx8g\nfi\n",
            "case $1 in\n  a)\n    O=-Xmx8g\n    ;;\n  *)\n    O=-Xmx4g\n    ;;\nesac\n",
            "O=-Xmx4g\nif [ $BIG ]; then\n  O=\nfi\n",
            "if [ $BIG ]\nthen\n  O=\"$O -Xmx8g\"\nelse\n  O=\"$O -Xmx4g\"\nfi\n",
        ] {
            assert_eq!(read("setenv.sh", text), (String::new(), 1), "{text}");
        }
        for (text, expected) in [
            ("if [ $1 = start ]; then\n  O=-Xmx8g\nfi\n", "-Xmx8g"),
            ("if [ $A ]; then\n  O=-Xmx8g\nelse\n  O=-Xmx8g\nfi\n", "-Xmx8g"),
            ("if [ $A ]; then O=1; fi\nO=-Xmx8g\n", "-Xmx8g"),
            (
                "O=-Xmx8g\nif [ $A ]; then\n  O=\"$O -ea\"\nelse\n  O=\"$O -da\"\nfi\n",
                "-Xmx8g | $O -ea | $O -da",
            ),
        ] {
            assert_eq!(read("setenv.sh", text), (expected.to_owned(), 0), "{text}");
        }
        assert_eq!(
            read("setenv.sh", &format!("{branches}O=-Xmx2g\n")),
            ("-Xmx2g".to_owned(), 0)
        );
        assert_eq!(read("/etc/default/a", branches), ("-Xmx4g".to_owned(), 0));
    }
}
