//! Writes the seeds of every target into a directory, a folder for each: `cargo run --bin seeds DIRECTORY`.

#[allow(dead_code)]
#[path = "../../crates/hugewise/tests/fuzz/targets/mod.rs"]
mod targets;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "target/found".to_owned()));
    for target in targets::TARGETS {
        let folder = directory.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (nth, seed) in (target.seeds)().into_iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{nth}")), seed)?;
        }
    }
    Ok(())
}
