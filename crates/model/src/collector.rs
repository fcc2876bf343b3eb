//! Garbage collectors of Java virtual machines.

crate::names! {
    /// A garbage collector of HotSpot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Collector, "a collector" {
        /// `-XX:+UseSerialGC`
        Serial = "serial",
        /// `-XX:+UseParallelGC`
        Parallel = "parallel",
        /// `-XX:+UseG1GC`, the default since JDK 9.
        G1 = "g1",
        /// `-XX:+UseZGC`
        Z = "zgc",
        /// `-XX:+UseShenandoahGC`
        Shenandoah = "shenandoah",
    }
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
