//! Which design a comparison takes, and why: whole runs, or slices of programs that stay alive.

use anyhow::bail;
use lab::compare::metric::{Asked, From};
use model::compare::Method;

use super::Task;
use crate::cli::typed;

/// A design and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) method: Method,
    pub(super) reason: String,
    /// Was it typed? Otherwise another takes its place where it cannot be had.
    pub(super) is_asked: bool,
}

/// What was typed, or what the metrics call for.
///
/// # Errors
/// If slices make no sense of these metrics.
pub(super) fn choose(typed: typed::Design, task: &Task) -> anyhow::Result<Choice> {
    let asked = |method| Choice {
        method,
        reason: "it was asked for".to_owned(),
        is_asked: true,
    };
    match typed {
        typed::Design::Runs => Ok(asked(Method::Runs)),
        typed::Design::Slices => match unfit(task) {
            Some(why) => bail!("--design slices: {why}"),
            None => Ok(asked(Method::Slices)),
        },
        typed::Design::Auto => Ok(usual(task)),
    }
}

/// Slices where all that is judged can be read while the program runs, at a place of each arm's own.
fn usual(task: &Task) -> Choice {
    let usual = |method, reason: String| Choice {
        method,
        reason,
        is_asked: false,
    };
    if task.server.is_some() {
        return usual(Method::Runs, "a load has a beginning and an end".to_owned());
    }
    match task.asked.iter().find(|asked| !is_counter_of_one_arm(asked)) {
        Some(asked) => usual(
            Method::Runs,
            format!("`{}` is known when a run has ended", asked.wanted.name),
        ),
        None => usual(
            Method::Slices,
            "what is judged can be read of each arm while its program runs".to_owned(),
        ),
    }
}

fn is_counter_of_one_arm(asked: &Asked) -> bool {
    let is_own = asked.from.as_ref().is_some_and(From::is_of_one_arm);
    asked.pattern.is_some() && asked.wanted.higher && is_own
}

/// Why slices cannot be judged.
fn unfit(task: &Task) -> Option<String> {
    if task.server.is_some() {
        return Some(
            "a server's load is timed as a whole (leave --load out and give it load yourself, or use whole runs)"
                .to_owned(),
        );
    }
    task.asked.iter().find_map(|asked| {
        let name = &asked.wanted.name;
        if asked.pattern.is_none() {
            return Some(format!(
                "`{name}` belongs to whole runs: judge a number that goes up while the program works, as in \
                 --metric 'ops=ops: ([0-9]+),from=/tmp/{{arm}}.txt'"
            ));
        }
        let is_shared = asked.from.as_ref().is_some_and(|from| !from.is_of_one_arm());
        is_shared.then(|| {
            format!(
                "`{name}` is read at one place for all arms, whose programs are alive at once: write {{arm}} in its `from=` \
                 and in the command"
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{choose, usual};
    use crate::cli::typed::Design;
    use crate::commands::compare::Task;
    use model::compare::Method;

    fn task(metrics: &[&str]) -> Task {
        Task {
            command: vec!["program".into()],
            asked: metrics.iter().map(|text| text.parse().expect("a metric")).collect(),
            server: None,
        }
    }

    #[test]
    fn slices_are_taken_where_every_metric_can_be_read_meanwhile() {
        for (metrics, method, part) in [
            (
                vec!["ops=([0-9]+),from=/tmp/{arm}"],
                Method::Slices,
                "while its program runs",
            ),
            (
                vec!["ops=([0-9]+),from=http://localhost/{arm}"],
                Method::Slices,
                "while its program runs",
            ),
            (
                vec!["p99=([0-9]+),lower,from=http://localhost/{arm}"],
                Method::Runs,
                "`p99` is known when",
            ),
            (vec!["ops=([0-9]+),from=/tmp/x"], Method::Runs, "`ops` is known when"),
            (vec!["ops=([0-9]+)"], Method::Runs, "`ops` is known when"),
            (
                vec!["ops=([0-9]+),from=/tmp/{arm}", "wall"],
                Method::Runs,
                "`wall` is known when",
            ),
        ] {
            let choice = usual(&task(&metrics));
            assert_eq!(choice.method, method, "{metrics:?}");
            assert!(choice.reason.contains(part), "{}", choice.reason);
        }
    }

    #[test]
    fn what_was_typed_stands_unless_it_makes_no_sense() {
        let counter = task(&["ops=([0-9]+)"]);
        assert_eq!(
            choose(Design::Slices, &counter).expect("the output is read").method,
            Method::Slices
        );
        assert_eq!(choose(Design::Runs, &counter).expect("runs").method, Method::Runs);
        for (metric, why) in [
            ("wall", "`wall` belongs to whole runs"),
            ("ops=([0-9]+),from=/tmp/x", "write {arm}"),
        ] {
            let error = choose(Design::Slices, &task(&[metric])).expect_err("no counter");
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
