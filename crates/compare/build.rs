//! Builds libhugewise_preload.so, which `compare::preload` carries along, from the two crates beside this one.
//!
//! Two calls of rustc, about two seconds: the library has no other dependency, no standard library, and must not take over the flags of
//! the program that embeds it (sanitizers, coverage, unwinding), which a build by Cargo would.
// A build script speaks to Cargo by its standard output.
#![allow(clippy::print_stdout)]

use std::env::{self, VarError};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "libhugewise_preload.so";

fn main() -> Result<(), String> {
    for crate_folder in ["../preload-abi/src", "../preload/src"] {
        println!("cargo::rerun-if-changed={crate_folder}");
    }
    let out = PathBuf::from(variable("OUT_DIR")?);
    // The library makes system calls by itself, and stands in front of glibc.
    let target = ["OS", "ENV", "ARCH"].map(|part| variable(&format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default());
    if target == ["linux", "gnu", "x86_64"] {
        build(&out)
    } else {
        // `Armed::new` reports it to its callers.
        std::fs::write(out.join(LIBRARY), []).map_err(|error| format!("{}: {error}", out.display()))
    }
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error: VarError| format!("{name}: {error}"))
}

fn build(out: &Path) -> Result<(), String> {
    let abi = out.join("libpreload_abi.rlib");
    rustc(
        &abi,
        "../preload-abi/src/lib.rs",
        &["--crate-name=preload_abi", "--crate-type=rlib"],
    )?;
    let mut given = OsString::from("preload_abi=");
    given.push(&abi);
    let options = [
        "--crate-name=hugewise_preload",
        "--crate-type=cdylib",
        "-Cstrip=symbols",
        "-Clink-arg=-Wl,-z,now",
    ];
    let mut library: Vec<OsString> = options.map(OsString::from).into();
    library.extend(["--extern".into(), given]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        library.push(format!("-Clinker={linker}").into());
    }
    rustc(&out.join(LIBRARY), "../preload/src/lib.rs", &library)
}

fn rustc(output: &Path, source: &str, options: &[impl AsRef<std::ffi::OsStr>]) -> Result<(), String> {
    let status = Command::new(variable("RUSTC")?)
        .args([
            "--edition=2024",
            "-Copt-level=3",
            "-Ccodegen-units=1",
            "-Cpanic=abort",
            "--target",
        ])
        .arg(variable("TARGET")?)
        .args(options)
        .arg("-o")
        .args([output.as_os_str(), source.as_ref()])
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("rustc of {source} ended with {status}")),
        Err(error) => Err(format!("rustc cannot be started: {error}")),
    }
}
