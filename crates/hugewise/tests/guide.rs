//! The console blocks of every page under `docs/` show what the program prints.

use std::path::Path;

#[test]
fn console_blocks_of_the_docs_are_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Readers type the commands at the top of the repository, and so are their paths.
    std::env::set_current_dir(root).expect("the top of the repository");
    trycmd::TestCases::new()
        .register_bin("hugewise", Path::new(env!("CARGO_BIN_EXE_hugewise")))
        .case("docs/*.md")
        .case("docs/*/*.md");
}
