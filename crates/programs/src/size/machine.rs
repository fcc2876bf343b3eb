//! Pages for virtual machines and for DPDK.

use model::{Bytes, counted};

use super::{SizeError, Sizing};
use model::sizing::{check_page, pages_for};

/// `size vm`: pages for `count` guests of one size, spread over `nodes`.
///
/// # Errors
/// When the page is none, or there are no guests or nodes.
pub fn vm(memory: Bytes, count: u64, nodes: u64, page: Bytes) -> Result<Sizing, SizeError> {
    if count == 0 || nodes == 0 {
        return Err(SizeError::out_of_range("--count or --nodes", 0, "1 or more"));
    }
    let per_node = pages_for(Bytes(memory.0.div_ceil(nodes)), page)?;
    let each = per_node.saturating_mul(nodes);
    let pages = each.saturating_mul(count);
    let about = format!(
        "pages of {} for {} of {memory}",
        page.exact(),
        counted(count as usize, "guest")
    );
    let on_nodes = counted(nodes as usize, "node");
    let how = format!("{} B / {on_nodes} / {} B, rounded up", memory.0, page.0);
    let mut sizing = Sizing::new(about, "libvirt, memoryBacking; QEMU, memory-backend-memfd")
        .step("per_node", how, per_node, "pages")
        .step("each", format!("{per_node} x {nodes}"), each, "pages")
        .step("pages", format!("{each} x {count}"), pages, "pages");
    if !memory.0.is_multiple_of(page.0.saturating_mul(nodes)) {
        sizing = sizing.trap(format!(
            "{memory} is not a multiple of {} on each of {on_nodes}: QEMU refuses it, or the \
             last page is half empty",
            page.exact()
        ));
    }
    Ok(sizing
        .trap("the hypervisor's own memory, video memory and the host need base pages beside the pool")
        .trap("pages on the wrong node do not help: fill the pool node by node")
        .trap("huge pages are needed twice: in the host for the guest and in the guest for its programs"))
}

/// Bytes of one packet buffer in its pool: data room of 2 KiB with headroom, its header, and the pool's own header.
const MBUF: u64 = 2176 + 128 + 64;

/// `size dpdk`: pages for the memory of each node, and for packet buffers if they are given.
///
/// # Errors
/// When the page is none.
pub fn dpdk(per_node: &[Bytes], mbufs: u64, page: Bytes) -> Result<Sizing, SizeError> {
    check_page(page)?;
    let about = format!("pages of {} for DPDK", page.exact());
    let mut sizing = Sizing::new(about, "DPDK Programmer's Guide, EAL and Mbuf Library");
    let mut pages = 0u64;
    for (node, &bytes) in per_node.iter().enumerate() {
        let here = pages_for(bytes, page)?;
        pages = pages.saturating_add(here);
        let how = format!("{bytes} / {}, rounded up", page.exact());
        sizing = sizing.step(&format!("node{node}"), how, here, "pages");
    }
    if mbufs > 0 {
        let bytes = mbufs.checked_mul(MBUF);
        let bytes = bytes.ok_or(SizeError::TooLarge("the pool of packet buffers"))?;
        let here = pages_for(Bytes(bytes), page)?;
        pages = pages.saturating_add(here);
        let how = format!("{mbufs} x {MBUF} B / {}, rounded up", page.exact());
        sizing = sizing.step("mbufs", how, here, "pages");
    }
    Ok(sizing
        .step("pages", "the sum", pages, "pages")
        .trap("DPDK keeps its files in hugetlbfs after it ends: pages stay taken until rtemap_* is removed")
        .trap("each device needs buffers on its own node"))
}

#[cfg(test)]
mod tests {
    use super::{dpdk, vm};
    use model::Bytes;

    #[test]
    fn guests_are_rounded_up_node_by_node() {
        assert_eq!(
            vm(Bytes::gib(64), 1, 1, Bytes::gib(1)).expect("a size").whole("pages"),
            Some(64)
        );
        let odd = vm(Bytes::gib(7), 2, 2, Bytes::gib(1)).expect("a size");
        assert_eq!(odd.whole("pages"), Some(16));
        assert!(odd.traps[0].contains("not a multiple"), "{:?}", odd.traps);
        assert!(vm(Bytes::gib(7), 0, 2, Bytes::gib(1)).is_err());
    }

    #[test]
    fn packet_buffers_come_on_top() {
        let sizing = dpdk(&[Bytes::gib(1), Bytes::gib(1)], 262_144, Bytes::mib(2)).expect("a size");
        assert_eq!(sizing.whole("pages"), Some(512 + 512 + 296));
    }
}
