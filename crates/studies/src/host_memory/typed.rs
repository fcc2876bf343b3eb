//! The shape of a scenario file, before anything in it is checked.

use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Typed {
    pub(super) seconds: Option<Spanned<f64>>,
    pub(super) step_ms: Option<Spanned<f64>>,
    pub(super) policies: Option<Vec<Spanned<String>>>,
    pub(super) states: Option<Spanned<String>>,
    pub(super) idle_tax: Option<Spanned<f64>>,
    pub(super) compressible: Option<Spanned<f64>>,
    pub(super) least_share: Option<Spanned<f64>>,
    pub(super) cold_minutes: Option<Spanned<i64>>,
    pub(super) host: Spanned<TypedHost>,
    pub(super) rates: Option<TypedRates>,
    pub(super) ksm: Option<TypedKsm>,
    pub(super) khugepaged: Option<TypedKhugepaged>,
    pub(super) translation: Option<Spanned<TypedTranslation>>,
    pub(super) vm: Vec<Spanned<TypedVm>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedHost {
    pub(super) memory: Spanned<String>,
    pub(super) used: Option<Spanned<String>>,
    pub(super) large_pages: Option<bool>,
    pub(super) fragmented: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedRates {
    pub(super) scan_mb_s: Option<Spanned<f64>>,
    pub(super) rush_mb_s: Option<Spanned<f64>>,
    pub(super) swap_mb_s: Option<Spanned<f64>>,
    pub(super) balloon_mb_s: Option<Spanned<f64>>,
    pub(super) compact_mb_s: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedKsm {
    pub(super) pages_to_scan: Option<Spanned<i64>>,
    pub(super) sleep_millisecs: Option<Spanned<i64>>,
    pub(super) use_zero_pages: Option<bool>,
    pub(super) split_frees_zeros: Option<bool>,
    pub(super) max_page_sharing: Option<Spanned<i64>>,
    pub(super) page_ns: Option<Spanned<i64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedKhugepaged {
    pub(super) pages_to_scan: Option<Spanned<i64>>,
    pub(super) scan_sleep_millisecs: Option<Spanned<i64>>,
    pub(super) max_ptes_none: Option<Spanned<i64>>,
    pub(super) max_ptes_shared: Option<Spanned<i64>>,
    pub(super) max_ptes_swap: Option<Spanned<i64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedTranslation {
    pub(super) machine: Option<Spanned<String>>,
    pub(super) mode: Option<Spanned<String>>,
    pub(super) pattern: Option<Spanned<String>>,
    pub(super) guest_page: Option<Spanned<String>>,
    pub(super) other_cycles: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedVm {
    pub(super) name: String,
    pub(super) count: Option<Spanned<i64>>,
    pub(super) memory: Spanned<String>,
    pub(super) used: Option<Spanned<f64>>,
    pub(super) touch_mb_s: Option<Spanned<f64>>,
    pub(super) active: Option<Spanned<f64>>,
    pub(super) zero: Option<Spanned<f64>>,
    pub(super) common: Option<Spanned<f64>>,
    pub(super) volatile: Option<Spanned<f64>>,
    pub(super) clustered: Option<Spanned<f64>>,
    pub(super) content: Option<String>,
    pub(super) salt: Option<String>,
    pub(super) rewritten_per_hour: Option<Spanned<f64>>,
    pub(super) shares: Option<Spanned<i64>>,
    pub(super) large_pages: Option<bool>,
    pub(super) pages: Option<Spanned<String>>,
    pub(super) reservation: Option<Spanned<String>>,
    pub(super) vcpus: Option<Spanned<i64>>,
}
