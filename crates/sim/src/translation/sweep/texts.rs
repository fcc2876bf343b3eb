//! Texts of a sweep's file as sizes, pages and settings.

use model::Bytes;

use super::typed::Typed;
use crate::translation::access::ADDRESS_BITS;
use crate::translation::engine::Mode;
use crate::translation::patterns::SMALLEST;
use crate::translation::study::Setting;

/// Every mode with every pair of pages; natively the guest's page counts alone.
pub(super) fn settings(modes: &[Typed<Mode>], pairs: &[Typed<(Bytes, Bytes)>]) -> Vec<Typed<Setting>> {
    let usual = [Mode::Native, Mode::Nested].map(|value| Typed { line: 1, value });
    let modes = if modes.is_empty() { &usual } else { modes };
    let mut settings: Vec<Typed<Setting>> = Vec::new();
    for mode in modes {
        for pair in pairs {
            let (guest_page, host) = pair.value;
            let setting = Setting::new(mode.value, guest_page, host);
            if !settings.iter().any(|other| other.value == setting) {
                settings.push(Typed {
                    line: mode.line.max(pair.line),
                    value: setting,
                });
            }
        }
    }
    settings
}

fn size(text: &str) -> Result<Bytes, String> {
    text.parse::<Bytes>().map_err(|error| error.to_string())
}

pub(super) fn working_set(text: &str) -> Result<Bytes, String> {
    let (size, most) = (size(text)?, Bytes(1 << ADDRESS_BITS));
    match size {
        small if small < SMALLEST => Err(format!("`{text}` is too small: expected at least {SMALLEST}")),
        large if large > most => Err(format!("`{text}` is too large: expected at most {most}")),
        size => Ok(size),
    }
}

pub(super) fn page(text: &str) -> Result<Bytes, String> {
    let page = size(text)?;
    let fits = page.0.is_power_of_two() && (4096..=1 << 40).contains(&page.0);
    let why = || format!("`{text}` is no page size: expected a power of two from 4K on, such as 4K, 2M or 1G");
    fits.then_some(page).ok_or_else(why)
}
