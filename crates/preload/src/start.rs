//! The first use: finds the shared page, before constructors if a hook runs that early.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use preload_abi::{BYTES, MAGIC, VARIABLE, WORDS, at};

use crate::frames;
use crate::linux::{self, MAP_SHARED, Request};
use crate::orders::Orders;
use crate::quick;

/// Was it looked for?
static BEGUN: AtomicBool = AtomicBool::new(false);
/// The shared page; null without orders, or before they are known.
static PAGE: AtomicPtr<[AtomicU64; WORDS]> = AtomicPtr::new(core::ptr::null_mut());

/// The orders, or nothing: none were given, or another thread is just reading them. No thread waits for another here.
#[cold]
#[inline(never)]
pub(crate) fn orders() -> Option<Orders> {
    if !BEGUN.load(Ordering::Acquire) {
        start();
    }
    // SAFETY: null, or the mapped page, which stays for as long as the process.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }.map(Orders)
}

fn start() {
    if BEGUN.swap(true, Ordering::AcqRel) {
        return;
    }
    let Some(environment) = environment() else {
        // Too early: the C library does not know it yet either.
        BEGUN.store(false, Ordering::Release);
        return;
    };
    let found = named(environment).and_then(find);
    found.into_iter().flat_map(Orders::kinds).for_each(frames::track);
    if let Some(orders) = found {
        orders.add(at::LOADED, 1);
        PAGE.store(core::ptr::from_ref(orders.0).cast_mut(), Ordering::Release);
    }
    quick::begin(found.map_or(usize::MAX, Orders::minimum));
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

fn environment() -> Option<*const *const c_char> {
    // SAFETY: the C library's variable; nothing writes to it before a program's constructors run.
    let list = unsafe { environ };
    (!list.is_null()).then_some(list)
}

/// Where the page is: `FD:NONCE:PATH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place<'a> {
    fd: c_int,
    nonce: u64,
    /// Ends with a zero.
    path: &'a [u8],
}

impl<'a> Place<'a> {
    /// From the value of the variable, with the zero at its end.
    fn parse(value: &'a [u8]) -> Option<Self> {
        let mut parts = value.splitn(3, |&byte| byte == b':');
        Some(Self {
            fd: c_int::try_from(number(parts.next()?)?).ok()?,
            nonce: number(parts.next()?)?,
            path: parts.next()?,
        })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn named<'a>(environment: *const *const c_char) -> Option<Place<'a>> {
    let mut entry = environment;
    loop {
        // SAFETY: a list of pointers to texts that end with a zero, which ends with a null pointer.
        let text = unsafe {
            let text = *entry;
            entry = entry.add(1);
            (!text.is_null()).then(|| CStr::from_ptr(text))
        }?;
        let value = text.to_bytes_with_nul().strip_prefix(VARIABLE.as_bytes());
        if let Some(value) = value.and_then(|value| value.strip_prefix(b"=")) {
            return Place::parse(value);
        }
    }
}

/// The inherited descriptor, or else the same file by way of the process that made it.
fn find(place: Place<'_>) -> Option<Orders> {
    map(place.fd, place.nonce).or_else(|| {
        let fd = linux::open(place.path)?;
        let orders = map(fd, place.nonce);
        linux::close(fd);
        orders
    })
}

fn map(fd: c_int, nonce: u64) -> Option<Orders> {
    if linux::file_len(fd)? != BYTES as u64 {
        return None;
    }
    let request = Request {
        flags: MAP_SHARED,
        fd,
        ..Request::anonymous(BYTES)
    };
    // SAFETY: a new mapping, anywhere.
    let address = unsafe { linux::mmap(&request) }.ok()?;
    // SAFETY: as long as the file, aligned to pages, never unmapped if it is ours; the file is sealed against shrinking.
    let words: &'static [AtomicU64; WORDS] = unsafe { &*core::ptr::with_exposed_provenance(address) };
    let orders = Orders(words);
    if orders.word(at::MAGIC) == MAGIC && orders.word(at::NONCE) == nonce {
        return Some(orders);
    }
    // SAFETY: mapped above, and no reference to it is left.
    let _ = unsafe { linux::munmap(address, BYTES) };
    None
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_place_is_two_numbers_and_a_path() {
        let place = Place {
            fd: 500,
            nonce: u64::MAX,
            path: b"/proc/12/fd/500\0",
        };
        assert_eq!(Place::parse(b"500:18446744073709551615:/proc/12/fd/500\0"), Some(place));
        for text in [
            "",
            "12",
            "500:1",
            "x:1:/",
            "-1:2:/",
            "2147483648:2:/",
            "1:18446744073709551616:/",
        ] {
            assert_eq!(Place::parse(text.as_bytes()), None, "{text}");
        }
    }
}
