//! Any target, by its name in the variable HUGEWISE_FUZZ.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/hugewise/tests/fuzz/targets/mod.rs"]
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use targets::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let names = TARGETS.map(|target| target.name).join(", ");
    let name = std::env::var("HUGEWISE_FUZZ").unwrap_or_default();
    let named = TARGETS.into_iter().find(|target| target.name == name);
    named.unwrap_or_else(|| panic!("HUGEWISE_FUZZ=`{name}` is no target: set it to one of {names}"))
});

fuzz_target!(|bytes: &[u8]| (TARGET.check)(bytes));
