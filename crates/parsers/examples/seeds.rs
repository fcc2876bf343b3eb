//! Writes the seeds of every target into a directory, a folder for each: `cargo run -p hugewise-parsers --example seeds DIRECTORY`.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "fuzz/seeds".to_owned()));
    for target in parsers::TARGETS {
        let folder = directory.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (nth, seed) in (target.seeds)().into_iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{nth}")), seed)?;
        }
    }
    Ok(())
}
