//! Sets of CPUs or nodes as the kernel writes them: `0-3,8`.

use std::fmt;
use std::str::FromStr;

/// CPU (or node) numbers in ascending order, each once. Text and JSON have the kernel's list form, `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuList(Vec<u32>);

/// Why a list could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a list of numbers (write numbers and ranges such as 0-3,8)")]
pub struct ParseCpuListError(String);

/// More than any kernel supports; a larger number is a mistake, not a machine.
const LARGEST: u32 = 65_535;

impl CpuList {
    /// The numbers, in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, number: u32) -> bool {
        self.0.binary_search(&number).is_ok()
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }
}

impl FromStr for CpuList {
    type Err = ParseCpuListError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParseCpuListError(text.chars().take(40).collect());
        let mut numbers = Vec::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().map_err(|_| fail())?;
            let last: u32 = last.trim().parse().map_err(|_| fail())?;
            if first > last || last > LARGEST {
                return Err(fail());
            }
            numbers.extend(first..=last);
            if numbers.len() > LARGEST as usize + 1 {
                return Err(fail());
            }
        }
        Ok(numbers.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        let parts: Vec<String> = runs
            .filter_map(|run| match run {
                [only] => Some(only.to_string()),
                [first, .., last] => Some(format!("{first}-{last}")),
                [] => None,
            })
            .collect();
        f.pad(&parts.join(","))
    }
}

model::as_text!(CpuList, {
    "type": "string",
    "pattern": "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$",
    "description": "numbers and ranges as the kernel writes them: 0-3,8"
});

#[cfg(test)]
mod tests {
    use super::CpuList;

    #[test]
    fn prints_what_the_kernel_writes() {
        for text in ["", "0", "0-3,8", "0-1", "1,3,5-7"] {
            assert_eq!(text.parse::<CpuList>().expect(text).to_string(), text);
        }
        assert_eq!("3,1,2,2\n".parse::<CpuList>().expect("list").to_string(), "1-3");
    }

    #[test]
    fn refuses_nonsense_and_numbers_no_kernel_has() {
        for text in ["x", "1-", "3-1", "0-4294967295", "-1", "0-65535,0-65535"] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }
}
