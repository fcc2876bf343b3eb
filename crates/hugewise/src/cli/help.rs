//! What help shows beside the options: examples of each command, and a page of the options that every command takes.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command as CommandLine, CommandFactory, FromArgMatches};

use super::typed::{Cli, Global};

/// Stands for the options that every command takes.
const COMMON: &str = "Options of every command, such as --root, --json and --output: hugewise help options";

/// The command line with its help pages. What every command takes has a page of its own.
pub fn command() -> CommandLine {
    let command = Cli::command().mut_args(|option| option.hide_short_help(true).hide_long_help(true));
    with_examples(command, "").subcommand(options_page())
}

/// Parses the arguments of this process.
pub fn parse() -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let mut matches = matches.map_err(|error| meant(&mut command, error))?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Words for what a command does, and the command.
const MEANT: [(&str, &str); 16] = [
    ("bench", "measure latency"),
    ("benchmark", "measure latency"),
    ("check", "checkup"),
    ("diagnose", "doctor"),
    ("fix", "plan"),
    ("huge", "explain"),
    ("hugepages", "explain"),
    ("list", "ps"),
    ("processes", "ps"),
    ("restore", "undo"),
    ("revert", "undo"),
    ("rollback", "undo"),
    ("run", "compare"),
    ("test", "compare"),
    ("top", "ps --watch"),
    ("why", "explain"),
];

/// For a word that is no command but means one, or is one below another command: an error that names it.
fn meant(command: &mut CommandLine, error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let below = command.get_subcommands().find_map(|top| {
        let has = top.get_subcommands().any(|below| below.get_name() == word);
        has.then(|| format!("{} {word}", top.get_name()))
    });
    let known = MEANT
        .iter()
        .find(|(said, _)| said == word)
        .map(|(_, meant)| (*meant).to_owned());
    match known.or(below) {
        Some(meant) => {
            let text = format!("there is no command `{word}` (write: hugewise {meant}; hugewise --help lists all)");
            command.error(ErrorKind::InvalidSubcommand, text)
        }
        None => error,
    }
}

/// Adds its examples to a command and to those below it. `path` is empty for the program itself.
fn with_examples(command: CommandLine, path: &str) -> CommandLine {
    let command = command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_examples(below, path.trim_start())
    });
    let lines: Vec<&str> = EXAMPLES
        .iter()
        .filter(|(of, _)| *of == path)
        .flat_map(|(_, lines)| lines.iter().copied())
        .collect();
    let long = match lines.is_empty() {
        true => COMMON.to_owned(),
        false => format!("Examples:\n  {}\n\n{COMMON}", lines.join("\n  ")),
    };
    command.after_help(COMMON).after_long_help(long)
}

/// `hugewise help options`: the options of every command, which the other pages leave out.
fn options_page() -> CommandLine {
    Global::augment_args(CommandLine::new("options"))
        .about("Show the options that every command takes")
        .mut_args(|option| option.global(false))
        .hide(true)
        .arg_required_else_help(true)
        .override_usage("hugewise [OPTIONS] <COMMAND>\n       hugewise <COMMAND> [OPTIONS]")
}

/// Examples by command. A line that ends with `\` continues.
pub const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "hugewise checkup",
            "sudo hugewise doctor",
            "hugewise compare --arms base,thp --metric cpu -- ./program",
        ],
    ),
    (
        "checkup",
        &[
            "hugewise checkup --quick",
            "hugewise checkup --skip guest,tlb --report db7.html",
            "hugewise --root db7.tree checkup",
        ],
    ),
    (
        "doctor",
        &[
            "sudo hugewise doctor",
            "hugewise doctor --explain pool-short",
            "hugewise doctor --file sysctl.conf --file postgresql.conf --fail-on error",
            "hugewise doctor --output hugewise.sarif",
        ],
    ),
    (
        "explain",
        &[
            "sudo hugewise explain postgres",
            "hugewise explain app.jar",
            "hugewise --root db7.tree explain java",
        ],
    ),
    (
        "diff",
        &[
            "hugewise diff before.json after.json --output diff.html",
            "hugewise diff db7.tree db8.tree",
            "hugewise diff main.json branch.json --allow 10% --fail-if worse,findings",
        ],
    ),
    (
        "measure latency",
        &[
            "hugewise measure latency --pages base,thp --from 1M --to 1G",
            "hugewise measure latency --sizes 64M,1G --pattern line-per-page --json",
        ],
    ),
    (
        "measure kernel",
        &[
            "hugewise measure kernel --quick",
            "hugewise measure kernel --pages base,thp --workers 1",
        ],
    ),
    (
        "measure guest",
        &[
            "hugewise measure guest",
            "hugewise measure guest --guest-pages 4K,2M --pages base,hugetlb-2M --sizes 64M,1G",
        ],
    ),
    (
        "measure tlb",
        &[
            "hugewise measure tlb --quick",
            "hugewise measure tlb --pages base,thp,hugetlb-2M --cpu 2",
        ],
    ),
    (
        "measure cores",
        &[
            "hugewise measure cores",
            "hugewise measure cores --cpus 0,1,2,3 --quick",
        ],
    ),
    (
        "measure migration",
        &[
            "hugewise measure migration",
            "hugewise measure migration --cpus 0,1,64 --sizes 32K,1M --budget 60s",
        ],
    ),
    (
        "compare",
        &[
            "hugewise compare --arms base,thp,hugetlb-2M --metric cpu -- ./program",
            "hugewise compare --metric 'rate=rate: ([0-9.]+),higher' -- ./program",
            "hugewise compare --ready 'redis-cli ping' --load 'redis-benchmark -q -t get' \\",
            "    --metric 'get=GET: ([0-9.]+) requests,higher' -- redis-server --save ''",
            "hugewise compare --live 4711 --metric 'ops=ops ([0-9]+),from=/run/app/counters'",
        ],
    ),
    (
        "suite",
        &[
            "hugewise suite --list",
            "sudo hugewise suite --only jbb-parallel-1g,redis-fork --budget 10m --output suite.html",
            "sudo hugewise suite --resume ~/.local/state/hugewise/suite-1",
        ],
    ),
    (
        "collapse",
        &[
            "sudo hugewise collapse 4711",
            "sudo hugewise collapse 4711 --range heap --budget 50ms/s",
        ],
    ),
    (
        "placement record",
        &[
            "hugewise placement record -- ./program",
            "hugewise placement record --output before.json -- ./program",
            "sudo hugewise placement record --pid 4711 --for 10s",
        ],
    ),
    (
        "placement diff",
        &[
            "hugewise placement diff before.json after.json",
            "hugewise placement diff b1.json,b2.json,b3.json a1.json,a2.json,a3.json --work 100,101,99,120,119,121",
            "hugewise placement diff --published ibm-2006",
        ],
    ),
    (
        "placement check",
        &["sudo hugewise placement check", "hugewise placement check 4711"],
    ),
    (
        "plan",
        &[
            "hugewise plan --for pool:2M=3072",
            "hugewise plan --for jvm:heap=6g,user=jboss --output plan.json",
            "hugewise plan --for postgres --output plan.json",
            "hugewise plan --for site.toml --format ansible",
        ],
    ),
    (
        "size reach",
        &["hugewise size reach --entries 2048 --pages 4K,2M --working-set 8G"],
    ),
    ("size pages", &["hugewise size pages 6G --pages 2M"]),
    ("size memlock", &["hugewise size memlock 6G"]),
    ("size shmmax", &["hugewise size shmmax 6G"]),
    ("size jvm", &["hugewise size jvm --heap 4G --collector parallel"]),
    (
        "size postgres",
        &[
            "sudo hugewise size postgres /etc/postgresql/15/main/postgresql.conf",
            "hugewise size postgres --shared-buffers 8G",
        ],
    ),
    ("size oracle", &["hugewise size oracle --sga 24G"]),
    ("size innodb", &["hugewise size innodb --buffer-pool 8G"]),
    ("size redis", &["hugewise size redis --maxmemory 4G"]),
    (
        "size vm",
        &["hugewise size vm --memory 64G --count 4 --nodes 2 --pages 1G"],
    ),
    ("size dpdk", &["hugewise size dpdk --socket-mem 2G,2G --mbufs 100000"]),
    (
        "size esx-cpu",
        &["hugewise size esx-cpu --cores 48 --ghz 2.99 --reserved-mhz 10386"],
    ),
    (
        "size esx-memory",
        &["hugewise size esx-memory --total 2048 --reserved 39"],
    ),
    (
        "size esx-backing",
        &["hugewise size esx-backing --memory 1960 --pages-1g 1941 --pages-2m 8605"],
    ),
    ("size esx-minfree", &["hugewise size esx-minfree 128G"]),
    (
        "size idle-tax",
        &["hugewise size idle-tax --shares 1000 --pages 500 --active 0.25"],
    ),
    ("size ksm", &["hugewise size ksm --memory 64G --pages-to-scan 1000"]),
    ("size gain", &["hugewise size gain --old 100,102,99 --new 120,119,123"]),
    (
        "simulate translation",
        &[
            "hugewise simulate translation --machine 8452y --pattern chase --working-sets 1G,64G",
            "hugewise simulate translation --mode nested --guest-pages 4K,2M --host-pages 4K,2M,1G",
            "hugewise simulate translation --machine here --measured result.json --pattern chase",
            "hugewise simulate translation --machine list",
            "hugewise simulate translation --preset esx35-large-pages",
        ],
    ),
    (
        "simulate sweep",
        &[
            "hugewise simulate sweep sweep.toml",
            "hugewise simulate sweep sweep.toml --shard 2/4",
            "hugewise simulate sweep sweep.toml --merge sweep.*-of-4.jsonl --format csv",
        ],
    ),
    (
        "simulate scheduler",
        &[
            "hugewise simulate scheduler host.toml",
            "hugewise simulate scheduler host.toml --policy linux-like --output schedule.html --format html",
            "hugewise simulate scheduler --preset ibm-2006",
        ],
    ),
    (
        "simulate host",
        &[
            "hugewise simulate host host.toml",
            "hugewise simulate host host.toml --policy never-break,ksm --format html --output memory.html",
            "hugewise simulate host --capture kvm7.tree --more 50",
            "hugewise simulate host --preset ksm-thp",
        ],
    ),
    (
        "predict",
        &[
            "hugewise predict -- python3 job.py",
            "hugewise predict --machine 8452y -- ./program",
            "hugewise predict --trace program.trace --machine epyc-7742",
        ],
    ),
    ("trace", &["hugewise trace --output program.trace -- ./program"]),
    (
        "apply",
        &[
            "sudo hugewise apply plan.json",
            "sudo hugewise apply plan.json --exact --yes",
        ],
    ),
    ("verify", &["sudo hugewise verify", "hugewise verify plan.json"]),
    ("undo", &["sudo hugewise undo"]),
    ("status", &["hugewise status"]),
    (
        "ps",
        &[
            "sudo hugewise ps",
            "sudo hugewise ps --why --sort missed --top 10",
            "sudo hugewise ps --by container",
            "sudo hugewise ps 4711 --vmas",
        ],
    ),
    ("vm", &["sudo hugewise vm"]),
    ("vm list", &["sudo hugewise vm list"]),
    (
        "snapshot",
        &["sudo hugewise snapshot db7.tree", "hugewise --root db7.tree doctor"],
    ),
    (
        "report",
        &[
            "hugewise report result.json --output report.html",
            "hugewise report result.json --format csv",
            "hugewise report result.json --chart gains --output gains.png",
        ],
    ),
    ("schema", &["hugewise schema", "hugewise schema doctor"]),
    (
        "completions",
        &[
            "hugewise completions bash > /etc/bash_completion.d/hugewise",
            "hugewise completions zsh > ~/.zfunc/_hugewise",
            "hugewise completions fish > ~/.config/fish/completions/hugewise.fish",
        ],
    ),
];

#[cfg(test)]
#[path = "help_tests.rs"]
mod tests;
