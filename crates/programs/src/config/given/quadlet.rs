//! Quadlets: containers of Podman as units of systemd (podman-systemd.unit(5)).

use model::Unread;

use super::compose::Run;
use super::garbled::empty;
use super::service::settings;

/// Is it the text of one?
pub(super) fn is_quadlet(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "[Container]")
}

/// The container, by the options of `podman run` that its settings become.
pub(super) fn parse(path: &str, text: &str) -> Result<Run, Unread> {
    let mut run = Run::new(format!("{path}:1"), "the container");
    run.is_quadlet = true;
    let (mut image, mut program, mut words) = (None, Vec::new(), Vec::new());
    for (section, set) in settings(path, text, &mut run.refused) {
        let own = KEYS.iter().find(|(key, _)| *key == set.name);
        let Some((key, option)) = own.filter(|_| section == Some("Container")) else {
            continue;
        };
        let Some(items) = shlex::split(&set.value) else {
            run.refused.push(set.garbled("words with closed quotes"));
            continue;
        };
        match *key {
            "Image" => {
                run.place.clone_from(&set.place);
                image = Some(set.value);
            }
            "Entrypoint" => program = items,
            "Exec" => words = items,
            // An empty value takes back what was set before.
            "Environment" if items.is_empty() => run.environment.clear(),
            "PodmanArgs" => {
                let mut items = items.iter().map(String::as_str).peekable();
                while run.options(&set.place, &mut items)?.is_some() {}
            }
            _ => {
                for item in &items {
                    run.option(&set.place, option, item)?;
                }
            }
        }
    }
    let image = image.ok_or_else(|| empty(path, "the section [Container] names no image"))?;
    program.extend(words);
    run.words = program;
    Ok(run.of_image(&image))
}

/// Settings that are read here, and what those with several values become.
const KEYS: [(&str, &str); 10] = [
    ("AddCapability", "--cap-add"),
    ("ContainerName", "--name"),
    ("Entrypoint", ""),
    ("Environment", "--env"),
    ("Exec", ""),
    ("Image", ""),
    ("Memory", "--memory"),
    ("PodmanArgs", ""),
    ("Sysctl", "--sysctl"),
    ("Ulimit", "--ulimit"),
];
