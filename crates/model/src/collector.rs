//! Garbage collectors of Java virtual machines.

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
        Self::ALL.into_iter().find(|collector| collector.option() == option)
    }
}

crate::names!(Collector, "a collector", {
    Serial => "serial",
    Parallel => "parallel",
    G1 => "g1",
    Z => "zgc",
    Shenandoah => "shenandoah",
});
