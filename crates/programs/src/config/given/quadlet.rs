//! Quadlets: containers of Podman as units of systemd (podman-systemd.unit(5)).

use model::Unread;

use super::compose::Run;
use super::garbled::empty;
use crate::config::files::said;

pub(super) const SECTION: &str = "[Container]";

/// Is it the text of one?
pub(super) fn is_quadlet(text: &str) -> bool {
    text.lines().any(|line| line.trim() == SECTION)
}

/// The container, by the options of `podman run` that its settings become.
pub(super) fn parse(path: &str, text: &str) -> Result<Run, Unread> {
    let mut is_inside = false;
    let (mut run, mut image, mut words) = (Run::new(format!("{path}:1"), "the container"), None, Vec::new());
    let text = joined(text);
    for line in said(path, &text, &['#', ';']) {
        if line.text.starts_with('[') {
            is_inside = line.text == SECTION;
            if is_inside {
                run.place = line.place();
            }
        }
        let Some((key, value)) = line.pair().filter(|_| is_inside) else {
            continue;
        };
        let items = || shlex::split(value).unwrap_or_default().into_iter();
        match key {
            "Image" => image = Some(value.to_owned()),
            // An empty value takes back what was set before.
            "Environment" if value.is_empty() => run.environment.clear(),
            "Entrypoint" => words.splice(0..0, items()).for_each(drop),
            "Exec" => words.extend(items()),
            "PodmanArgs" => {
                let mut items = items().peekable();
                while let Some(word) = items.next() {
                    let (name, value) = match word.split_once('=') {
                        Some((name, value)) => (name, value.to_owned()),
                        None => (
                            word.as_str(),
                            items.next_if(|next| !next.starts_with('-')).unwrap_or_default(),
                        ),
                    };
                    run.option(path, line.number(), name, &value)?;
                }
            }
            _ => {
                let Some((_, option)) = OPTIONS.iter().find(|(own, _)| *own == key) else {
                    continue;
                };
                for item in items() {
                    run.option(path, line.number(), option, &item)?;
                }
            }
        }
    }
    let image = image.ok_or_else(|| empty(path, "the section [Container] names no image"))?;
    run.words = words;
    Ok(run.of_image(&image))
}

/// Lines that end in a backslash with the next ones, and as many empty lines behind them, so that others keep their numbers.
fn joined(text: &str) -> String {
    let (mut joined, mut open) = (String::new(), 0);
    for line in text.lines() {
        match line.strip_suffix('\\') {
            Some(begun) => {
                joined.push_str(begun);
                joined.push(' ');
                open += 1;
            }
            None => {
                joined.push_str(line);
                joined.push_str(&"\n".repeat(open + 1));
                open = 0;
            }
        }
    }
    joined
}

/// Settings that may have several values, and what each becomes.
const OPTIONS: [(&str, &str); 6] = [
    ("AddCapability", "--cap-add"),
    ("ContainerName", "--name"),
    ("Environment", "--env"),
    ("Memory", "--memory"),
    ("Sysctl", "--sysctl"),
    ("Ulimit", "--ulimit"),
];
