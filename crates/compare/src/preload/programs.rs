//! Which programs the library can be put in front of.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::elf::{EM_AARCH64, EM_X86_64, Machine};
use rustix::process::{getegid, geteuid};

use crate::elf::Elf;

/// Program headers and the loader's name stand at the beginning of a file.
const BEGINNING: u64 = 64 << 10;

/// Why the library cannot be put in front of a program.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// Its file cannot be read.
    #[error("{path}: cannot be read: {error}", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// No ELF file: a script, for one.
    #[error("{}: is no ELF program (name the interpreter of a script)", .0.display())]
    NotElf(PathBuf),
    /// For another CPU, or 32 bits wide.
    #[error("{}: is a program for another kind of CPU", .0.display())]
    OtherMachine(PathBuf),
    /// Nothing is loaded at its start.
    #[error("{}: is a static program, no library can be put in front of it", .0.display())]
    Static(PathBuf),
    /// musl, Bionic, and others.
    #[error("{path}: its loader is {loader}, and the preload library stands in front of glibc only", path = .path.display())]
    OtherLibc {
        /// The file.
        path: PathBuf,
        /// The loader that it names.
        loader: String,
    },
    /// It gets rights that this user lacks.
    #[error("{}: takes on another user's rights, for which the loader ignores LD_PRELOAD", .0.display())]
    Privileged(PathBuf),
}

/// Can the library be put in front of this program? Takes the file itself; of a script, its interpreter's.
///
/// # Errors
/// If not, and why.
pub fn can_take(program: &Path) -> Result<(), Why> {
    let unreadable = |error| Why::Unreadable {
        path: program.to_owned(),
        error,
    };
    let file = File::open(program).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mut beginning = Vec::new();
    file.take(BEGINNING).read_to_end(&mut beginning).map_err(unreadable)?;
    loader(&beginning, program)?;
    if is_privileged(program, &metadata) {
        return Err(Why::Privileged(program.to_owned()));
    }
    Ok(())
}

/// What programs of this machine are made for.
const OWN: Machine = if cfg!(target_arch = "aarch64") {
    EM_AARCH64
} else {
    EM_X86_64
};

/// Judges the program by the loader that it names.
fn loader(bytes: &[u8], program: &Path) -> Result<(), Why> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err(Why::NotElf(program.to_owned()));
    }
    let own = Elf::read(bytes).filter(|elf| elf.machine == OWN);
    let elf = own.ok_or_else(|| Why::OtherMachine(program.to_owned()))?;
    let loader = elf.loader.ok_or_else(|| Why::Static(program.to_owned()))?;
    let name = loader.rsplit('/').next().unwrap_or_default();
    if name.starts_with("ld-linux") {
        Ok(())
    } else {
        Err(Why::OtherLibc {
            path: program.to_owned(),
            loader,
        })
    }
}

/// set-user-ID, set-group-ID or capabilities of the file, unless they give nothing new.
fn is_privileged(program: &Path, metadata: &Metadata) -> bool {
    let (user, group) = (geteuid(), getegid());
    let as_user = metadata.mode() & 0o4000 != 0 && metadata.uid() != user.as_raw();
    let as_group = metadata.mode() & 0o2010 == 0o2010 && metadata.gid() != group.as_raw();
    let capable = rustix::fs::getxattr(program, c"security.capability", &mut [0_u8; 64][..]).is_ok();
    as_user || as_group || (capable && !user.is_root())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Why, can_take, loader};

    /// The smallest ELF file that names a loader, or none.
    fn elf(named: Option<&str>) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64 + 56, 0);
        let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64; // e_phoff
        bytes[52] = 64; // e_ehsize
        bytes[54] = 56; // e_phentsize
        bytes[56] = 1; // e_phnum
        if let Some(name) = named {
            bytes[64] = 3; // PT_INTERP
            bytes[64 + 8] = 120; // p_offset
            bytes[64 + 32] = name.len() as u8 + 1; // p_filesz
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
        }
        bytes
    }

    fn judged(bytes: &[u8]) -> Result<(), Why> {
        loader(bytes, Path::new("/bin/program"))
    }

    #[test]
    fn a_program_is_judged_by_its_loader() {
        assert!(judged(&elf(Some("/lib64/ld-linux-x86-64.so.2"))).is_ok());
        assert!(judged(&elf(Some("/nix/store/x-glibc-2.40/lib/ld-linux-aarch64.so.1"))).is_ok());
        assert!(matches!(judged(&elf(None)), Err(Why::Static(_))));
        let musl = judged(&elf(Some("/lib/ld-musl-x86_64.so.1"))).expect_err("musl");
        assert!(musl.to_string().contains("ld-musl-x86_64.so.1"), "{musl}");
    }

    #[test]
    fn what_is_no_program_of_this_machine_is_refused_by_name() {
        assert!(matches!(judged(b"#!/bin/sh\n"), Err(Why::NotElf(_))));
        let mut narrow = elf(None);
        narrow[4] = 1;
        assert!(matches!(judged(&narrow), Err(Why::OtherMachine(_))));
        assert!(matches!(judged(b"\x7fELF"), Err(Why::OtherMachine(_))));
    }

    #[test]
    fn this_test_can_be_taken_and_a_missing_program_cannot() {
        can_take(&std::env::current_exe().expect("a path")).expect("a program with glibc");
        let missing = can_take(Path::new("/no/such/program")).expect_err("missing");
        assert!(missing.to_string().contains("/no/such/program"), "{missing}");
    }
}
