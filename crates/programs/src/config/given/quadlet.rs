//! Quadlets: containers of Podman as units of systemd (podman-systemd.unit(5)).

use model::Unread;

use super::compose::Run;
use super::garbled::empty;
use crate::config::unit::settings;

/// Is it the text of one?
pub(super) fn is_quadlet(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "[Container]")
}

/// The container, by the options of `podman run` that its settings become.
pub(super) fn parse(path: &str, text: &str) -> Result<Run, Unread> {
    let mut run = Run {
        place: format!("{path}:1"),
        name: "the container".to_owned(),
        is_quadlet: true,
        ..Run::default()
    };
    let (mut image, mut program, mut words) = (None, Vec::new(), Vec::new());
    for item in settings(path, text) {
        let (section, set) = match item {
            Ok(item) => item,
            Err(unread) => {
                run.refused.push(unread);
                continue;
            }
        };
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
const KEYS: [(&str, &str); 11] = [
    ("AddCapability", "--cap-add"),
    ("AddDevice", "--device"),
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

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::Limit;

    #[test]
    fn lines_go_on_and_options_have_their_values_behind_them() {
        let unit = "[Unit]\nDescription=a podman container\n[Container]\nImage=elasticsearch:9\nUlimit=memlock=4096\nEnvironment=A=1 \\\n  B=2\n\
                    Exec=java \\\n  -Xmx1g -XX:+UseLargePages\nPodmanArgs=--no-hosts --memory-swap -1 --cap-add IPC_LOCK --memory 4g\nLabel=it's\n";
        let run = parse("es.container", unit).expect("a container");
        assert_eq!((run.may_lock, run.memory.is_some(), run.is_quadlet), (true, true, true));
        assert_eq!(run.memlock, Some((Limit::Bytes(4096), "es.container:5".to_owned())));
        let variables: Vec<&str> = run.environment.iter().map(|set| set.name.as_str()).collect();
        assert_eq!(variables, ["A", "B"]);
        assert_eq!(run.words, ["java", "-Xmx1g", "-XX:+UseLargePages"]);
        assert_eq!(run.refused, []);
        let open = parse("x.container", "[Container]\nImage=a\nExec=sh -c 'x\n").expect("a container");
        assert!(open.refused[0].why.contains("closed quotes"), "{open:?}");
    }
}
