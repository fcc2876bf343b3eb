//! What stands at a place without one of several plans that have changed it: pools are sums, and lines of files go one by one.

use crate::place::{FileState, Place, State};

/// `now` as it would be, had the change from `before` to `after` not been made; `None` where that cannot be told.
pub(super) fn without(place: &Place, now: &State, before: &State, after: &State) -> Option<State> {
    if now.is(after) {
        return Some(before.clone());
    }
    match (place, now) {
        (Place::Setting(path), State::Text(_)) if is_sum(path) => {
            let (now, before, after) = (now.number()?, before.number()?, after.number()?);
            Some(State::Text(difference(now, before, after)?.to_string()))
        }
        // The last one to set it wins, and stays.
        (Place::Setting(_), _) => Some(now.clone()),
        (Place::File(_), State::File(file)) => {
            let text = |state: &State| match state {
                State::File(file) => Some(file.text.clone()),
                State::Absent => Some(String::new()),
                _ => None,
            };
            let text = lines(&file.text, &text(before)?, &text(after)?);
            Some(match text.is_empty() {
                true => State::Absent,
                false => State::File(FileState { text, ..file.clone() }),
            })
        }
        _ => None,
    }
}

fn difference(now: u64, before: u64, after: u64) -> Option<u64> {
    now.checked_add(before)?.checked_sub(after)
}

/// Is it a setting of which each plan takes its part?
fn is_sum(name: &str) -> bool {
    [
        "nr_hugepages",
        "nr_overcommit_hugepages",
        "memlock",
        "LimitMEMLOCK",
        "hugepagesz=",
    ]
    .iter()
    .any(|sum| name.contains(sum))
}

/// A text without the lines that came, and with those that went.
fn lines(now: &str, before: &str, after: &str) -> String {
    let gone = missing(before, after);
    let came = missing(after, before);
    let mut lines: Vec<String> = now.lines().map(str::to_owned).collect();
    // A new unit keeps its frame for as long as others have lines in it.
    let is_new = before.is_empty();
    for line in came.into_iter().filter(|line| !(is_new && is_frame(line))) {
        let old = gone.iter().find(|old| key(old) == key(line)).copied();
        take_out(&mut lines, line, old);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn take_out(lines: &mut Vec<String>, line: &str, old: Option<&str>) {
    let same = lines.iter().position(|found| found == line);
    let further = || lines.iter().position(|found| key(found) == key(line));
    match (same, old) {
        (Some(at), Some(old)) => old.clone_into(&mut lines[at]),
        (Some(at), None) => drop(lines.remove(at)),
        (None, _) => {
            // A later plan has added to it.
            let Some(at) = further().filter(|_| is_sum(line)) else {
                return;
            };
            let numbers = (number(&lines[at]), old.map_or(Some(0), number), number(line));
            let (Some(now), Some(before), Some(after)) = numbers else {
                return;
            };
            if let Some(left) = difference(now, before, after) {
                lines[at] = with_number(&lines[at], now, left);
            }
        }
    }
}

/// Lines of one text that the other has not.
fn missing<'t>(text: &'t str, other: &str) -> Vec<&'t str> {
    let mut others: Vec<&str> = other.lines().collect();
    let mut missing = Vec::new();
    for line in text.lines() {
        match others.iter().position(|other| *other == line) {
            Some(at) => drop(others.swap_remove(at)),
            None => missing.push(line),
        }
    }
    missing
}

fn is_frame(line: &str) -> bool {
    let is_head = line.trim().is_empty() || line.starts_with(['#', ';', '[']);
    let frame = [
        "Description=",
        "DefaultDependencies=",
        "Before=",
        "Type=",
        "RemainAfterExit=",
    ];
    is_head || frame.iter().any(|frame| line.starts_with(frame))
}

fn key(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    if let Some((_, rest)) = line.split_once("echo ") {
        return rest.split_whitespace().nth(2).unwrap_or_default().to_owned();
    }
    if let Some(size) = words.iter().find_map(|word| word.split_once("hugepagesz=")) {
        return size.1.to_owned();
    }
    match &words[..] {
        [user, kind, "memlock", _] => format!("{user} {kind}"),
        ["w", path, ..] => (*path).to_owned(),
        _ => line.split(['=', ' ', '\t']).next().unwrap_or_default().to_owned(),
    }
}

/// The number that a line sets.
fn number(line: &str) -> Option<u64> {
    let word = match line.split_once("echo ") {
        Some((_, rest)) => rest.split_whitespace().next()?,
        None => line.rsplit(['=', ' ', '\t']).next()?.trim_end_matches('"'),
    };
    word.parse().ok()
}

fn with_number(line: &str, now: u64, left: u64) -> String {
    let (now, left) = (now.to_string(), left.to_string());
    if line.contains("echo ") {
        let echo = line.replace(&format!("echo {now} >"), &format!("echo {left} >"));
        return echo.replace(&format!("-ge {now}'"), &format!("-ge {left}'"));
    }
    let end = if line.ends_with('"') { "\"" } else { "" };
    let start = line
        .strip_suffix(end)
        .and_then(|line| line.strip_suffix(&now))
        .unwrap_or(line);
    format!("{start}{left}{end}")
}

#[cfg(test)]
mod tests {
    use super::without;
    use crate::place::{FileState, Place, State};

    fn file(text: &str) -> State {
        State::File(FileState {
            text: text.to_owned(),
            mode: 0o644,
            uid: 0,
            gid: 0,
        })
    }

    fn text(text: &str) -> State {
        State::Text(text.to_owned())
    }

    #[test]
    fn pools_are_sums_and_of_other_settings_the_last_one_stays() {
        let pool = Place::Setting("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages".to_owned());
        let left = |now: &str| without(&pool, &text(now), &text("0"), &text("537"));
        assert_eq!(
            [left("1719"), left("537"), left("100")],
            [Some(text("1182")), Some(text("0")), None]
        );
        let thp = Place::Setting("/sys/kernel/mm/transparent_hugepage/enabled".to_owned());
        let left = without(&thp, &text("never"), &text("always"), &text("madvise"));
        assert_eq!(left, Some(text("never")));
    }

    #[test]
    fn of_a_file_the_plan_s_own_lines_go_and_sums_shrink() {
        let path = Place::File("/etc/sysctl.d/60-hugewise.conf".to_owned());
        let left = |now: &str, before: &State, after: &str| without(&path, &file(now), before, &file(after));
        let first = "vm.nr_hugepages = 537\nkernel.shmmax = 9\n";
        let both = "vm.nr_hugepages = 1719\nkernel.shmmax = 9\nvm.hugetlb_shm_group = 7\n";
        assert_eq!(
            left(both, &State::Absent, first),
            Some(file("vm.nr_hugepages = 1182\nvm.hugetlb_shm_group = 7\n"))
        );
        assert_eq!(left(first, &State::Absent, first), Some(State::Absent));
        let limits = "a soft memlock 8\nb soft memlock 5\n";
        assert_eq!(
            left(limits, &State::Absent, "b soft memlock 2\n"),
            Some(file("a soft memlock 8\nb soft memlock 3\n"))
        );
        let fill = |pages: u64| {
            let pool = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
            format!(
                "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo {pages} > {pool} && test \"$(cat {pool})\" -ge {pages}'\n"
            )
        };
        assert_eq!(left(&fill(30), &State::Absent, &fill(10)), Some(file(&fill(20))));
        let grub = |pages: u64| format!("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz=1G hugepages={pages}\"\n");
        assert_eq!(left(&grub(9), &file(&grub(1)), &grub(5)), Some(file(&grub(5))));
    }
}
