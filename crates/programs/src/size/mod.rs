//! How many pages known programs take: the only calculator of each need, with its arithmetic line by line.

pub mod jvm;
pub mod machine;
pub mod pages;

pub use crate::mysql::need as mysql;
pub use crate::oracle::oracle;
pub use crate::postgres::need as postgres;
pub use crate::redis::redis;
pub use model::sizing::{SizeError, Sizing};
