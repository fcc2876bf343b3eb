//! Exporters: results in forms that other programs read, such as monitoring, code scanning, shells, Ansible and readers of hyperfine's JSON.

pub(super) mod ansible;
pub(crate) mod hyperfine;
pub(super) mod prometheus;
pub(super) mod sarif;
pub(super) mod shell;

pub(crate) use self::shell::{quoted, word};
