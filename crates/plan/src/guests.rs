//! Virtual machines: the pages that back their memory, in the options of each hypervisor.

use model::plan::Layer;

use super::draft::{Draft, Drafts};
use super::goal::{Goal, Hypervisor, VmGoal};

const PREALLOC: &str = "prealloc=on takes all pages at the start";

/// Drafts everything but the pool.
pub(super) fn draft(drafts: &mut Drafts<'_>, goal: &Goal, vm: &VmGoal) {
    if !vm.memory.0.is_multiple_of(vm.page.0) {
        let page = vm.page.exact();
        drafts.note(format!(
            "{}: {} is not a multiple of {page}: the last page is partly empty, or the hypervisor \
             refuses it",
            goal.text, vm.memory
        ));
    }
    match vm.hypervisor {
        Hypervisor::Libvirt => libvirt(drafts, vm),
        Hypervisor::Qemu => qemu(drafts, vm),
        Hypervisor::CloudHypervisor => cloud_hypervisor(drafts, vm),
        Hypervisor::Esx => esx(drafts, vm),
    }
    drafts.note(
        "huge pages are needed twice: here to back the guest's memory, and in the guest for its \
         own programs",
    );
}

fn libvirt(drafts: &mut Drafts<'_>, vm: &VmGoal) {
    let kib = vm.page.0 >> 10;
    let node = vm
        .node
        .map(|node| format!("\n<numatune>\n  <memory mode='strict' nodeset='{node}'/>\n</numatune>"));
    let text = format!(
        "<memory unit='KiB'>{}</memory>\n<memoryBacking>\n  <hugepages>\n    <page size='{kib}' unit='KiB'/>\n  </hugepages>\n  \
         <allocation mode='immediate'/>\n</memoryBacking>{}",
        vm.memory.0 >> 10,
        node.unwrap_or_default()
    );
    let on = format!("libvirt: virsh edit {}", vm.name);
    let why = "immediate allocation: a pool that is too small is reported at the start, not by SIGBUS";
    let source = "libvirt, Domain XML format, Memory Backing";
    hypervisor(drafts, "libvirt-xml", &on, text, why, source);
}

fn qemu(drafts: &mut Drafts<'_>, vm: &VmGoal) {
    let node = vm.node.map(|node| format!(",host-nodes={node},policy=bind"));
    let (memory, page) = (vm.memory.exact(), vm.page.exact());
    let text = format!(
        "-m {memory} -object \
         memory-backend-memfd,id=mem0,size={memory},hugetlb=on,hugetlbsize={page},prealloc=on{} \
         -machine memory-backend=mem0",
        node.unwrap_or_default()
    );
    let source = "QEMU documentation, memory-backend-memfd";
    hypervisor(drafts, "qemu-arguments", "QEMU's arguments", text, PREALLOC, source);
}

fn cloud_hypervisor(drafts: &mut Drafts<'_>, vm: &VmGoal) {
    let (memory, page) = (vm.memory.exact(), vm.page.exact());
    let pages = format!("size={memory},hugepages=on,hugepage_size={page},prefault=on");
    // Only a zone can be bound to a node, and --memory holds none of its own beside zones.
    let text = match vm.node {
        Some(node) => format!("--memory size=0 --memory-zone id=mem0,{pages},host_numa_node={node}"),
        None => format!("--memory {pages}"),
    };
    let (id, on) = ("cloud-hypervisor-arguments", "cloud-hypervisor's arguments");
    let why = "prefault=on takes all pages at the start";
    hypervisor(drafts, id, on, text, why, "cloud-hypervisor, docs/memory.md");
}

/// The settings of VMware's studies, in the places where they belong.
fn esx(drafts: &mut Drafts<'_>, vm: &VmGoal) {
    let mib = vm.memory.0 >> 20;
    let large = match vm.page.0 >= 1 << 30 {
        true => "sched.mem.lpage.enable1GPage = \"TRUE\"\n",
        false => "",
    };
    let text = format!(
        "memSize = \"{mib}\"\nsched.mem.min = \"{mib}\"\nsched.mem.pin = \
         \"TRUE\"\n{large}sched.cpu.latencySensitivity = \"high\""
    );
    let vmx = format!("the .vmx file of {}, while it is powered off", vm.name);
    let why = "1 GB pages need the whole memory reserved; latency sensitivity pins vCPUs, needs a full CPU reservation \
               (sched.cpu.min) and does not enable large pages. Remove monitor_control.disable_mmu_largepages if it is there";
    let study = "VMware and Samsung, Modernizing EDA Infrastructure: Lessons from Samsung's VCF Deployment; vSphere Resource Management";
    hypervisor(drafts, "vmx", &vmx, text, why, study);
    let text = "esxcli system settings advanced set -o /Mem/AllocGuestLargePage -i 1\n\
                esxcli system settings advanced set -o /LPage/LPageAlwaysTryForNPT -i 1";
    let why = "large pages for guests; 1 is the default of both";
    let source = "VMware, Large Page Performance (ESX 3.5)";
    hypervisor(drafts, "esx-advanced", "the ESX host", text.to_owned(), why, source);
    let text = "memstats -r buddy-stats\nvsish -e get /memory/lpage/vmLPage/WORLD\nsched-stats -t groups";
    let why = "before the start: free 1 GB pages; after it: what backs the machine. `hugewise size \
               esx-memory` and `size esx-cpu` do the arithmetic";
    hypervisor(drafts, "esx-verify", "the ESX shell", text.to_owned(), why, study);
}

fn hypervisor(drafts: &mut Drafts<'_>, id: &str, on: &str, text: String, why: &str, source: &str) {
    let draft = Draft::instruction(Layer::Hypervisor, id, on, text);
    drafts.add(draft.restart("the virtual machine"), why, source);
}
