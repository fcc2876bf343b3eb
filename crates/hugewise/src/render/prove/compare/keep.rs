//! How to start the program from now on as the arm was that won: lines to paste.

use model::compare::{Arm, Compare, Judged, Start, Verdict};
use model::{Bytes, PageKind};

use super::sizes;
use crate::render::export::quoted;
use draw::{Sheet, columns, joined};

/// A twentieth more pages than were in use: memory is not the same in each run.
const SPARE: u64 = 20;

/// Lines for each arm that is better than the reference by every metric with a verdict.
pub(super) fn sheets(compare: &Compare) -> Vec<Sheet> {
    let winners = compare.arms.iter().skip(1).filter(|arm| has_won(compare, arm));
    winners.filter_map(|arm| sheet(compare, arm)).collect()
}

fn has_won(compare: &Compare, arm: &Arm) -> bool {
    let of_arm = || compare.verdicts.iter().filter(|judged| judged.arm == arm.name);
    let is = |verdict: Verdict| of_arm().any(|judged: &Judged| judged.verdict == verdict);
    is(Verdict::Better) && !is(Verdict::Worse) && !sizes::is_outdone(compare, &arm.name)
}

fn sheet(compare: &Compare, arm: &Arm) -> Option<Sheet> {
    let start = compare.starts.iter().find(|start| start.arm == arm.name)?;
    let fields = columns![|(place, line)| (&str, String); "where" => place, "line" => line];
    let lines = lines(compare, arm, start).into_iter();
    Sheet::of(&format!("To keep {}", arm.name), fields, lines).with_rows()
}

fn lines(compare: &Compare, arm: &Arm, start: &Start) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let by_hand = !matches!(start.technique.as_deref(), Some("preload" | "collapse"));
    if let Some(options) = start.env.get(JVM).filter(|_| by_hand) {
        lines.push(("options of the JVM", options.trim().to_owned()));
    } else if !start.env.is_empty() && by_hand {
        let variables = start
            .env
            .iter()
            .map(|(name, value)| format!("{name}={}", quoted(value)));
        let program = compare.program.iter().map(|word| quoted(word));
        lines.push(("shell", joined(variables.chain(program), " ")));
        let units = start
            .env
            .iter()
            .map(|(name, value)| format!("Environment=\"{name}={value}\""));
        lines.push(("unit, by systemctl edit", format!("[Service] {}", joined(units, " "))));
    }
    match (arm.kind, start.technique.as_deref()) {
        (Some(PageKind::Thp), Some("collapse")) => {
            lines.push(("after each start", "sudo hugewise collapse PID".to_owned()));
            lines.push(always());
        }
        (Some(PageKind::Thp), Some("preload")) => {
            lines.push((
                "in the program",
                "madvise(address, length, MADV_HUGEPAGE) for what it maps".to_owned(),
            ));
            lines.push(always());
        }
        (Some(PageKind::Mthp(size)), None) => {
            let goal = format!("sudo hugewise plan --for thp=madvise,mthp-{}=always", size.exact());
            lines.push((EVERYWHERE, goal));
        }
        (Some(PageKind::Thp), Some("switch")) => lines.push(always()),
        (Some(PageKind::Thp), None) if sizes::of(compare).any(|(name, _)| name == arm.name) => lines.push(always()),
        (Some(kind), _) => lines.extend(pool(arm, kind).map(|goal| ("machine", goal))),
        _ => {}
    }
    lines
}

/// HotSpot's variable.
const JVM: &str = "_JAVA_OPTIONS";

/// Where a setting of the machine's goes.
const EVERYWHERE: &str = "machine, for every program";

/// What gives THP to every program.
fn always() -> (&'static str, String) {
    (EVERYWHERE, "sudo hugewise plan --for thp=always".to_owned())
}

/// A pool of the size that the runs that count used.
fn pool(arm: &Arm, kind: PageKind) -> Option<String> {
    let size = kind.pool()?;
    let used = arm.counted().filter_map(|run| Some(run.backing.known()?.of(kind)));
    let Bytes(used) = used.max()?;
    let pages = (used + used / SPARE).div_ceil(size.0).max(1);
    Some(format!("sudo hugewise plan --for pool:{}={pages}", size.exact()))
}

#[cfg(test)]
mod tests {
    use model::PageKind;
    use model::compare::{Start, Verdict};

    use super::sheets;
    use crate::render::prove::compare::tests::compare;

    fn rows(kind: PageKind, technique: &str, env: &[(&str, &str)]) -> Vec<String> {
        let mut made = compare(Verdict::Better);
        made.arms[1].kind = Some(kind);
        for run in &mut made.arms[1].runs {
            run.backing = model::Reading::Known([(kind, model::Bytes::gib(1))].into_iter().collect());
        }
        made.starts = vec![Start {
            arm: "thp".to_owned(),
            env: env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            technique: Some(technique.to_owned()),
        }];
        sheets(&made)
            .iter()
            .flat_map(|sheet| sheet.rows.iter().map(|row| row.join(" | ")))
            .collect()
    }

    #[test]
    fn the_winner_is_kept_by_its_variables_its_options_or_a_plan() {
        let tunables = rows(
            PageKind::HUGETLB_2M,
            "tunables",
            &[("GLIBC_TUNABLES", "glibc.malloc.hugetlb=2097152")],
        );
        assert_eq!(
            tunables[0],
            "shell | GLIBC_TUNABLES='glibc.malloc.hugetlb=2097152' './chase' '1G'"
        );
        assert!(tunables[1].contains("Environment=\"GLIBC_TUNABLES="));
        assert_eq!(tunables[2], "machine | sudo hugewise plan --for pool:2M=538");
        let jvm = rows(
            PageKind::Thp,
            "jvm",
            &[("_JAVA_OPTIONS", "-XX:+UseTransparentHugePages")],
        );
        assert_eq!(jvm, ["options of the JVM | -XX:+UseTransparentHugePages"]);
        let switch = rows(PageKind::Thp, "switch", &[]);
        assert_eq!(
            switch,
            ["machine, for every program | sudo hugewise plan --for thp=always"]
        );
        assert!(rows(PageKind::Thp, "collapse", &[])[0].contains("sudo hugewise collapse PID"));
        let mut sized = compare(Verdict::Better);
        sized.arms[1].kind = Some(PageKind::Mthp(model::Bytes::kib(64)));
        sized.starts = vec![Start {
            arm: "thp".to_owned(),
            ..Start::default()
        }];
        let kept = sheets(&sized).remove(0).rows.remove(0);
        assert_eq!(
            kept,
            [
                "machine, for every program",
                "sudo hugewise plan --for thp=madvise,mthp-64K=always"
            ]
        );
        let mut lost = compare(Verdict::Worse);
        lost.starts = vec![Start {
            arm: "thp".to_owned(),
            ..Start::default()
        }];
        assert!(sheets(&lost).is_empty());
    }
}
