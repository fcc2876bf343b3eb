//! Arguments of `size` as typed. Their doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::{Bytes, Collector};

use crate::cli::values::page_size;

/// Calculations.
#[derive(Debug, Subcommand)]
pub enum Size {
    /// Calculate how much memory TLB entries reach, and their share of a working set
    Reach(Reach),
    /// Calculate the pages for a size, rounded up
    Pages(Pages),
    /// Calculate the memlock limit for a size on huge pages
    Memlock(Pages),
    /// Calculate kernel.shmmax and kernel.shmall for a segment
    Shmmax(Shmmax),
    /// Calculate the pages of a HotSpot JVM: heap, code cache, collector
    Jvm(Jvm),
    /// Calculate the pages of PostgreSQL, by asking the server or from its file
    Postgres(Postgres),
    /// Calculate the pages of an Oracle SGA
    Oracle(Oracle),
    /// Calculate the pages of InnoDB's buffer pool
    #[command(visible_alias = "mysql")]
    Innodb(Innodb),
    /// Calculate what copying costs Redis while it saves
    Redis(Redis),
    /// Calculate the pages of virtual machines
    Vm(SizeVm),
    /// Calculate the pages of DPDK
    Dpdk(Dpdk),
    /// Calculate the largest CPU reservation of one VM on ESX
    EsxCpu(EsxCpu),
    /// Calculate the largest memory of one VM on ESX, and the sizes to try
    EsxMemory(EsxMemory),
    /// Calculate how well 1 GB pages back a VM on ESX
    EsxBacking(EsxBacking),
    /// Calculate minFree of an ESX host, and the states below it
    EsxMinfree(Memory),
    /// Calculate the idle memory tax of ESX
    IdleTax(IdleTax),
    /// Calculate the scan rate and profit of same-page merging (KSM)
    Ksm(Ksm),
    /// Calculate by how much new values are better than old ones
    Gain(Gain),
}

/// Arguments of `hugewise size reach`.
#[derive(Args, Debug)]
pub struct Reach {
    /// Calculate for these numbers of TLB entries
    #[arg(long, value_delimiter = ',', value_name = "N,..", default_value = "64,256,2048",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub entries: Vec<u64>,
    /// Calculate for these page sizes
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "4K,2M,1G", value_parser = page_size)]
    pub pages: Vec<Bytes>,
    /// Calculate for these working sets
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "8G,64G")]
    pub working_set: Vec<Bytes>,
}

/// Arguments of `hugewise size pages` and `size memlock`.
#[derive(Args, Debug)]
pub struct Pages {
    /// Calculate for this much memory
    #[arg(value_name = "SIZE")]
    pub bytes: Bytes,
    /// Use this page size
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = page_size)]
    pub pages: Bytes,
}

/// Arguments of `hugewise size shmmax`.
#[derive(Args, Debug)]
pub struct Shmmax {
    /// Calculate for this largest segment
    #[arg(value_name = "SIZE")]
    pub segment: Bytes,
    /// Set the size of the CPU's smallest page
    #[arg(long, value_name = "SIZE", default_value = "4K")]
    pub base: Bytes,
}

/// Arguments of `hugewise size jvm`.
#[derive(Args, Debug)]
pub struct Jvm {
    /// Set the heap, -Xmx; as --heap
    #[arg(value_name = "SIZE", required_unless_present = "heap")]
    pub size: Option<Bytes>,
    /// Set the heap, -Xmx
    #[arg(long, value_name = "SIZE", conflicts_with = "size")]
    pub heap: Option<Bytes>,
    /// Use this page size
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = page_size)]
    pub pages: Bytes,
    /// Set the collector: serial, parallel, g1, zgc or shenandoah
    #[arg(long, default_value = "g1")]
    pub collector: Collector,
    /// Set -XX:ReservedCodeCacheSize
    #[arg(long, value_name = "SIZE", default_value = "240M")]
    pub code_cache: Bytes,
    /// Set -XX:MaxMetaspaceSize, or what is expected
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    pub metaspace: Bytes,
    /// Set the number of threads
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub threads: u64,
    /// Set the major version of the JDK
    #[arg(long, value_name = "N", default_value_t = 21)]
    pub jdk: u32,
}

/// Arguments of `hugewise size postgres`.
#[derive(Args, Debug)]
pub struct Postgres {
    /// Read this postgresql.conf, or that of this data directory, and ask its server if that is installed
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Use this page size, if the file has no huge_page_size
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = page_size)]
    pub pages: Bytes,
    /// Use this instead of the file's shared_buffers
    #[arg(long, value_name = "SIZE")]
    pub shared_buffers: Option<Bytes>,
    /// Never start the server's program to ask it
    #[arg(long)]
    pub estimate: bool,
}

/// Arguments of `hugewise size oracle`.
#[derive(Args, Debug)]
pub struct Oracle {
    /// Set the size of the SGA; as --sga
    #[arg(value_name = "SIZE", required_unless_present = "sga")]
    pub size: Option<Bytes>,
    /// Set the size of the SGA
    #[arg(long, value_name = "SIZE", conflicts_with = "size")]
    pub sga: Option<Bytes>,
    /// Set the number of instances
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub instances: u64,
    /// Use this page size
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = page_size)]
    pub pages: Bytes,
}

/// Arguments of `hugewise size innodb`.
#[derive(Args, Debug)]
pub struct Innodb {
    /// Set innodb_buffer_pool_size; as --buffer-pool
    #[arg(value_name = "SIZE", required_unless_present = "buffer_pool")]
    pub size: Option<Bytes>,
    /// Set innodb_buffer_pool_size
    #[arg(long, value_name = "SIZE", conflicts_with = "size")]
    pub buffer_pool: Option<Bytes>,
    /// Set innodb_buffer_pool_chunk_size
    #[arg(long, value_name = "SIZE", default_value = "128M")]
    pub chunk: Bytes,
    /// Set innodb_buffer_pool_instances [default: 8 from 1G on, else 1]
    #[arg(long, value_name = "N")]
    pub instances: Option<u64>,
    /// Add MariaDB's other buffers: the key buffer, Aria's page cache and two log buffers, of the default sizes
    #[arg(long)]
    pub mariadb: bool,
    /// Use this page size
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = page_size)]
    pub pages: Bytes,
}

/// Arguments of `hugewise size redis`.
#[derive(Args, Debug)]
pub struct Redis {
    /// Set maxmemory; as --maxmemory
    #[arg(value_name = "SIZE", required_unless_present = "maxmemory")]
    pub size: Option<Bytes>,
    /// Set maxmemory
    #[arg(long, value_name = "SIZE", conflicts_with = "size")]
    pub maxmemory: Option<Bytes>,
    /// Set how much is written while a save runs
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub written: Bytes,
    /// Use this size of THP
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = page_size)]
    pub pages: Bytes,
}

/// Arguments of `hugewise size vm`.
#[derive(Args, Debug)]
pub struct SizeVm {
    /// Set the memory of one guest; as --memory
    #[arg(value_name = "SIZE", required_unless_present = "memory")]
    pub size: Option<Bytes>,
    /// Set the memory of one guest
    #[arg(long, value_name = "SIZE", conflicts_with = "size")]
    pub memory: Option<Bytes>,
    /// Set the number of guests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub count: u64,
    /// Spread each guest over this many nodes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub nodes: u64,
    /// Use this page size
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = page_size)]
    pub pages: Bytes,
}

/// A size, or a number of MiB as DPDK takes it.
fn mebibytes(text: &str) -> Result<Bytes, String> {
    match text.parse::<u64>() {
        Ok(number) => number
            .checked_mul(1 << 20)
            .map(Bytes)
            .ok_or_else(|| format!("{text} MiB is too much")),
        Err(_) => text.parse(),
    }
}

/// Arguments of `hugewise size dpdk`.
#[derive(Args, Debug)]
pub struct Dpdk {
    /// Set the memory of each node, as DPDK's --socket-mem: a number is MiB
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", value_parser = mebibytes)]
    pub socket_mem: Vec<Bytes>,
    /// Set the number of packet buffers beside it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub mbufs: u64,
    /// Use this page size
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = page_size)]
    pub pages: Bytes,
}

/// Arguments of `hugewise size esx-cpu`.
#[derive(Args, Debug)]
pub struct EsxCpu {
    /// Set the physical cores of the host
    #[arg(long, value_name = "N", required_unless_present = "vcpus")]
    pub cores: Option<u64>,
    /// Set the base frequency
    #[arg(long, value_name = "GHZ")]
    pub ghz: f64,
    /// Set resvMHz of the host's top group in `sched-stats -t groups`
    #[arg(long, value_name = "MHZ", required_unless_present_any = ["vcpus", "sched_stats"])]
    pub reserved_mhz: Option<f64>,
    /// Read it from what `sched-stats -t groups` printed
    #[arg(long, value_name = "FILE", conflicts_with = "reserved_mhz")]
    pub sched_stats: Option<PathBuf>,
    /// Calculate the least reservation for this many vCPUs at latency sensitivity high instead
    #[arg(long, value_name = "N", conflicts_with_all = ["cores", "reserved_mhz", "sched_stats"])]
    pub vcpus: Option<u64>,
    /// Set the virtual hyper-threads of a core
    #[arg(long, value_name = "N", default_value_t = 1, requires = "vcpus")]
    pub smt: u64,
}

/// Arguments of `hugewise size esx-memory`.
#[derive(Args, Debug)]
pub struct EsxMemory {
    /// Set the memory of the host, in GB
    #[arg(long, value_name = "GB")]
    pub total: u64,
    /// Set the memory that ESX reserves of it, in GB
    #[arg(long, value_name = "GB")]
    pub reserved: u64,
    /// Try this much less each time, in GB
    #[arg(long, value_name = "GB", default_value_t = 10)]
    pub step: u64,
}

/// Arguments of `hugewise size esx-backing`.
#[derive(Args, Debug)]
pub struct EsxBacking {
    /// Set the memory of the VM, in GB
    #[arg(long, value_name = "GB")]
    pub memory: u64,
    /// Set the number of its 1 GB pages
    #[arg(long, value_name = "N", required_unless_present = "vsish")]
    pub pages_1g: Option<u64>,
    /// Read both from what `vsish -e get /memory/lpage/vmLPage/WORLD` printed
    #[arg(long, value_name = "FILE", conflicts_with = "pages_1g")]
    pub vsish: Option<PathBuf>,
    /// Set the number of its 2 MB pages [default: that in the file, else 0]
    #[arg(long, value_name = "N")]
    pub pages_2m: Option<u64>,
}

/// Arguments of `hugewise size esx-minfree`.
#[derive(Args, Debug)]
pub struct Memory {
    /// Calculate for this memory of the host
    #[arg(value_name = "SIZE")]
    pub memory: Bytes,
}

/// Arguments of `hugewise size idle-tax`.
#[derive(Args, Debug)]
pub struct IdleTax {
    /// Set the shares
    #[arg(long)]
    pub shares: f64,
    /// Set the pages
    #[arg(long)]
    pub pages: f64,
    /// Set the part of them in use, from 0 to 1
    #[arg(long)]
    pub active: f64,
    /// Set the tax rate, Mem.IdleTax / 100
    #[arg(long, default_value_t = 0.75)]
    pub tax: f64,
}

/// Arguments of `hugewise size ksm`.
#[derive(Args, Debug)]
pub struct Ksm {
    /// Set pages_to_scan
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub pages_to_scan: u64,
    /// Set sleep_millisecs
    #[arg(long, value_name = "MS", default_value_t = 20.0)]
    pub sleep_ms: f64,
    /// Set pages_sharing
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub pages_sharing: u64,
    /// Set the pages that are watched (rmap items)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rmap_items: u64,
    /// Set the memory that is scanned
    #[arg(long, value_name = "SIZE", default_value = "16G")]
    pub memory: Bytes,
}

/// Arguments of `hugewise size gain`.
#[derive(Args, Debug)]
pub struct Gain {
    /// Set the old values, in the order of their pairs
    #[arg(long, value_delimiter = ',', value_name = "X,..", required = true)]
    pub old: Vec<f64>,
    /// Set the new values
    #[arg(long, value_delimiter = ',', value_name = "X,..", required = true)]
    pub new: Vec<f64>,
}
