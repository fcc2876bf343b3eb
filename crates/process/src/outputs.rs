//! Files in memory for what a program writes, and the texts in them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use model::Bytes;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::stdio::stderr;

/// The end of an output is kept up to this size: programs sum up at their end.
pub const KEPT: Bytes = Bytes::mib(1);
/// With more than that in memory, all but the end is given back.
const MOST: Bytes = Bytes::mib(16);
/// `st_blocks` counts these, whatever the file system (stat(2)).
const BLOCK: u64 = 512;

/// Standard output and error of one program.
#[derive(Debug)]
pub struct Outputs {
    pub output: File,
    pub errors: File,
    /// Are they memory of this program? A file of others is neither read nor shortened.
    is_own: bool,
}

impl Outputs {
    /// Empty ones.
    ///
    /// # Errors
    /// If the kernel gives none.
    pub fn new() -> io::Result<Self> {
        let (output, errors) = (memory("hugewise-output")?, memory("hugewise-errors")?);
        Ok(Self {
            output,
            errors,
            is_own: true,
        })
    }

    /// Both are the standard error of this process.
    ///
    /// # Errors
    /// If it is closed.
    #[allow(clippy::disallowed_methods, reason = "handed on; nothing is printed here")]
    pub fn passed() -> io::Result<Self> {
        let own = || Ok::<_, io::Error>(File::from(stderr().try_clone_to_owned()?));
        Ok(Self {
            output: own()?,
            errors: own()?,
            is_own: false,
        })
    }

    /// What it wrote to standard output so far.
    pub fn output(&self) -> String {
        self.tail(&self.output)
    }

    /// What it wrote to standard error so far.
    pub fn errors(&self) -> String {
        self.tail(&self.errors)
    }

    /// All that it wrote: output, then errors.
    pub fn all(&self) -> String {
        self.output() + &self.errors()
    }

    /// Gives back the memory of all but the ends, where they became long. Was there any? Then more may come soon.
    pub fn shorten(&self) -> bool {
        if !self.is_own {
            return false;
        }
        let [output, errors] = [&self.output, &self.errors].map(shorten);
        output || errors
    }

    /// How much it wrote to both so far.
    pub fn written(&self) -> u64 {
        let both = [&self.output, &self.errors].into_iter();
        both.filter_map(|file| file.metadata().ok())
            .map(|about| about.len())
            .sum()
    }

    fn tail(&self, file: &File) -> String {
        if self.is_own { tail(file) } else { String::new() }
    }
}

fn memory(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// A hole in place of what is not kept: length and position stay, so a program that writes on notices nothing.
fn shorten(file: &File) -> bool {
    let Ok(about) = file.metadata() else { return false };
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    about.blocks() * BLOCK > MOST.0 && fallocate(file, hole, 0, about.len().saturating_sub(KEPT.0)).is_ok()
}

/// The end of what was written; a text that cannot be read is empty. The program writes where this file's own position is,
/// so that it must stay where it is.
fn tail(file: &File) -> String {
    let len = file.metadata().map_or(0, |about| about.len());
    let mut bytes = vec![0; len.min(KEPT.0) as usize];
    match file.read_exact_at(&mut bytes, len.saturating_sub(KEPT.0)) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn of_a_long_text_the_end_is_told() {
        let outputs = Outputs::new().expect("files");
        let text = "x".repeat(KEPT.as_usize()) + "end";
        (&outputs.output).write_all(text.as_bytes()).expect("written");
        assert_eq!(outputs.output(), text[3..]);
    }

    #[test]
    fn a_long_text_gives_its_memory_back_and_is_written_on() {
        let outputs = Outputs::new().expect("files");
        let piece = vec![b'x'; 1 << 20];
        let held = || outputs.output.metadata().expect("about it").blocks() * BLOCK;
        let mut is_shorter = false;
        for written in 1..=64 {
            (&outputs.output).write_all(&piece).expect("written");
            is_shorter |= outputs.shorten();
            assert!(held() <= MOST.0, "{written}M");
        }
        assert!(is_shorter);
        (&outputs.output).write_all(b"end").expect("written");
        assert_eq!(outputs.output(), "x".repeat(KEPT.as_usize() - 3) + "end");
        assert_eq!(outputs.errors(), "");
    }
}
