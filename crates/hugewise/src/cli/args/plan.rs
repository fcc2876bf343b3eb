//! Arguments of `plan` as typed. Their doc comments are the help texts and the man page.

use clap::Args;

/// Arguments of `hugewise plan`.
#[derive(Args, Debug)]
pub struct Plan {
    /// Plan for this goal, or a file of goals (repeatable)
    ///
    /// One of pool:2M=16, pool:1G=4,node=0, thp=madvise, jvm:heap=3.5g,user=NAME, postgres:FILE, innodb:FILE,
    /// oracle:sga=24G, redis, vm:64G,pages=1G, kubernetes:2M=512, placement:SERVICE,cpus=0-3. FILE is an absolute path.
    /// A running program can be named instead: postgres, jvm, mysql, vm:NAME, or with pid=PID; of PostgreSQL also its
    /// data directory.
    #[arg(long = "for", value_name = "GOAL|FILE.toml", required = true)]
    pub goals: Vec<String>,
}
