//! Docker's own configuration (daemon.json): what its containers may lock where they set nothing.

use serde_json::Value;

use super::garbled::Refusal;
use crate::Limit;

/// The key of limits for all containers.
const LIMITS: &str = "\"default-ulimits\"";
const LINK: &str = "https://docs.docker.com/reference/cli/dockerd/#daemon-configuration-file";
const RIGHT: &str = r#""default-ulimits": {"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}}"#;

pub(super) fn is_daemon(path: &str, text: &str) -> bool {
    path.rsplit('/').next() == Some("daemon.json") || (text.trim_start().starts_with('{') && text.contains(LIMITS))
}

/// The limit of containers without one of their own, with its place.
///
/// # Errors
/// With what dockerd does not start, or no container.
pub(super) fn parse(path: &str, text: &str) -> Result<Option<(Limit, String)>, Refusal> {
    let place = |of: &str| {
        let at = text.lines().position(|line| line.contains(of));
        at.map_or_else(|| path.to_owned(), |at| format!("{path}:{}", at + 1))
    };
    let fix = || format!("{RIGHT}, then: systemctl restart docker");
    let refused = |place: &str, why: String| Refusal::new(place, why, fix(), LINK);
    // An empty file sets nothing.
    if text.trim().is_empty() {
        return Ok(None);
    }
    let no_json =
        |error: serde_json::Error| refused(path, format!("dockerd does not start: the file is not JSON ({error})"));
    let config: Value = serde_json::from_str(text).map_err(no_json)?;
    let limits = &config["default-ulimits"];
    if !limits.is_null() && !limits.is_object() {
        let why = format!("dockerd does not start: default-ulimits is {limits} in place of an object");
        return Err(refused(&place(LIMITS), why));
    }
    let limit = &limits["memlock"];
    if limit.is_null() {
        return Ok(None);
    }
    let at = place("\"memlock\"");
    match soft(limit) {
        Ok(limit) => Ok(Some((limit, at))),
        Err(why) => Err(refused(&at, why)),
    }
}

/// The soft limit of an object with a name, a hard and a soft limit; in which letters the keys are does not matter (Go's encoding/json).
fn soft(limit: &Value) -> Result<Limit, String> {
    let Some(fields) = limit.as_object() else {
        return Err(format!(
            "dockerd does not start: memlock is {limit} in place of an object (soft:hard is the form of --default-ulimit and --ulimit)"
        ));
    };
    let field = |name: &str| {
        fields
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    };
    for name in ["hard", "soft"] {
        if let Some(other) = field(name).filter(|value| !value.is_i64()) {
            return Err(format!(
                "dockerd does not start: {name} of memlock is {other} in place of a whole number of bytes"
            ));
        }
    }
    // The limit is that of the object's own name.
    if field("name").and_then(Value::as_str) != Some("memlock") {
        return Err("containers do not start: the limit lacks \"Name\": \"memlock\"".to_owned());
    }
    let bytes = field("soft").and_then(Value::as_i64).unwrap_or(0);
    Ok(u64::try_from(bytes).map_or(Limit::Unlimited, Limit::Bytes))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::Limit;

    #[test]
    fn the_limit_of_all_containers_is_an_object() {
        let file = |memlock: &str| format!("{{\n  \"default-ulimits\": {{\n    \"memlock\": {memlock}\n  }}\n}}\n");
        for (memlock, limit) in [
            (r#"{"Name": "memlock", "Hard": -1, "Soft": -1}"#, Limit::Unlimited),
            (
                r#"{"hard": 65536, "name": "memlock", "soft": 65536}"#,
                Limit::Bytes(65536),
            ),
        ] {
            let read = parse("daemon.json", &file(memlock));
            assert_eq!(read, Ok(Some((limit, "daemon.json:3".to_owned()))));
        }
        for memlock in [
            r#""-1:-1""#,
            "-1",
            r#"{"Hard": -1, "Soft": -1}"#,
            r#"{"Name": "memlock", "Hard": "unlimited", "Soft": -1}"#,
        ] {
            let read = parse("daemon.json", &file(memlock));
            let place = read.map_err(|own| own.unread.place);
            assert_eq!(place, Err("daemon.json:3".to_owned()), "{memlock}");
        }
        for text in [
            "",
            "{}",
            r#"{"default-ulimits": {"nofile": {"Name": "nofile", "Hard": 9, "Soft": 9}}}"#,
        ] {
            assert_eq!(parse("daemon.json", text), Ok(None), "{text}");
        }
        assert!(parse("daemon.json", "{,}").is_err());
        assert!(parse("daemon.json", r#"{"default-ulimits": []}"#).is_err());
    }
}
