//! The program: reads the command line, carries it out, and ends with what came of it.

use std::process::ExitCode;

use hugewise::{cli, commands, ui};

fn main() -> ExitCode {
    if let Some(code) = measure::kernelops::serve_if_asked() {
        return code;
    }
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let args = cli::help::parse().map_err(anyhow::Error::from);
    ui::finish(args.and_then(|cli| commands::run(&cli, words)))
}
