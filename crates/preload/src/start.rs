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

/// Where the page is: `PID:FD:NONCE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place<'a> {
    /// Digits of a number, as the next one.
    pid: &'a [u8],
    fd: &'a [u8],
    nonce: u64,
}

impl<'a> Place<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let mut parts = text.split(|&byte| byte == b':');
        let place = Self {
            pid: parts.next()?,
            fd: parts.next()?,
            nonce: number(parts.next()?)?,
        };
        number(place.pid).and(number(place.fd))?;
        parts.next().is_none().then_some(place)
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
        let value = text.to_bytes().strip_prefix(VARIABLE.as_bytes());
        if let Some(value) = value.and_then(|value| value.strip_prefix(b"=")) {
            return Place::parse(value);
        }
    }
}

/// The inherited descriptor, or else the same file by way of the process that made it.
fn find(place: Place<'_>) -> Option<Orders> {
    let inherited = c_int::try_from(number(place.fd)?).ok()?;
    map(inherited, place.nonce).or_else(|| {
        let fd = linux::open(&path(place)?)?;
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

/// `/proc/PID/fd/FD` in a buffer of zeros, the first of which ends it.
fn path(place: Place<'_>) -> Option<[u8; 64]> {
    let mut path = [0; 64];
    let parts: [&[u8]; 4] = [b"/proc/", place.pid, b"/fd/", place.fd];
    let mut bytes = parts.into_iter().flatten();
    let (_, room) = path.split_last_mut()?;
    room.iter_mut().zip(&mut bytes).for_each(|(to, &byte)| *to = byte);
    bytes.next().is_none().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::{Place, path};

    #[test]
    fn a_place_is_three_numbers_and_nothing_else() {
        let place = Place {
            pid: b"12",
            fd: b"500",
            nonce: u64::MAX,
        };
        assert_eq!(Place::parse(b"12:500:18446744073709551615"), Some(place));
        for text in [
            "",
            "12",
            "12:500",
            "12:500:",
            "12:500:1:2",
            "12:x:1",
            "-1:2:3",
            "1:2:18446744073709551616",
        ] {
            assert_eq!(Place::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn its_path_ends_with_a_zero_and_is_none_if_too_long() {
        for (text, expected) in [
            ("0:0:1", "/proc/0/fd/0\0"),
            ("1:10:1", "/proc/1/fd/10\0"),
            ("40960:999:1", "/proc/40960/fd/999\0"),
            (
                "18446744073709551615:18446744073709551615:1",
                "/proc/18446744073709551615/fd/18446744073709551615\0",
            ),
        ] {
            let place = Place::parse(text.as_bytes()).expect("three numbers");
            assert!(path(place).expect("short enough").starts_with(expected.as_bytes()));
        }
        let long = Place {
            pid: &[b'1'; 60],
            fd: b"1",
            nonce: 0,
        };
        assert_eq!(path(long), None);
    }
}
