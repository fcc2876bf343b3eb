//! A root file system in memory for a guest: programs of this machine with their libraries, as the cpio archive that a kernel unpacks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The archive (format `newc`, kernel documentation: driver-api/early-userspace/buffer-format).
#[derive(Default)]
pub(crate) struct Initramfs {
    bytes: Vec<u8>,
    there: BTreeSet<PathBuf>,
}

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

impl Initramfs {
    /// A file and the directories above it; one that is there already stays.
    pub(crate) fn file(&mut self, path: impl AsRef<Path>, mode: u32, content: &[u8]) {
        let path = path.as_ref();
        for above in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            self.entry(above, DIRECTORY | 0o755, &[]);
        }
        self.entry(path, FILE | mode, content);
    }

    pub(crate) fn directory(&mut self, path: &str, mode: u32) {
        self.entry(Path::new(path), DIRECTORY | mode, &[]);
    }

    /// A program as `/bin/NAME`, and its libraries where it looks for them; `None` if it is not on this machine.
    pub(crate) fn program(&mut self, name: &str) -> Option<()> {
        let path = std::env::var("PATH").ok()?;
        let found = std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())?;
        self.program_at(&found, name)
    }

    pub(crate) fn program_at(&mut self, program: &Path, name: &str) -> Option<()> {
        self.file(format!("/bin/{name}"), 0o755, &fs::read(program).ok()?);
        let libraries = Command::new("ldd").arg(program).output().ok()?.stdout;
        let libraries = String::from_utf8_lossy(&libraries).into_owned();
        for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
            self.file(library, 0o755, &fs::read(library).ok()?);
        }
        Some(())
    }

    /// What is below a directory of this machine, at the top of the guest's.
    pub(crate) fn tree(&mut self, from: &Path) {
        let mut folders = vec![from.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a directory").flatten() {
                let (path, meta) = (entry.path(), entry.metadata().expect("metadata"));
                let mode = std::os::unix::fs::MetadataExt::mode(&meta) & 0o7777;
                let inside = Path::new("/").join(path.strip_prefix(from).expect("below it"));
                if meta.is_dir() {
                    self.entry(&inside, DIRECTORY | mode, &[]);
                    folders.push(path);
                } else {
                    self.entry(&inside, FILE | mode, &fs::read(&path).expect("content"));
                }
            }
        }
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.record("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) {
        let name = path.to_str().expect("a plain path").trim_start_matches('/').to_owned();
        if !name.is_empty() && self.there.insert(path.to_owned()) {
            self.record(&name, mode, content);
        }
    }

    fn record(&mut self, name: &str, mode: u32, content: &[u8]) {
        let inode = self.there.len();
        let (links, size, name_size) = (1, content.len(), name.len() + 1);
        let fields = [inode, mode as usize, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        let fields: String = fields.iter().map(|field| format!("{field:08x}")).collect();
        self.bytes.extend(format!("070701{fields}{name}\0").bytes());
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
