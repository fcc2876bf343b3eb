//! What was typed after `size`, word for word; its doc comments are the help texts and the man page.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::Bytes;
use sim::size::jvm::Collector;

/// What to work out.
#[derive(Debug, Subcommand)]
pub enum Size {
    /// How much memory TLB entries reach, and how much of a working set that covers
    Reach(Reach),
    /// Pages for bytes, rounded up
    Pages(Pages),
    /// The memlock limit for bytes in large pages
    Memlock(Pages),
    /// kernel.shmmax and kernel.shmall for a segment
    Shmmax(Shmmax),
    /// Pages for a Java virtual machine: heap, code cache, collector
    Jvm(Jvm),
    /// Pages for PostgreSQL: what the server says, or from its file
    Postgres(Postgres),
    /// Pages for an Oracle SGA
    Oracle(Oracle),
    /// Pages for InnoDB's buffer pool
    Innodb(Innodb),
    /// What copying costs Redis while it saves
    Redis(Redis),
    /// Pages for virtual machines
    Vm(SizeVm),
    /// Pages for DPDK
    Dpdk(Dpdk),
    /// Largest CPU reservation of one virtual machine on ESX
    EsxCpu(EsxCpu),
    /// Largest memory of one virtual machine on ESX, and the sizes to try
    EsxMemory(EsxMemory),
    /// How well 1 GB pages back a virtual machine on ESX
    EsxBacking(EsxBacking),
    /// minFree of an ESX host, and the states below it
    EsxMinfree(Memory),
    /// Idle memory tax of ESX
    IdleTax(IdleTax),
    /// Scan rate and profit of same-page merging
    Ksm(Ksm),
    /// By how much new is better than old
    Gain(Gain),
}

/// `hugewise size reach`
#[derive(Args, Debug)]
pub struct Reach {
    /// Numbers of TLB entries
    #[arg(long, value_delimiter = ',', value_name = "N,..", default_value = "64,256,2048")]
    pub entries: Vec<u64>,
    /// Page sizes
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "4K,2M,1G")]
    pub pages: Vec<Bytes>,
    /// Working sets
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..", default_value = "8G,64G")]
    pub working_set: Vec<Bytes>,
}

/// `hugewise size pages` and `size memlock`
#[derive(Args, Debug)]
pub struct Pages {
    /// How much memory
    #[arg(value_name = "SIZE")]
    pub bytes: Bytes,
    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    pub pages: Bytes,
}

/// `hugewise size shmmax`
#[derive(Args, Debug)]
pub struct Shmmax {
    /// The largest segment
    #[arg(value_name = "SIZE")]
    pub segment: Bytes,
    /// The CPU's smallest page
    #[arg(long, value_name = "SIZE", default_value = "4K")]
    pub base: Bytes,
}

/// `hugewise size jvm`
#[derive(Args, Debug)]
pub struct Jvm {
    /// -Xmx
    #[arg(long, value_name = "SIZE")]
    pub heap: Bytes,
    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    pub pages: Bytes,
    /// serial, parallel, g1, zgc or shenandoah
    #[arg(long, default_value = "g1")]
    pub collector: Collector,
    /// -XX:ReservedCodeCacheSize
    #[arg(long, value_name = "SIZE", default_value = "240M")]
    pub code_cache: Bytes,
    /// -XX:MaxMetaspaceSize, or what is expected
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    pub metaspace: Bytes,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub threads: u64,
    /// Major version of the JDK
    #[arg(long, value_name = "N", default_value_t = 21)]
    pub jdk: u32,
}

/// `hugewise size postgres`
#[derive(Args, Debug)]
pub struct Postgres {
    /// postgresql.conf; the server of its directory is asked where it is installed
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Page size, where the file has no huge_page_size
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    pub pages: Bytes,
    /// shared_buffers, in place of the file's
    #[arg(long, value_name = "SIZE")]
    pub shared_buffers: Option<Bytes>,
    /// Never start the server's program to ask it
    #[arg(long)]
    pub estimate: bool,
}

/// `hugewise size oracle`
#[derive(Args, Debug)]
pub struct Oracle {
    /// Size of the SGA
    #[arg(long, value_name = "SIZE")]
    pub sga: Bytes,
    /// Instances
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub instances: u64,
    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    pub pages: Bytes,
}

/// `hugewise size innodb`
#[derive(Args, Debug)]
pub struct Innodb {
    /// innodb_buffer_pool_size
    #[arg(long, value_name = "SIZE")]
    pub buffer_pool: Bytes,
    /// innodb_buffer_pool_chunk_size
    #[arg(long, value_name = "SIZE", default_value = "128M")]
    pub chunk: Bytes,
    /// innodb_buffer_pool_instances [default: 8 from 1G on, else 1]
    #[arg(long, value_name = "N")]
    pub instances: Option<u64>,
    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    pub pages: Bytes,
}

/// `hugewise size redis`
#[derive(Args, Debug)]
pub struct Redis {
    /// maxmemory
    #[arg(long, value_name = "SIZE")]
    pub maxmemory: Bytes,
    /// Bytes written while a save runs
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub written: Bytes,
    /// Page size of transparent pages
    #[arg(long, value_name = "SIZE", default_value = "2M")]
    pub pages: Bytes,
}

/// `hugewise size vm`
#[derive(Args, Debug)]
pub struct SizeVm {
    /// Memory of one guest
    #[arg(long, value_name = "SIZE")]
    pub memory: Bytes,
    /// Guests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub count: u64,
    /// Nodes that each guest is spread over
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub nodes: u64,
    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub pages: Bytes,
}

/// `hugewise size dpdk`
#[derive(Args, Debug)]
pub struct Dpdk {
    /// Memory of each node (--socket-mem)
    #[arg(long, value_delimiter = ',', value_name = "SIZE,..")]
    pub socket_mem: Vec<Bytes>,
    /// Packet buffers beside it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub mbufs: u64,
    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub pages: Bytes,
}

/// `hugewise size esx-cpu`
#[derive(Args, Debug)]
pub struct EsxCpu {
    /// Physical cores of the host
    #[arg(long, value_name = "N")]
    pub cores: u64,
    /// Base frequency
    #[arg(long, value_name = "GHZ")]
    pub ghz: f64,
    /// resvMHz of the host's top group in `sched-stats -t groups`
    #[arg(long, value_name = "MHZ")]
    pub reserved_mhz: f64,
    /// Instead: the least reservation for so many vCPUs with latency sensitivity high
    #[arg(long, value_name = "N")]
    pub vcpus: Option<u64>,
    /// Virtual hyper-threads of a core
    #[arg(long, value_name = "N", default_value_t = 1, requires = "vcpus")]
    pub smt: u64,
}

/// `hugewise size esx-memory`
#[derive(Args, Debug)]
pub struct EsxMemory {
    /// Memory of the host, in GB
    #[arg(long, value_name = "GB")]
    pub total: u64,
    /// What ESX keeps of it, in GB
    #[arg(long, value_name = "GB")]
    pub reserved: u64,
    /// How much less to try each time, in GB
    #[arg(long, value_name = "GB", default_value_t = 10)]
    pub step: u64,
}

/// `hugewise size esx-backing`
#[derive(Args, Debug)]
pub struct EsxBacking {
    /// Memory of the virtual machine, in GB
    #[arg(long, value_name = "GB")]
    pub memory: u64,
    /// Its 1 GB pages
    #[arg(long, value_name = "N")]
    pub pages_1g: u64,
    /// Its 2 MB pages
    #[arg(long, value_name = "N")]
    pub pages_2m: u64,
}

/// `hugewise size esx-minfree`
#[derive(Args, Debug)]
pub struct Memory {
    /// Memory of the host
    #[arg(value_name = "SIZE")]
    pub memory: Bytes,
}

/// `hugewise size idle-tax`
#[derive(Args, Debug)]
pub struct IdleTax {
    /// Shares
    #[arg(long)]
    pub shares: f64,
    /// Pages
    #[arg(long)]
    pub pages: f64,
    /// Part of them in use, from 0 to 1
    #[arg(long)]
    pub active: f64,
    /// Tax rate (Mem.IdleTax / 100)
    #[arg(long, default_value_t = 0.75)]
    pub tax: f64,
}

/// `hugewise size ksm`
#[derive(Args, Debug)]
pub struct Ksm {
    /// pages_to_scan
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub pages_to_scan: u64,
    /// sleep_millisecs
    #[arg(long, value_name = "MS", default_value_t = 20.0)]
    pub sleep_ms: f64,
    /// pages_sharing
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub pages_sharing: u64,
    /// Pages that are watched (rmap items)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rmap_items: u64,
    /// Memory that is scanned
    #[arg(long, value_name = "SIZE", default_value = "16G")]
    pub memory: Bytes,
}

/// `hugewise size gain`
#[derive(Args, Debug)]
pub struct Gain {
    /// Old values, in the order of their pairs
    #[arg(long, value_delimiter = ',', value_name = "X,..", required = true)]
    pub old: Vec<f64>,
    /// New values
    #[arg(long, value_delimiter = ',', value_name = "X,..", required = true)]
    pub new: Vec<f64>,
}
