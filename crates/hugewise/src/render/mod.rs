//! Results in the forms a reader can want; nothing here prints or looks at the machine.

pub(crate) mod export;
pub mod find;
pub mod fix;
pub mod measure;
pub mod predict;
pub mod prove;
