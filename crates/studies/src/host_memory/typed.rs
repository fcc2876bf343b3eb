//! The shape of a scenario file, before anything in it is checked.

use serde::Deserialize;
use toml::Spanned;

use crate::tables::{Flag, Part, Whole, Word, tables};

tables! {
    Typed {
        seconds, step_ms, idle_tax, compressible, least_share: Part;
        cold_minutes: Whole;
        states: Word;
        policies: Option<Vec<Spanned<String>>>;
        host: Spanned<TypedHost>;
        rates: Option<TypedRates>;
        ksm: Option<TypedKsm>;
        khugepaged: Option<TypedKhugepaged>;
        translation: Option<Spanned<TypedTranslation>>;
        vm: Vec<Spanned<TypedVm>>;
    }
    TypedHost {
        memory: Spanned<String>;
        used: Word;
        large_pages: Flag;
        fragmented: Part;
    }
    TypedRates {
        scan_mb_s, rush_mb_s, swap_mb_s, balloon_mb_s, compact_mb_s: Part;
    }
    TypedKsm {
        pages_to_scan, sleep_millisecs, max_page_sharing, page_ns: Whole;
        use_zero_pages, split_frees_zeros: Flag;
    }
    TypedKhugepaged {
        pages_to_scan, scan_sleep_millisecs, max_ptes_none, max_ptes_shared, max_ptes_swap: Whole;
    }
    TypedTranslation {
        machine, mode, pattern, guest_page: Word;
        other_cycles: Part;
    }
    TypedVm {
        name: String;
        memory: Spanned<String>;
        count, shares, vcpus: Whole;
        used, touch_mb_s, active, zero, common, volatile, clustered, rewritten_per_hour: Part;
        content, salt: Option<String>;
        large_pages: Flag;
        pages, reservation: Word;
    }
}
