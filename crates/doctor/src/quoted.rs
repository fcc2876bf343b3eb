//! What a line of evidence can quote: a value, or a reading that was read. No type lets one that failed be a line.

use std::fmt;
use std::sync::Arc;

use host::CpuList;
use model::{Bytes, Reading};
use programs::Limit;

/// What a line of evidence quotes: a value, or a reading, of which there is a line only if it was read.
pub(super) trait Quoted {
    fn quoted(self) -> Option<String>;
}

/// What is a value, and no reading that may have failed.
pub(super) trait Value: fmt::Display {}

macro_rules! values {
    ($($value:ty),+) => { $(impl Value for $value {})+ };
}

values!(
    str,
    String,
    Arc<str>,
    i32,
    u32,
    i64,
    u64,
    usize,
    f64,
    Bytes,
    CpuList,
    Limit
);

impl<V: Value + ?Sized> Value for &V {}

impl<V: Value> Quoted for V {
    fn quoted(self) -> Option<String> {
        Some(self.to_string())
    }
}

impl<T: fmt::Display> Quoted for &Reading<T> {
    fn quoted(self) -> Option<String> {
        self.known().map(T::to_string)
    }
}
