//! Commands that read a machine, a capture or files, and change nothing: one program of tests, since each is linked anew.

#[path = "../common/mod.rs"]
mod common;

mod command_line;
mod diff;
mod doctor;
mod doctor_files;
mod explain;
mod host_memory;
mod machines;
mod outputs;
mod plan;
mod ps;
mod report;
mod scheduler;
mod simulate;
mod snapshot;
mod typed_files;
mod vm;
mod widths;
