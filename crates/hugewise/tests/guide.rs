//! The guide's console blocks show what the program prints.

use std::path::Path;

#[test]
fn its_blocks_are_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The guide is read at the top of the repository, and so are its paths.
    std::env::set_current_dir(root).expect("the top of the repository");
    trycmd::TestCases::new()
        .register_bin("hugewise", Path::new(env!("CARGO_BIN_EXE_hugewise")))
        .case("GUIDE.md");
}
