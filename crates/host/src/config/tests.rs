//! Tests of their parent module.
