//! What a change writes, line by line: what goes with `-`, what comes with `+`.

use model::plan::{Change, Edit, Mode, Target, Value};

use super::risks::risks;
use draw::{joined, or_empty};

/// A change as one reads it before agreeing: every line that will be written.
pub(crate) fn question(change: &Change) -> Vec<String> {
    let Change {
        target, before, after, ..
    } = change;
    let risks = risks(&change.risk).into_iter().map(|risk| format!("    risk: {risk}"));
    let Target::File { mode, owner, .. } = target else {
        return std::iter::once(format!("  {target}: {before} -> {after}"))
            .chain(matches!(target, Target::Mount { .. }).then(|| grant(after)).flatten())
            .chain(risks)
            .collect();
    };
    let what = match before.known() {
        Some(Value::Absent) => "a new file",
        _ => "changed lines",
    };
    let mode = or_empty(mode.map(|Mode(mode)| format!(", mode {mode:04o}")));
    let owner = or_empty(owner.map(|owner| format!(", owner {}:{}", owner.uid, owner.gid)));
    let head = format!("  {target}: {what}{mode}{owner}");
    let lines = difference(before.known(), after).into_iter();
    let lines = lines.map(|line| format!("    {line}"));
    std::iter::once(head).chain(lines).chain(risks).collect()
}

/// Who may make files in a mount, where that is not root alone.
fn grant(options: &Value) -> Option<String> {
    let options = options.text()?;
    let find = |name: &str| {
        options
            .split(',')
            .find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    };
    let mode = find("mode")
        .and_then(|mode| u32::from_str_radix(mode, 8).ok())
        .unwrap_or(0o755);
    let user = find("uid").filter(|uid| *uid != "0").map(|uid| format!("user {uid}"));
    let group = find("gid")
        .filter(|_| mode & 0o020 != 0)
        .map(|gid| format!("group {gid}"));
    let who = joined(user.into_iter().chain(group), " and ");
    (!who.is_empty()).then(|| format!("    lets {who} make files there"))
}

/// Lines that go with `-`, lines that come with `+`, in their order; a line that moves goes and comes.
pub(crate) fn difference(before: Option<&Value>, after: &Value) -> Vec<String> {
    if let Value::Edit(edit) = after {
        return edit.lines();
    }
    let [old, new] = [before.and_then(Value::text), after.text()].map(Option::unwrap_or_default);
    Edit::between(&old, &new).lines()
}

#[cfg(test)]
mod tests {
    use model::plan::Value;

    use super::difference;

    fn lines(before: &str, after: &str) -> Vec<String> {
        difference(Some(&Value::Text(before.to_owned())), &Value::Text(after.to_owned()))
    }

    #[test]
    fn a_line_that_is_moved_or_repeated_is_shown() {
        assert_eq!(lines("a\nb\n", "b\na\n"), ["- a", "+ a"]);
        assert_eq!(lines("a\nb\n", "a\nb\na\n"), ["+ a"]);
        assert_eq!(
            lines("x\na\ny\nb\nz\n", "x\nc\ny\nd\nz\n"),
            ["- a", "+ c", "- b", "+ d"]
        );
        assert_eq!(lines("a\n", "a\n"), [""; 0]);
    }

    #[test]
    fn of_very_long_texts_every_line_is_shown() {
        let text = |from: u32| (from..from + 3000).map(|line| format!("{line}\n")).collect::<String>();
        let shown = lines(&text(0), &text(9000));
        assert_eq!(
            (shown.len(), shown[0].as_str(), shown[5999].as_str()),
            (6000, "- 0", "+ 11999")
        );
    }
}
