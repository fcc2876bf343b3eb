//! An address in memory.

use std::fmt;
use std::str::FromStr;

/// A virtual address, written in hex without `0x` as the kernel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = u64::from_str_radix(text, 16).map(Self);
        address.map_err(|_| format!("`{text}` is not an address in hex"))
    }
}

crate::as_text!(Address, {"type": "string"});

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn an_address_is_a_hex_string_in_json() {
        let json = serde_json::to_string(&Address(0x7f00_0010_0000)).expect("JSON");
        assert_eq!(json, "\"7f0000100000\"");
        assert_eq!(
            serde_json::from_str::<Address>(&json).expect("read back"),
            Address(0x7f00_0010_0000)
        );
        assert!(serde_json::from_str::<Address>("\"here\"").is_err());
    }
}
