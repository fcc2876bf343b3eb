//! The few facts of the running kernel's type information (BTF, Documentation/bpf/btf.rst) that the programs need. Pure.

use super::super::word;

const MAGIC: u16 = 0xEB9F;
/// `BTF_KIND_*` of `linux/btf.h`.
const STRUCT: u32 = 4;
const TYPEDEF: u32 = 8;
/// Words of a type before what its kind adds.
const HEAD: usize = 12;
/// Bytes of one member of a structure.
const MEMBER: usize = 12;

/// Offsets in `task_struct`, and the numbers of the types of tracepoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Of the thread's number.
    pub(crate) pid: i16,
    /// Of the process's number.
    pub(crate) tgid: i16,
    /// `sched_switch`.
    pub(crate) switch: u32,
    /// `sched_process_fork`.
    pub(crate) fork: u32,
    /// `sched_process_exec`.
    pub(crate) exec: u32,
    /// `task_rename`.
    pub(crate) rename: u32,
}

impl Layout {
    /// `None` if something is missing, or is not where kernels without randomized structures have it.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let header = word(bytes, 4)? as usize;
        if u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let section = |at| {
            let start = header.checked_add(word(bytes, at)? as usize)?;
            bytes.get(start..start.checked_add(word(bytes, at + 4)? as usize)?)
        };
        let (types, strings) = (section(8)?, section(16)?);
        let mut layout = Self::default();
        let (mut at, mut number) = (0, 1);
        while at < types.len() {
            let info = word(types, at + 4)?;
            let (kind, count) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
            let more = HEAD + added(kind, count)?;
            let name = name(strings, word(types, at)?)?;
            match kind {
                TYPEDEF => layout.typedef(name, number),
                STRUCT if name == b"task_struct" => {
                    layout.task(types.get(at + HEAD..at + more)?, strings, info >> 31 == 1)?;
                }
                _ => {}
            }
            (at, number) = (at + more, number + 1);
        }
        layout.is_whole().then_some(layout)
    }

    fn is_whole(&self) -> bool {
        self.pid > 0
            && self.tgid > 0
            && [self.switch, self.fork, self.exec, self.rename]
                .iter()
                .all(|id| *id > 0)
    }

    fn typedef(&mut self, name: &[u8], number: u32) {
        let of = match name {
            b"btf_trace_sched_switch" => &mut self.switch,
            b"btf_trace_sched_process_fork" => &mut self.fork,
            b"btf_trace_sched_process_exec" => &mut self.exec,
            b"btf_trace_task_rename" => &mut self.rename,
            _ => return,
        };
        *of = number;
    }

    /// With bit fields, the upper byte of a member's offset is their size.
    fn task(&mut self, members: &[u8], strings: &[u8], has_bit_fields: bool) -> Option<()> {
        for member in members.chunks_exact(MEMBER) {
            let of = match name(strings, word(member, 0)?)? {
                b"pid" => &mut self.pid,
                b"tgid" => &mut self.tgid,
                _ => continue,
            };
            let bits = word(member, 8)? & if has_bit_fields { 0xff_ffff } else { u32::MAX };
            *of = i16::try_from(bits / 8).ok()?;
        }
        Some(())
    }
}

/// Bytes that a kind adds to a type; `None` of one that this does not know.
fn added(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Pointers, forward declarations, typedefs, qualifiers, functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures and unions, sections of data, enumerations of 64 bits.
        4 | 5 | 15 | 19 => MEMBER * count,
        // Enumerations, prototypes of functions.
        6 | 13 => 8 * count,
        _ => return None,
    })
}

fn name(strings: &[u8], at: u32) -> Option<&[u8]> {
    strings.get(at as usize..)?.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Layout;

    const STRINGS: &[u8] = b"\0task_struct\0pid\0tgid\0btf_trace_sched_switch\0btf_trace_sched_process_fork\0\
        btf_trace_sched_process_exec\0btf_trace_task_rename\0";

    fn at(name: &str) -> u32 {
        let mut places = STRINGS.windows(name.len() + 2);
        let named =
            |window: &[u8]| window[0] == 0 && &window[1..=name.len()] == name.as_bytes() && window[name.len() + 1] == 0;
        places.position(named).expect("a name") as u32 + 1
    }

    fn made(types: &[u32]) -> Vec<u8> {
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let header = [24, 0, types.len() as u32, types.len() as u32, STRINGS.len() as u32];
        let mut bytes = [0xEB9F_u16.to_ne_bytes(), [1, 0]].concat();
        bytes.extend(header.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(types);
        bytes.extend(STRINGS);
        bytes
    }

    fn types() -> Vec<u32> {
        let typedef = |name: &str| [at(name), 8 << 24, 1];
        let integer = [0, 1 << 24, 4, 32];
        let task = [at("task_struct"), 4 << 24 | 2, 64, at("tgid"), 1, 96, at("pid"), 1, 64];
        let traces = [
            "sched_switch",
            "sched_process_fork",
            "sched_process_exec",
            "task_rename",
        ];
        let traces = traces.iter().flat_map(|name| typedef(&format!("btf_trace_{name}")));
        integer.into_iter().chain(task).chain(traces).collect()
    }

    #[test]
    fn offsets_and_numbers_are_found_and_what_is_missing_gives_none() {
        let expected = Layout {
            pid: 8,
            tgid: 12,
            switch: 3,
            fork: 4,
            exec: 5,
            rename: 6,
        };
        let types = types();
        assert_eq!(Layout::of(&made(&types)), Some(expected));
        assert_eq!(Layout::of(&made(&types[..types.len() - 3])), None);
        assert_eq!(Layout::of(&made(&[0, 31 << 24, 0])), None);
        // A structure with bit fields has the same offsets below their sizes.
        let mut with_fields = types.clone();
        with_fields[5] |= 1 << 31;
        with_fields[9] |= 7 << 24;
        assert_eq!(Layout::of(&made(&with_fields)), Some(expected));
    }

    #[test]
    fn this_kernels_own_is_whole_where_there_is_one() {
        match host::Source::live().bytes("/sys/kernel/btf/vmlinux").into_result() {
            Ok(bytes) => assert!(Layout::of(&bytes).is_some()),
            Err(why) => testing::skipped(&format!("no BTF: {why:?}")),
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0_usize..200, flips in prop::collection::vec((0_usize..400, any::<u8>()), 0..8)) {
            let _ = Layout::of(&bytes);
            let mut made = made(&types());
            for (place, value) in flips {
                if let Some(byte) = made.get_mut(place) { *byte = value; }
            }
            made.truncate(made.len().saturating_sub(cut));
            let _ = Layout::of(&made);
        }
    }
}
