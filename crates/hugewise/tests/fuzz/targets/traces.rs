//! Traces of memory accesses, by whatever tool.

use model::Bytes;
use predict::trace::own::{Head, Window, write};
use predict::trace::{Trace, TraceFormat};
use predict::{Replay, replay};
use translation::machine::Machine;
use translation::study::Setting;
use translation::{Access, Accesses, Mode};

/// Any bytes are a trace, whose accesses have addresses and are simulated, or an error with its place. The first byte chooses the
/// format, or that the content does.
pub(crate) fn trace(bytes: &[u8]) {
    let Some((&which, content)) = bytes.split_first() else {
        return;
    };
    let format = TraceFormat::ALL.get(usize::from(which)).copied();
    if let Ok(mut trace) = Trace::open(content, format, true) {
        let mut block = Vec::new();
        while let Ok(event) = trace.fill(&mut block) {
            assert!(block.len() <= translation::BLOCK);
            assert!(block.iter().all(|access| access.address() >> 52 == 0));
            if block.is_empty() && event.is_none() {
                break;
            }
            block.clear();
        }
    }
    if let Ok(mut trace) = Trace::open(content, format, false) {
        let setting = Setting::new(Mode::Native, Bytes::kib(4), Bytes::kib(4));
        let mut asked = Replay {
            machine: Machine::by_id("opteron-885").expect("known"),
            settings: vec![setting],
            baseline: setting,
            warm_up: 0,
            accesses: u64::MAX,
            forgets: true,
            history: Vec::new(),
            curve: false,
        };
        asked.lay_pages(trace.head.as_ref());
        let _ = replay(&asked, &mut trace, &|_| {});
    }
}

/// One of each format, which is named by the first byte and recognised by another.
pub(crate) fn traces() -> Vec<Vec<u8>> {
    let mut own = Vec::new();
    let window = Window {
        instructions: 9,
        at_us: 1000,
        used_pages: None,
        accesses: (0..5).map(|at| Access::load(0x7f00_0000_0000 + at * 4096)).collect(),
    };
    write(&Head::default(), &[window], &mut own).expect("memory");
    let record = |kind: u16, address: u64| {
        let size = 4_u16;
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), &address.to_le_bytes()].concat()
    };
    let header = [25, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0].to_vec();
    let raw = [
        header,
        record(10, 0x40_1000),
        record(0, 1 << 40),
        record(17, 0x0504),
        record(26, 0),
    ]
    .concat();
    let mut instruction = [0; 64];
    instruction[1] = 0x40;
    instruction[13] = 7;
    instruction[34] = 8;
    let lackey = "==7== Lackey\nI  0401ab70,3\n S 1fff000748,8\n L 04222c4c,4\n M 1ffeffff60,4\n";
    let words = [1_u64 << 40, 0xffff_8880_0000_1000].map(u64::to_le_bytes).concat();
    let all = [lackey.as_bytes().to_vec(), raw, instruction.repeat(2), words, own];
    let with = |which: u8, content: &Vec<u8>| [&[which][..], content].concat();
    let named = all
        .iter()
        .enumerate()
        .map(|(which, content)| with(which as u8, content));
    named.chain(all.iter().map(|content| with(9, content))).collect()
}
