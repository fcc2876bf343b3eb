//! Results in the forms a reader can want; nothing here prints or looks at the machine.

pub mod find;
pub mod fix;
pub mod measure;
pub mod predict;
pub mod prove;
