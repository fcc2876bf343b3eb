//! Any target of `parsers`, by its name in the variable HUGEWISE_FUZZ.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<parsers::Target> = LazyLock::new(|| {
    let names = parsers::TARGETS.map(|target| target.name).join(", ");
    let name = std::env::var("HUGEWISE_FUZZ").unwrap_or_default();
    parsers::find(&name).unwrap_or_else(|| panic!("HUGEWISE_FUZZ=`{name}` is no target: set it to one of {names}"))
});

fuzz_target!(|bytes: &[u8]| (TARGET.check)(bytes));
