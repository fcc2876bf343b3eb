//! The program as a library: its command line, its results, and the forms they are shown in.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cli;
pub mod commands;
pub mod diff;
pub mod files;
pub mod gain;
pub(crate) mod helper;
pub(crate) mod kinds;
pub(crate) mod recipes;
pub mod render;
pub mod results;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod scratch;
pub mod show;
pub(crate) mod trusted;
pub mod ui;
pub mod verdict;
