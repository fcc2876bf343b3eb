//! What was typed after `plan`, word for word; its doc comments are the help texts and the man page.

use clap::Args;

/// `hugewise plan`
///
/// Works out which changes bring this machine (or a captured one, with --root) to the goals: each with what stands there
/// now, what shall stand there, why, and the risk. Changes nothing: `hugewise apply` takes the JSON, --format shell gives a
/// script and --format ansible a playbook. What this host cannot do itself comes out as instructions.
#[derive(Args, Debug)]
pub struct Plan {
    /// A goal, or a file of goals (may be given again): pool:2M=16, pool:1G=4,node=0, thp=madvise,
    /// jvm:heap=3.5g,user=NAME, postgres:FILE, innodb:FILE, oracle:sga=24G, redis, vm:64G,pages=1G, kubernetes:2M=512,
    /// windows:user=NAME
    #[arg(long = "for", value_name = "GOAL|FILE.toml", required = true)]
    pub goals: Vec<String>,
}
