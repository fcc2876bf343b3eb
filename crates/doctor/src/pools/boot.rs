//! Boot parameters that have no effect, and page sizes that the CPU lacks.

use host::Evidence;
use host::config::{Boot, Ignored, IgnoredWhy};
use host::programs::Program;
use model::Bytes;
use model::findings::Severity;

use super::HUGETLBPAGE;
use crate::facts::{boot_fix, each, known, pools, programs};
use crate::rule::{Answer, Case, Reason, Rule};

pub(super) const A13: Rule = Rule {
    id: "A13",
    name: "cmdline-size-unsupported",
    severity: Severity::Error,
    holds: "every kernel with hugetlb",
    text: "The boot command line names a page size that this kernel and CPU do not have. The kernel drops it together with the \
           hugepages= that follows, with one line in its log (`HugeTLB: unsupported hugepagesz=`). Sizes depend on the CPU and on \
           the base page: 2M and 1G on x86-64; 64K, 2M, 32M and 1G on arm64 with 4K pages; 2M, 512M and 16G with 64K pages.",
    link: HUGETLBPAGE,
    look: unsupported,
};

pub(super) const A14: Rule = Rule {
    id: "A14",
    name: "cmdline-order",
    severity: Severity::Warning,
    holds: "Linux 5.8 and later, which read the parameters in this way",
    text: "A hugetlb parameter at boot has no effect. They are read from left to right: hugepages= counts pages of the size \
           before it; without one it counts the default size and no later pair can change that; a size given twice and a count \
           that is no number are dropped, each with one line in the log.",
    link: HUGETLBPAGE,
    look: order,
};

pub(super) const A15: Rule = Rule {
    id: "A15",
    name: "no-1g-cpu",
    severity: Severity::Error,
    holds: "x86-64",
    text: "Somebody asks for pages of 1 GiB on a CPU that does not offer them. Every server CPU of the last ten years can; in a \
           virtual machine the flag pdpe1gb is often hidden by the CPU model. Then there is no such pool, and programs fall back \
           or fail. Expose the flag: -cpu host or +pdpe1gb in QEMU, <feature policy='require' name='pdpe1gb'/> in libvirt.",
    link: "https://www.qemu.org/docs/master/system/qemu-cpu-models.html",
    look: no_1g,
};

fn boot(evidence: &Evidence) -> Result<&Boot, Reason> {
    pools(evidence)?;
    known(&evidence.config.boot)
}

fn unsupported(evidence: &Evidence) -> Answer {
    let sizes: Vec<String> = pools(evidence)?.iter().map(|pool| pool.size.exact()).collect();
    let boot = boot(evidence)?;
    let ignored = boot
        .ignored
        .iter()
        .filter(|ignored| ignored.why == IgnoredWhy::UnsupportedSize);
    Ok(ignored
        .map(|ignored| {
            Case::sure(format!(
                "`{}` and the page count after it are ignored: those pages do not exist",
                ignored.parameter
            ))
            .seen("/proc/cmdline", "", &ignored.parameter)
            .seen("/sys/kernel/mm/hugepages", "sizes", sizes.join(" "))
            .fix(boot_fix(
                evidence,
                &format!("hugepagesz={}", sizes.first().map_or("2M", String::as_str)),
            ))
        })
        .collect())
}

/// Is it passed over for its place in the line? Unknown sizes are A13's.
pub(crate) fn is_out_of_order(why: IgnoredWhy) -> bool {
    !matches!(why, IgnoredWhy::UnsupportedSize | IgnoredWhy::FollowsIgnored)
}

/// A parameter that the kernel passes over.
pub(crate) fn no_effect(place: &str, ignored: &Ignored) -> Case {
    Case::sure(format!("`{}` has no effect: {}", ignored.parameter, ignored.why.text()))
        .seen(place, "", &ignored.parameter)
        .fix("write each pool once as a pair, the size first: hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=4")
}

fn order(evidence: &Evidence) -> Answer {
    let boot = boot(evidence)?;
    Ok(boot
        .ignored
        .iter()
        .filter(|ignored| is_out_of_order(ignored.why))
        .map(|ignored| no_effect("/proc/cmdline", ignored))
        .collect())
}

fn no_1g(evidence: &Evidence) -> Answer {
    let offered = pools(evidence)?.iter().find(|pool| pool.size == Bytes::gib(1));
    let offered = offered.map(|pool| known(&pool.nr)).transpose()?;
    if offered.is_some() || *known(&evidence.snapshot.cpu.has("pdpe1gb"))? {
        return Ok(Vec::new());
    }
    let line = known(&evidence.snapshot.kernel.command_line)?;
    let asks = |word: &str| matches!(word, "hugepagesz=1G" | "default_hugepagesz=1G" | "hugepagesz=1024M");
    if let Some(word) = line.split_whitespace().find(|word| asks(word)) {
        return Ok(vec![case("/proc/cmdline", word)]);
    }
    each(programs(evidence)?, |program: &Program| {
        let asked = program.jvm()?.and_then(|jvm| jvm.page_size) == Some(Bytes::gib(1));
        Ok(asked.then(|| case(&program.file("cmdline"), "-XX:LargePageSizeInBytes=1G")))
    })
}

fn case(source: &str, asked: &str) -> Case {
    Case::sure(format!(
        "`{asked}` asks for pages of 1 GiB, which this CPU does not offer: they cannot be had"
    ))
    .seen(source, "", asked)
    .seen("/proc/cpuinfo", "flags", "no pdpe1gb")
    .fix("in the hypervisor: QEMU -cpu host or -cpu MODEL,+pdpe1gb; libvirt <feature policy='require' name='pdpe1gb'/>")
    .fix("or use pages of 2 MiB: hugepagesz=2M")
}
