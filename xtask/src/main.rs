//! Man pages, completions, schemas and fixtures.
fn main() {}
