//! Scenarios of schedulers and of host memory.

use studies::host_memory;
use studies::scheduler::file;

/// Any text is a scenario, or an error that names the file.
pub(crate) fn scenario(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = file::parse("host.toml", &text, None, 7) {
        assert!(error.to_string().starts_with("host.toml"), "{error}");
    }
}

/// Any text is a scenario, or an error that names the file.
pub(crate) fn memory(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(error) = host_memory::file::parse("host.toml", &text, &[], 7) {
        assert!(error.to_string().starts_with("host.toml"), "{error}");
    }
}
