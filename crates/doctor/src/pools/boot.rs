//! Boot parameters that have no effect, and page sizes that the CPU lacks.

use host::Evidence;
use host::config::given::FileKind;
use host::config::{Boot, Ignored, IgnoredWhy};
use host::programs::Program;
use model::Bytes;
use model::findings::Severity;

use super::HUGETLBPAGE;
use crate::facts::{boot_fix, each, known, pools, programs};
use crate::rule::{Answer, Case, Checks, Reason, Rule};

pub(super) const A13: Rule = Rule {
    id: "A13",
    name: "cmdline-size-unsupported",
    severity: Severity::Error,
    holds: "every kernel with hugetlb",
    text: "The boot command line names a page size that this kernel and CPU do not have. The kernel ignores it together with \
           the hugepages= that follows, and logs one line (`HugeTLB: unsupported hugepagesz=`). Sizes depend on the CPU and on the base page. On x86-64 they are 2M and 1G. On arm64 they are 64K, 2M, 32M and 1G with base pages of 4K, and 2M, 512M and 16G with 64K.",
    link: HUGETLBPAGE,
    checks: Checks::of_both(unsupported, &[FileKind::Cmdline], super::files::unsupported),
};

pub(super) const A14: Rule = Rule {
    id: "A14",
    name: "cmdline-order",
    severity: Severity::Warning,
    holds: "Linux 5.8 and later, which read the parameters in this way",
    text: "A hugetlb boot parameter has no effect. The kernel reads these parameters from left to right: hugepages= counts \
           pages of the size before it. Without a size before it, it counts the default size, and no later pair can change \
           that. A size given twice and a count that is not a number are ignored; each leaves one line in the kernel log.",
    link: HUGETLBPAGE,
    checks: Checks::of_both(order, &[FileKind::Cmdline], super::files::order),
};

pub(super) const A15: Rule = Rule {
    id: "A15",
    name: "no-1g-cpu",
    severity: Severity::Error,
    holds: "x86-64",
    text: "Pages of 1 GiB are requested on a CPU that does not offer them. Every server CPU of the last ten years does, but in a \
           virtual machine the CPU model often hides the flag pdpe1gb. Then there is no such pool, and programs fall back or \
           fail. Expose the flag: -cpu host or +pdpe1gb in QEMU, <feature policy='require' name='pdpe1gb'/> in libvirt.",
    link: "https://www.qemu.org/docs/master/system/qemu-cpu-models.html",
    checks: Checks::of_machine(no_1g),
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
                "`{}` and the page count after it are ignored: this machine has no pages of that size",
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

/// Is it ignored because of its place in the line? Unknown sizes are reported by A13.
pub(crate) fn is_out_of_order(why: IgnoredWhy) -> bool {
    !matches!(why, IgnoredWhy::UnsupportedSize | IgnoredWhy::FollowsIgnored)
}

/// A parameter that the kernel ignores.
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
        "`{asked}` requests pages of 1 GiB, which this CPU does not offer"
    ))
    .seen(source, "", asked)
    .seen("/proc/cpuinfo", "flags", "no pdpe1gb")
    .fix("in the hypervisor: QEMU -cpu host or -cpu MODEL,+pdpe1gb; libvirt <feature policy='require' name='pdpe1gb'/>")
    .fix("or use pages of 2 MiB: hugepagesz=2M")
}
