//! What a change writes, line by line: what goes with `-`, what comes with `+`.

use model::plan::{Change, Mode, Target, Value};

use super::risks::risks;

/// Lines of two texts whose pairs are compared one by one; texts of more are shown as all old and all new lines.
const MOST_PAIRS: usize = 4 << 20;

/// A change as one reads it before agreeing: every line that will be written.
pub(crate) fn question(change: &Change) -> Vec<String> {
    let Change {
        target, before, after, ..
    } = change;
    let risks = risks(&change.risk).into_iter().map(|risk| format!("    risk: {risk}"));
    let Target::File { mode, owner, .. } = target else {
        return std::iter::once(format!("  {target}: {before} -> {after}"))
            .chain(risks)
            .collect();
    };
    let what = match before.known() {
        Some(Value::Absent) => "a new file",
        _ => "changed lines",
    };
    let mode = mode.map(|Mode(mode)| format!(", mode {mode:04o}")).unwrap_or_default();
    let owner = owner.map(|owner| format!(", owner {}:{}", owner.uid, owner.gid));
    let owner = owner.unwrap_or_default();
    let head = format!("  {target}: {what}{mode}{owner}");
    let lines = difference(before.known(), after).into_iter();
    let lines = lines.map(|line| format!("    {line}"));
    std::iter::once(head).chain(lines).chain(risks).collect()
}

/// Lines that go with `-`, lines that come with `+`, in their order; a line that moves goes and comes.
pub(crate) fn difference(before: Option<&Value>, after: &Value) -> Vec<String> {
    let [old, new] = [before.and_then(Value::text), after.text()].map(Option::unwrap_or_default);
    let [old, new]: [Vec<&str>; 2] = [&old, &new].map(|text| text.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    let backwards = old.iter().rev().zip(new.iter().rev());
    let end = backwards.take_while(|(old, new)| old == new).count();
    between(&old[..old.len() - end], &new[..new.len() - end])
}

/// By the longest common subsequence, so that as few lines as possible are shown.
fn between(old: &[&str], new: &[&str]) -> Vec<String> {
    let width = new.len() + 1;
    let pairs = (old.len() + 1).saturating_mul(width);
    // Of each pair of ends, how many lines are common from there on; none if they are too many to compare.
    let mut common = vec![0_u32; if pairs > MOST_PAIRS { 0 } else { pairs }];
    for at in (0..old.len()).rev().filter(|_| pairs <= MOST_PAIRS) {
        for to in (0..new.len()).rev() {
            let [skip_old, skip_new] = [common[(at + 1) * width + to], common[at * width + to + 1]];
            let same = common[(at + 1) * width + to + 1] + 1;
            common[at * width + to] = match old[at] == new[to] {
                true => same,
                false => skip_old.max(skip_new),
            };
        }
    }
    let rest = |at: usize, to: usize| common.get(at * width + to).copied().unwrap_or(0);
    let (mut at, mut to, mut lines) = (0, 0, Vec::new());
    while at < old.len() || to < new.len() {
        let is_both = at < old.len() && to < new.len();
        if is_both && old[at] == new[to] && rest(at, to) > 0 {
            (at, to) = (at + 1, to + 1);
        } else if at < old.len() && (!is_both || rest(at + 1, to) >= rest(at, to + 1)) {
            lines.push(format!("- {}", old[at]));
            at += 1;
        } else {
            lines.push(format!("+ {}", new[to]));
            to += 1;
        }
    }
    lines
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
