//! The program as a library: its command line, its results, and the forms they are shown in.

pub mod render;
