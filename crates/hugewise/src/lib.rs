//! The program as a library: its command line, its results, and the forms they are shown in.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cli;
pub mod commands;
mod diff;
mod files;
mod helper;
mod recipes;
pub mod render;
pub mod results;
#[cfg(test)]
mod samples;
mod scratch;
pub mod show;
mod stop;
mod trusted;
pub mod ui;
mod verdict;
