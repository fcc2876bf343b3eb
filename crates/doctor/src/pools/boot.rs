//! Boot parameters that have no effect, and page sizes that the CPU lacks.

use model::Bytes;
use model::findings::Severity;
use programs::config::given::FileKind;
use programs::config::{Boot, DigitsTaken, Ignored, IgnoredWhy, PoolWrite, Setting, Settings};
use programs::{Evidence, Jvm, Program, RANDOMX_1G};

use super::missing::{at_run_time, lines};
use super::used::ASK;
use crate::demand::{Demand, Room, demands, guests};
use crate::facts::{count, is_arm, known, lacks_hugetlb, pages_for, pools, programs};
use crate::kept::pool_path;
use crate::remedy::{Need, Remedy};
use crate::rule::answers::{each, parts};
use crate::rule::{Answer, Case, Reason};

pub(super) fn unsupported(evidence: &Evidence) -> Answer {
    if lacks_hugetlb(evidence) {
        return without_hugetlb(evidence);
    }
    let sizes: Vec<Bytes> = pools(evidence)?.iter().map(|pool| pool.size).collect();
    let boot = known(&evidence.config.boot)?;
    Ok(of_no_size("/proc/cmdline", boot, &sizes))
}

/// Page sizes of a boot line that this machine does not have.
pub(super) fn of_no_size(place: &str, boot: &Boot, sizes: &[Bytes]) -> Vec<Case> {
    let list: Vec<String> = sizes.iter().map(|size| size.exact()).collect();
    let ignored = boot.ignored.iter().enumerate();
    let unsupported = ignored.filter(|(_, ignored)| ignored.why == IgnoredWhy::UnsupportedSize);
    let case = |(at, ignored): (usize, &Ignored)| {
        let count = boot.ignored.get(at + 1);
        let count = count.filter(|next| next.why == IgnoredWhy::FollowsIgnored);
        let case = Case::sure(format!(
            "`{}` and the page count after it are ignored: this machine has no pages of that size",
            ignored.parameter
        ))
        .seen(place, "", &ignored.parameter)
        .seen("/sys/kernel/mm/hugepages", "sizes", list.join(" "));
        let instead = in_its_place(&ignored.parameter, count.map(|count| count.parameter.as_str()), sizes);
        case.with(instead, Case::remedy).otherwise(format!(
            "take `{}` and its count off the boot command line, and reboot",
            ignored.parameter
        ))
    };
    unsupported.map(case).collect()
}

/// A kernel without hugetlb pages, as in a paravirtualized guest of Xen or in Android: whatever asks for them gets none.
fn without_hugetlb(evidence: &Evidence) -> Answer {
    let line = known(&evidence.snapshot.kernel.command_line).map_or("", String::as_str);
    let ours = |word: &&str| word.trim_start_matches("default_").starts_with("hugepages");
    let words: Vec<&str> = line.split_whitespace().filter(ours).collect();
    let of_boot = (!words.is_empty()).then(|| Setting::new("/proc/cmdline", "", words.join(" ")));
    let given = evidence.files.sysctl.iter();
    let sysctl = evidence.config.sysctl.known().into_iter().flat_map(Settings::iter);
    let sysctl = sysctl
        .chain(given)
        .filter(|line| COUNTS.contains(&&*line.name) && line.value != "0");
    let mut written = PoolWrite::left(&evidence.files.pool_writes, Bytes::mib(2));
    written.extend(at_run_time(evidence).cloned());
    let written = written.into_iter().filter(|line| line.pages > 0);
    let written = written.map(|line| Setting::new(line.place, "pages of a pool", line.pages.to_string()));
    let asked = of_boot.into_iter().chain(sysctl.cloned()).chain(written);
    let lines = asked.map(|line| (format!("`{}` has no effect", in_words(&line)), line));
    let demands = demands(evidence, &Room::none()).into_iter();
    let programs = demands.filter_map(|own| Some((without_pages(&own)?, own.seen, own.strict)));
    let lines = lines.map(|(text, line)| (text, line, true));
    let cases: Vec<Case> = lines
        .chain(programs)
        .map(|(text, line, fails)| in_vain(&text, &line).when(!fails, |case| case.severity(Severity::Warning)))
        .collect();
    if cases.is_empty() {
        known(&evidence.snapshot.kernel.command_line)?;
    }
    Ok(cases)
}

/// What becomes of a program that is to have pages; `None` of one that is only to try, as it is by default.
fn without_pages(demand: &Demand) -> Option<String> {
    let who = &demand.who;
    match demand.asker {
        _ if demand.strict => Some(format!("{who} does not start without hugetlb pages")),
        FileKind::Mysql => Some(format!("{who} asks for huge pages (large_pages) and gets base pages")),
        FileKind::Java => Some(format!("{who} asks for huge pages and gets base pages")),
        _ => None,
    }
}

/// Settings of which each counts pages of the default size.
const COUNTS: [&str; 2] = ["vm.nr_hugepages", "vm.nr_overcommit_hugepages"];

fn in_words(line: &Setting) -> String {
    format!("{} = {}", line.name, line.value)
        .trim_start_matches(" = ")
        .to_owned()
}

fn in_vain(text: &str, line: &Setting) -> Case {
    Case::sure(format!("{text}: this kernel has no hugetlb pages"))
        .seen_line(line)
        .seen("/proc/meminfo", "Hugepagesize", "no such line")
        .fix("a kernel with CONFIG_HUGETLBFS; in a guest of Xen: HVM or PVH in place of PV, which has base pages only; for a container under gVisor: another run-time")
        .fix("or take the request out; a program that advises its memory (MADV_HUGEPAGE) gets THP without a pool, where the kernel has THP")
}

/// The same memory in pages of the next smaller size that there is.
fn in_its_place(size: &str, count: Option<&str>, sizes: &[Bytes]) -> Option<Remedy> {
    let value = |parameter: &str| parameter.split_once('=').map(|(_, value)| value.to_owned());
    let asked: Bytes = value(size)?.parse().ok()?;
    let pages: u64 = count.and_then(value)?.parse().ok()?;
    let page = sizes.iter().copied().filter(|size| *size < asked).max()?;
    let instead = pages_for(Bytes(asked.0.saturating_mul(pages)), page);
    let text = format!(
        "write `hugepagesz={} hugepages={instead}` in place of `{size} {}` on the boot command line, and reboot",
        page.exact(),
        count.unwrap_or_default()
    );
    Some(Remedy::new(text).need(Need::Pool(page, instead)))
}

/// Is it ignored because of its place in the line? Unknown sizes are reported by A13.
fn is_out_of_order(why: IgnoredWhy) -> bool {
    !matches!(why, IgnoredWhy::UnsupportedSize | IgnoredWhy::FollowsIgnored)
}

/// A parameter that the kernel ignores, of that line.
fn no_effect(evidence: &Evidence, place: &str, line: &str, ignored: &Ignored) -> Case {
    let case = Case::sure(format!("`{}` has no effect: {}", ignored.parameter, ignored.why.text())).seen(
        place,
        "",
        &ignored.parameter,
    );
    match ignored.why {
        IgnoredWhy::Misspelt(meant) => case.fix(format!("spell its name {meant}, and reboot")),
        IgnoredWhy::NotAPolicy(_) => case.fix("give it one of these values, and reboot"),
        IgnoredWhy::NotThpSizes(_) => {
            case.fix("write each part as SIZES:POLICY, in a parameter of its own, as GRUB ends the line at a `;`: thp_anon=16K,32K:always thp_anon=64K-512K:madvise, and reboot")
        }
        IgnoredWhy::NodesTooOld => case
            .fix("write the number of pages on all nodes together, which such a kernel spreads over the nodes alike")
            .fix("for other shares: a unit that writes each node's nr_hugepages before any service starts"),
        IgnoredWhy::NoSuchNode(_) => case.fix("leave it out, or ask for these pages on a node that the machine has, and reboot"),
        IgnoredWhy::SysctlTooOld => case.fix("ask for them with hugepages=, or by vm.nr_hugepages in /etc/sysctl.d"),
        IgnoredWhy::BesideCma => case
            .fix("take hugetlb_cma= out, or add hugetlb_cma_only=1 (Linux 6.15 and later), and reboot")
            .fix("or have a unit fill the pool from that memory at each boot: echo PAGES > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"),
        IgnoredWhy::CountInFront => sized(case, evidence, line, &ignored.parameter),
        _ => case
            .fix("write each pool once as a pair, the size first: hugepagesz=SIZE hugepages=PAGES")
            .with(pairs(line), |case, pairs| {
                let text = format!("if the counts stand in the order of the sizes: {pairs}");
                case.remedy(Remedy::new(text).with_line(evidence, &pairs))
            }),
    }
}

/// With the count that stands in front of a size behind it.
fn sized(case: Case, evidence: &Evidence, line: &str, size: &str) -> Case {
    let words: Vec<&str> = line.split_whitespace().collect();
    let before = words.iter().take_while(|word| **word != size);
    let count = before.filter(|word| word.starts_with("hugepages=")).last();
    case.with(count, |case, count| {
        let pair = format!("{size} {count}");
        let text = format!("if the pages of {count} are to be of that size, write the size first: {pair}, and reboot");
        case.remedy(Remedy::new(text).with_line(evidence, &pair))
    })
    .otherwise(format!(
        "leave {size} out: the machine has no room for so many of its pages"
    ))
}

/// Several sizes, and then as many counts: each size with its own count. Of another order nothing is known.
fn pairs(line: &str) -> Option<String> {
    let words: Vec<&str> = line
        .split_whitespace()
        .filter(|word| word.starts_with("hugepages"))
        .collect();
    let (sizes, counts) = words.split_at(words.len() / 2);
    let are = |words: &[&str], name: &str| words.iter().all(|word| word.starts_with(name));
    let repeats = (1..sizes.len()).any(|at| sizes[..at].contains(&sizes[at]));
    let is_so = sizes.len() > 1 && sizes.len() == counts.len() && !repeats;
    if !is_so || !are(sizes, "hugepagesz=") || !are(counts, "hugepages=") {
        return None;
    }
    let pairs: Vec<String> = sizes
        .iter()
        .zip(counts)
        .map(|(size, count)| format!("{size} {count}"))
        .collect();
    Some(pairs.join(" "))
}

/// A count of which the kernel takes the digits alone.
fn digits_taken(place: &str, taken: &DigitsTaken) -> Case {
    Case::sure(format!(
        "`{}` asks for {}: the kernel takes the digits, and counts pages",
        taken.parameter,
        count(taken.pages, "page", "pages")
    ))
    .severity(Severity::Warning)
    .seen(place, "", &taken.parameter)
    .fix(format!(
        "write the digits alone ({}), or the number of pages that was meant",
        taken.pages
    ))
}

/// Which sizes there are does not matter here, so that the pools need not be known; what stands in a file is judged without the running line.
pub(super) fn order(evidence: &Evidence) -> Answer {
    let running = evidence.config.boot.known();
    let next = evidence.config.next_boot.iter();
    let next = next.flat_map(|next| of_line(evidence, (&next.place, &next.words), &next.boot, running));
    parts([order_now(evidence), Ok(next.collect())])
}

fn order_now(evidence: &Evidence) -> Answer {
    let boot = known(&evidence.config.boot)?;
    if boot.is_by_node() {
        // Which kernels take that is known by their release.
        known(&evidence.snapshot.kernel.release)?;
    }
    let line = known(&evidence.snapshot.kernel.command_line)?;
    Ok(of_line(evidence, ("/proc/cmdline", line), boot, None))
}

/// Parameters of a line that the kernel ignores or takes otherwise than they are written, without those of a line before.
pub(super) fn of_line(
    evidence: &Evidence,
    (place, words): (&str, &str),
    boot: &Boot,
    before: Option<&Boot>,
) -> Vec<Case> {
    let is_new = |own: &&Ignored| before.map_or(is_out_of_order(own.why), |before| !before.ignored.contains(own));
    let ignored = boot.ignored.iter().filter(is_new);
    let ignored = ignored.map(|own| no_effect(evidence, place, words, own));
    let digits = boot.digits.iter();
    let digits = digits.filter(|own| before.is_none_or(|before| !before.digits.contains(own)));
    let digits = digits.map(|taken| digits_taken(place, taken));
    ignored.chain(digits).collect()
}

pub(super) fn no_1g(evidence: &Evidence) -> Answer {
    let offered = pools(evidence)?.iter().find(|pool| pool.size == Bytes::gib(1));
    let offered = offered.map(|pool| known(&pool.nr)).transpose()?;
    if offered.is_some() || *known(&evidence.snapshot.cpu.has("pdpe1gb"))? {
        return Ok(Vec::new());
    }
    let line = known(&evidence.snapshot.kernel.command_line)?;
    let asks = |word: &&str| matches!(*word, "hugepagesz=1G" | "default_hugepagesz=1G" | "hugepagesz=1024M");
    let of_boot = line.split_whitespace().find(asks);
    let of_boot = of_boot.map(|word| case(evidence, "/proc/cmdline", word, BOOT_2M));
    let written = of_boot.into_iter().chain(in_files(evidence)).chain(by_lines(evidence)?);
    let written = written.collect();
    let running = programs(evidence).and_then(|all| each(all, |program| running_1g(evidence, program)));
    parts([Ok(written), running])
}

/// Files that fill the pool. Of arm64, which has that size with some base pages, A01 says it.
fn by_lines(evidence: &Evidence) -> Result<Vec<Case>, Reason> {
    let is_arm = is_arm(evidence) == Ok(true);
    let lines = lines(evidence, pools(evidence)?).into_iter();
    let lines = lines.filter(|line| !is_arm && line.size == Some(Bytes::gib(1)));
    let cases = lines.map(|line| {
        let asked = format!("{} pages of 1G", line.pages);
        let smaller = format!("or fill the pool of 2M in its place: {}", pool_path(Bytes::mib(2)));
        case(evidence, &line.place, &asked, &smaller)
    });
    Ok(cases.collect())
}

fn running_1g(evidence: &Evidence, program: &Program) -> Result<Option<Case>, Reason> {
    let place = program.file("cmdline");
    if program.jvm()?.is_some_and(is_on_1g) {
        return Ok(Some(case(evidence, &place, JVM_1G, JVM_2M)));
    }
    let is_miner = ASK.contains(&program.pages.name.as_str());
    if !is_miner || known(&program.arguments)?.iter().all(|word| word != RANDOMX_1G) {
        return Ok(None);
    }
    let has_pages = program.hugetlb().is_ok_and(|bytes| bytes.0 > 0);
    Ok(Some(case(evidence, &place, RANDOMX_1G, RANDOMX_2M).info_if(has_pages)))
}

/// The size alone asks for no page of a pool.
fn is_on_1g(jvm: &Jvm) -> bool {
    jvm.wants_hugetlb() && jvm.page_size == Some(Bytes::gib(1))
}

const BOOT_2M: &str = "or use pages of 2 MiB: hugepagesz=2M";
const JVM_1G: &str = "-XX:LargePageSizeInBytes=1G";
const JVM_2M: &str =
    "or use pages of 2 MiB: -XX:LargePageSizeInBytes=2M (HotSpot), -Xlp:objectheap:pagesize=2M (OpenJ9)";
const RANDOMX_2M: &str = "or leave --randomx-1gb-pages out: RandomX uses pages of 2M where there are none of 1G";
const GUEST_2M: &str = "or give it pages of 2 MiB (libvirt: <page size='2' unit='MiB'/>)";

/// What of each kind of file asks for pages of 1 GiB, the first.
fn in_files(evidence: &Evidence) -> Vec<Case> {
    let (files, page) = (&evidence.files, Bytes::gib(1));
    let java = files.java().into_iter().find(|java| is_on_1g(&java.jvm));
    let java = java.map(|java| case(evidence, &java.path, JVM_1G, JVM_2M));
    let miner = files.starts_with_option(RANDOMX_1G);
    let miner = miner.map(|place| case(evidence, &place, RANDOMX_1G, RANDOMX_2M));
    let mut guests = guests(evidence).into_iter();
    let guest = guests.find(|guest| guest.hugetlb().any(|(_, asked)| asked == Some(page)));
    let guest = guest.map(|guest| {
        let asked = format!("{}: memory on pages of 1G", guest.name);
        case(evidence, &guest.place, &asked, GUEST_2M)
    });
    let mut vpp = files.vpp.iter().filter(|set| set.name.ends_with("page-size"));
    let vpp = vpp.find(|set| set.value.parse::<Bytes>() == Ok(page));
    let vpp = vpp.map(|set| {
        let asked = format!("{} {}", set.name, set.value);
        case(evidence, &set.place, &asked, &format!("or: {} 2M", set.name))
    });
    [java, miner, guest, vpp].into_iter().flatten().collect()
}

fn case(evidence: &Evidence, source: &str, asked: &str, smaller: &str) -> Case {
    let hypervisor = evidence.snapshot.cpu.hypervisor.known().map_or("", String::as_str);
    let own = match hypervisor.to_ascii_lowercase() {
        name if name.contains("vmware") => {
            "on ESXi: a virtual hardware version that shows PDPE1GB to the guest, and no EVC mode or CPUID mask that hides it"
        }
        name if name.contains("kvm") || name.contains("tcg") || name.contains("qemu") => {
            "in the hypervisor: QEMU -cpu host or -cpu MODEL,+pdpe1gb; libvirt <feature policy='require' name='pdpe1gb'/>"
        }
        _ => "in a virtual machine: let its hypervisor show the CPU's flag pdpe1gb to the guest",
    };
    Case::sure(format!(
        "`{asked}` requests pages of 1 GiB, which this CPU does not offer"
    ))
    .seen(source, "", asked)
    .seen("/proc/cpuinfo", "flags", "no pdpe1gb")
    .fix_if(hypervisor != "none", own)
    .fix(smaller)
}
