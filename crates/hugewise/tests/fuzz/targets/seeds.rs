//! Inputs to begin with: those that are files in `fuzz/seeds`, and those that choose one of a list.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where seeds are that are files, in a folder for each target.
fn folder(target: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // This is compiled by the tests of `hugewise`, and by `fuzz` itself.
    let root = here
        .ancestors()
        .find(|above| above.join("fuzz").is_dir())
        .unwrap_or(here);
    root.join("fuzz/seeds").join(target)
}

/// One of them.
pub(crate) fn seed(target: &str, name: &str) -> Vec<u8> {
    let path = folder(target).join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All of a target, by name.
pub(crate) fn files(target: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder(target)).expect("a folder of seeds");
    let mut names: Vec<OsString> = entries.map(|entry| entry.expect("a seed").file_name()).collect();
    names.sort();
    let read = |name: OsString| seed(target, &name.to_string_lossy());
    names.into_iter().map(read).collect()
}

/// The first byte chooses one of a list, the rest is its content.
pub(crate) fn chosen<'a, T: Copy>(list: &[T], bytes: &'a [u8]) -> Option<(T, &'a [u8])> {
    let (which, content) = bytes.split_first()?;
    Some((*list.get(usize::from(*which) % list.len())?, content))
}

/// Inputs for [`chosen`].
pub(crate) fn choosing<'a>(inputs: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<Vec<u8>> {
    let input = |(which, text): (usize, &str)| [&[which as u8], text.as_bytes()].concat();
    inputs.into_iter().map(input).collect()
}
