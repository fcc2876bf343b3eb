//! Arguments of `simulate host` as typed. Their doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::Args;
use studies::host_memory::Policy;
use studies::host_memory::preset::Preset;

/// Arguments of `hugewise simulate host`.
#[derive(Args, Debug)]
pub struct HostMemory {
    // clap drops `requires = "capture"` where something is there that conflicts with it: what is about a capture names those conflicts itself.
    /// Simulate the host and the virtual machines of this TOML file
    #[arg(value_name = "FILE.toml", required_unless_present_any = ["preset", "capture"])]
    pub file: Option<PathBuf>,
    /// Simulate a publication: minfree, ksm-thp or esx35-large-pages
    ///
    /// Prints each published value beside the simulated one, and whether that was fitted or predicted. minfree: what ESX keeps free, its
    /// states, and the idle memory tax. ksm-thp: same-page merging over huge pages on Linux 6.18. esx35-large-pages: VMware's study of 2008.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "policy", "capture"])]
    pub preset: Option<Preset>,
    /// Simulate these policies: never-break, break-all, shareability, linux or ksm [default: those of the file, or else all but linux]
    ///
    /// never-break: huge pages are broken only to swap. break-all: each one with a page to share, depending on the
    /// state of free memory. shareability: cold ones with much to share, early. linux: no merging, khugepaged
    /// collapses. ksm: the same with same-page merging.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub policy: Vec<Policy>,
    /// Answer "what if" for the virtual machines of a captured host (`hugewise snapshot`)
    ///
    /// Simulates huge pages off, KSM on, more machines, and 1 GiB pages for one machine. A capture shows neither the
    /// content of pages nor which are in use. Both are drawn many times from stated ranges. Each answer is the median
    /// with the minimum and maximum of all draws.
    #[arg(long, value_name = "FILE.tree", conflicts_with_all = ["file", "policy"])]
    pub capture: Option<PathBuf>,
    /// Turn huge pages off for these machines [default: all]
    #[arg(long, value_name = "VM,..", value_delimiter = ',', conflicts_with_all = ["file", "preset"])]
    pub small_pages: Vec<String>,
    /// Put this machine on 1 GiB pages [default: the one with most memory]
    #[arg(long, value_name = "VM", conflicts_with_all = ["file", "preset"])]
    pub giant_pages: Option<String>,
    /// Add this percentage of machines
    #[arg(long, value_name = "PERCENT", default_value_t = 20, conflicts_with_all = ["file", "preset"], value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub more: u32,
    /// Add machines until their memory exceeds the host's by this percentage: 20%
    ///
    /// A percentage of memory, where --more is one of the number of machines.
    #[arg(long, value_name = "PERCENT%", conflicts_with_all = ["file", "preset", "more"], value_parser = percent)]
    pub overcommit: Option<u32>,
    /// Draw the unknown values of a capture this many times
    #[arg(long, value_name = "N", default_value_t = 24, conflicts_with_all = ["file", "preset"], hide_short_help = true, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub draws: u32,
}

/// `20%`, or `20`.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse();
    let known = number.ok().filter(|percent| (0..=1000).contains(percent));
    known.ok_or_else(|| format!("expected a percentage from 0% to 1000%, got `{text}`"))
}
