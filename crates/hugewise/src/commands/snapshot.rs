//! `hugewise snapshot`: a machine in one file.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use programs::record::{Capture, CaptureOptions, LEFT_OUT, capture};

use super::session::Session;
use crate::cli::args;
use crate::files::{Access, Existing, Target, exists};
use crate::ui::Outcome;

/// Secrets and cuts that are listed one by one.
const MOST_LINES: usize = 20;

pub(super) fn run(session: &mut Session<'_>, args: &args::Snapshot) -> anyhow::Result<Outcome> {
    let (file, path) = (&args.file, args.file.display());
    if exists(file) && !session.global.yes {
        bail!("{path} exists already (write --yes to replace it, or choose another name)");
    }
    // Opened before the machine is read, so that a wrong name costs nothing. It holds what only its owner should see.
    let mut out = Target::open(file, Access::Private).with_context(|| format!("{path}: the file cannot be written"))?;
    let existing = match session.global.yes {
        true => Existing::Replace,
        false => Existing::Refuse,
    };
    let options = CaptureOptions {
        processes: !args.no_processes,
    };
    let Capture { tree, left_out } = capture(&session.source, options);
    out.put_by(existing, |out| tree.write_to(out))
        .with_context(|| path.to_string())?;
    summary(&left_out).iter().for_each(|line| session.ui.note(line));
    session.ui.note(&format!(
        "{path}: {} files of {}; look through it before you share it",
        tree.len(),
        session.source.name()
    ));
    Ok(Outcome::Done)
}

/// What was left out: secrets and cuts one by one, the rest by file name.
fn summary(left_out: &[String]) -> Vec<String> {
    let is_single = |line: &&String| !line.contains(" that ") && !line.contains("mounts of other");
    let (single, others): (Vec<&String>, Vec<&String>) = left_out.iter().partition(is_single);
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for line in others {
        let file = line.split(": ").next().and_then(|path| path.rsplit('/').next());
        *files.entry(file.unwrap_or_default()).or_default() += 1;
    }
    let files = files.into_iter().map(|(file, count)| format!("{file} ({count})"));
    let files: Vec<String> = files.collect();
    let lines = single.iter().take(MOST_LINES);
    let mut lines: Vec<String> = lines.map(|line| format!("left out: {line}")).collect();
    if single.len() > MOST_LINES {
        lines.push(format!("left out: {} more like these", single.len() - MOST_LINES));
    }
    if !files.is_empty() {
        lines.push(format!(
            "left out: parts that decide nothing about pages, of files named {}; the whole list is in {LEFT_OUT}",
            files.join(", ")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn secrets_are_told_one_by_one_and_the_rest_by_file_name() {
        let lines = [
            "/proc/7/cmdline: the value of --password",
            "/proc/8/cmdline: arguments that decide nothing about pages (3)",
            "/proc/9/cmdline: arguments that decide nothing about pages (1)",
            "/etc/fstab: lines that decide nothing about pages (2)",
        ];
        let told = summary(&lines.map(str::to_owned));
        assert_eq!(told[0], "left out: /proc/7/cmdline: the value of --password");
        assert!(told[1].contains("cmdline (2), fstab (1)"), "{told:?}");
        assert_eq!(told.len(), 2);
        let many: Vec<String> = (0..30)
            .map(|pid| format!("/proc/{pid}/cmdline: the value of -p"))
            .collect();
        assert!(summary(&many).last().expect("a line").contains("10 more"));
        assert!(summary(&[]).is_empty());
    }
}
