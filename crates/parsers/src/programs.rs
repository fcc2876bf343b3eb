//! Programs, what they print, and the files that configure them.

use host::config::Given;
use host::config::given::FileKind;

use crate::{choosing, chosen};

/// A configuration file of any kind with any content: its reader answers, and garbled lines have a place in it.
pub(crate) fn given(bytes: &[u8]) {
    let Some((kind, content)) = chosen(&FileKind::ALL, bytes) else {
        return;
    };
    let mut given = Given::default();
    let _ = given.add("fuzz", content, Some(kind));
    let _ = given.add("fuzz", content, None);
    assert!(given.garbled.iter().all(|why| why.place.starts_with("fuzz:")));
    let _ = doctor::judge(&host::Evidence::of_files(given));
}

pub(crate) fn configurations() -> Vec<Vec<u8>> {
    choosing([
        (0, "vm.nr_hugepages = 16\n# x\nkernel.shmmax=1\n"),
        (
            1,
            "BOOT_IMAGE=/x root=/dev/sda1 hugepagesz=1G hugepages=2 default_hugepagesz=2M transparent_hugepage=never\n",
        ),
        (2, "oracle soft memlock 1024\n@dba hard memlock unlimited\n"),
        (
            3,
            "[Service]\nLimitMEMLOCK=infinity\nUser=a\nExecStart=/bin/java -XX:+UseLargePages\n",
        ),
        (
            4,
            "-Xmx6g -XX:+UseLargePages -XX:LargePageSizeInBytes=2m -XX:+UseTransparentHugePages\n",
        ),
        (
            5,
            "shared_buffers = 8GB\nhuge_pages = try # x\ninclude_if_exists 'a.conf'\n",
        ),
        (
            6,
            "[mysqld]\nlarge-pages\ninnodb_buffer_pool_size=8G\n!includedir /etc/my.cnf.d\n",
        ),
        (
            7,
            "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    resources:\n      limits:\n        hugepages-2Mi: 100Mi\n        memory: 1Gi\n",
        ),
        (
            8,
            "<domain type='kvm'><name>a</name><memory unit='KiB'>1048576</memory><memoryBacking><hugepages><page size='2048' unit='KiB'/></hugepages></memoryBacking></domain>",
        ),
        (
            9,
            "qemu-system-x86_64 -m 4G -mem-path /dev/hugepages -mem-prealloc -object memory-backend-file,id=m,size=4G,mem-path=/x,share=on -numa node,memdev=m\n",
        ),
        (
            10,
            "memSize = \"4096\"\nsched.mem.lpage.enable1GPage = \"TRUE\"\nnumvcpus = \"2\"\n",
        ),
    ])
}

/// The settings of a database server, as it prints them or from its file.
pub(crate) fn server(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = sim::size::postgres::Postgres::parse("fuzz", &text);
    let _ = sim::size::database::Innodb::parse(&text);
    let _ = sim::cpus::parse(bytes, "fuzz");
}

pub(crate) fn servers() -> Vec<Vec<u8>> {
    let postgres = "shared_buffers = 8GB\nmax_connections = 100\nwal_buffers = -1\nhuge_pages = on\n";
    let innodb = "[mysqld]\ninnodb_buffer_pool_size=8G\ninnodb_buffer_pool_instances = 8\n";
    [postgres, innodb].map(|text| text.as_bytes().to_vec()).into()
}

/// What a program prints: a number, or where it was looked for.
pub(crate) fn output(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for pattern in ["rps=([0-9.,]+)", "a=b(.*)c", "x=[0-9]+"] {
        let asked: compare::metric::Asked = pattern.parse().expect("a metric");
        let _ = compare::metric::find(&asked.pattern.expect("a pattern"), &text);
    }
}

pub(crate) fn outputs() -> Vec<Vec<u8>> {
    let texts = ["requests 42\n", "rps: 1,234.5 b1c\n"];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// The file of a program: what loads it, and what it needs.
pub(crate) fn elf(bytes: &[u8]) {
    compare::foreign::elf(bytes);
}

/// The beginning of the smallest header that is one.
pub(crate) fn elves() -> Vec<Vec<u8>> {
    let mut header = vec![0; 176];
    header[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
    // One program header behind the file header: PT_INTERP of 16 bytes.
    header[32] = 64;
    header[54] = 56;
    header[56] = 1;
    header[64] = 3;
    header[72] = 120;
    header[96] = 16;
    header[120..136].copy_from_slice(b"/lib/ld-linux.so");
    vec![header]
}

/// Arms of a user's own.
pub(crate) fn arms(bytes: &[u8]) {
    compare::foreign::arms(&String::from_utf8_lossy(bytes));
}

pub(crate) fn arms_files() -> Vec<Vec<u8>> {
    let text = "[mine]\nlike = \"thp\"\nkind = \"thp\"\ntechnique = \"preload\"\nlayout = \"base,0-512M=hugetlb-2M\"\n\
                command = [\"a\", \"b\"]\nenv = { A = \"b\" }\nunset = [\"C\"]\nbefore = \"true\"\n";
    vec![text.as_bytes().to_vec()]
}

/// The log of a JVM's garbage collector: its sums are finite, and no pause is without its line.
pub(crate) fn gc_log(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let log = host::programs::gc_log::parse(&text);
    let lines = text.lines().count() as u64;
    assert!(log.pauses <= lines && log.collections <= lines && log.warnings.len() <= 5);
    assert!(log.pause_seconds >= 0.0 && log.cpu_seconds.is_none_or(|seconds| seconds >= 0.0));
}

pub(crate) fn gc_logs() -> Vec<Vec<u8>> {
    let logs = [
        "[0.004s][info][gc] Using G1\n[0.9s][info][gc,init] Large Page Support: Disabled\n",
        "[1.1s][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.512ms\n\
         [1.1s][info][gc,cpu      ] GC(0) User=0.01s Sys=0.00s Real=0.00s\n",
        "[0.1s][warning][pagesize] UseLargePages disabled, no large pages configured and available on the system.\n",
    ];
    logs.map(|log| log.as_bytes().to_vec()).to_vec()
}
