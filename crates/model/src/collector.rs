//! Garbage collectors of Java virtual machines.

use std::fmt;
use std::str::FromStr;

/// A garbage collector of HotSpot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// `-XX:+UseSerialGC`
    Serial,
    /// `-XX:+UseParallelGC`
    Parallel,
    /// `-XX:+UseG1GC`, the default since JDK 9.
    G1,
    /// `-XX:+UseZGC`
    Z,
    /// `-XX:+UseShenandoahGC`
    Shenandoah,
}

impl Collector {
    /// All, each with the name that users write.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Serial, "serial"),
        (Self::Parallel, "parallel"),
        (Self::G1, "g1"),
        (Self::Z, "zgc"),
        (Self::Shenandoah, "shenandoah"),
    ];

    /// The option that chooses it.
    pub fn option(self) -> &'static str {
        match self {
            Self::Serial => "-XX:+UseSerialGC",
            Self::Parallel => "-XX:+UseParallelGC",
            Self::G1 => "-XX:+UseG1GC",
            Self::Z => "-XX:+UseZGC",
            Self::Shenandoah => "-XX:+UseShenandoahGC",
        }
    }

    /// The one that an option such as `-XX:+UseZGC` chooses.
    pub fn of_option(option: &str) -> Option<Self> {
        let all = Self::ALL.into_iter().map(|(collector, _)| collector);
        all.into_iter().find(|collector| collector.option() == option)
    }
}

impl FromStr for Collector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL
            .into_iter()
            .find(|(_, name)| *name == text.to_ascii_lowercase());
        let known = || Self::ALL.map(|(_, name)| name).join(", ");
        found
            .map(|(collector, _)| collector)
            .ok_or_else(|| format!("`{text}` is not a collector (write {})", known()))
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL
            .into_iter()
            .find(|(collector, _)| collector == self)
            .map_or("", |(_, name)| name);
        f.pad(name)
    }
}
