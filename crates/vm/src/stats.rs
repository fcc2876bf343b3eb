//! KVM's own counters of a VM and of a virtual CPU, as KVM_GET_STATS_FD gives them.
//!
//! The form is documented in the kernel's Documentation/virt/kvm/api.rst under KVM_GET_STATS_FD: a header of six 32-bit words, then
//! descriptors (16 bytes and a name each), then 64-bit values.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::Error;

/// Values by name, such as `pf_fixed` or `pages_4k`. Histograms are left out: they have many values under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats(BTreeMap<String, u64>);

impl Stats {
    /// One value; `None` if this KVM does not count it.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, &value)| (name.as_str(), value))
    }

    /// What changed since `before`. Values that went down (pages in use) count as they are now less what they were, below
    /// zero too.
    pub fn since(&self, before: &Self) -> BTreeMap<String, i64> {
        self.iter()
            .map(|(name, value)| (name, value.wrapping_sub(before.get(name).unwrap_or(0)) as i64))
            .filter(|&(_, change)| change != 0)
            .map(|(name, change)| (name.to_owned(), change))
            .collect()
    }

    /// Both, in one list; names in both are added up.
    pub fn and(mut self, other: Self) -> Self {
        for (name, value) in other.0 {
            *self.0.entry(name).or_default() += value;
        }
        self
    }
}

/// Reads the statistics of a file from KVM_GET_STATS_FD.
pub(crate) fn read(file: &File) -> Result<Stats, Error> {
    // Some 100 descriptors of 64 bytes; a read past the end returns less.
    let mut bytes = vec![0; 1 << 16];
    let mut len = 0;
    loop {
        match file.read_at(&mut bytes[len..], len as u64) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) => return Err(Error::Stats(format!("reading them failed: {error}"))),
        }
    }
    parse(&bytes[..len])
}

/// Understands the whole file.
pub fn parse(bytes: &[u8]) -> Result<Stats, Error> {
    let header = Header::parse(bytes)?;
    let one = |index: usize| -> Result<Option<(String, u64)>, Error> {
        let at = header.descriptors + index * (16 + header.name_size);
        let count = u16::from_ne_bytes(take(bytes, at + 6, "a descriptor's size")?);
        let offset = u32::from_ne_bytes(take(bytes, at + 8, "a descriptor's offset")?);
        if count != 1 {
            return Ok(None);
        }
        let value = u64::from_ne_bytes(take(bytes, header.values + offset as usize, "a value")?);
        Ok(Some((name(bytes, at + 16, header.name_size)?, value)))
    };
    (0..header.count)
        .filter_map(|index| one(index).transpose())
        .collect::<Result<_, _>>()
        .map(Stats)
}

struct Header {
    name_size: usize,
    count: usize,
    descriptors: usize,
    values: usize,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, Error> {
        // Words: flags, name size, number of descriptors, offsets of the id, the descriptors and the values.
        let word = |index: usize| take(bytes, 4 * index, "the header").map(|word| u32::from_ne_bytes(word) as usize);
        let header = Self {
            name_size: word(1)?,
            count: word(2)?,
            descriptors: word(4)?,
            values: word(5)?,
        };
        // So that a damaged header can neither overflow an offset nor ask for billions of descriptors.
        match header.name_size.checked_mul(header.count) {
            Some(names) if names <= bytes.len() && header.count <= bytes.len() => Ok(header),
            _ => Err(Error::Stats(format!(
                "the header promises {} names of {} bytes in a file of {}",
                header.count,
                header.name_size,
                bytes.len()
            ))),
        }
    }
}

fn take<const N: usize>(bytes: &[u8], at: usize, what: &str) -> Result<[u8; N], Error> {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().ok_or_else(|| cut_off(bytes, at, what))
}

fn cut_off(bytes: &[u8], at: usize, what: &str) -> Error {
    let len = bytes.len();
    Error::Stats(format!("{what} at byte {at} is cut off, the file has {len} bytes"))
}

fn name(bytes: &[u8], at: usize, size: usize) -> Result<String, Error> {
    let raw = bytes.get(at..at + size).ok_or_else(|| cut_off(bytes, at, "a name"))?;
    let text = raw.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests;
