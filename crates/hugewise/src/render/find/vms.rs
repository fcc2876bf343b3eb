//! Virtual machines as a table and as lines of CSV.

use std::collections::BTreeSet;

use model::vms::{Configured, KvmPages, Vm};
use model::{Backing, Bytes, PageKind, Reading, Unread};

use super::ps::{by_kind, share};
use super::unseen::in_words;
use crate::results::VmList;
use crate::show::Show;
use draw::{Lines, Sheet, columns, joined, lines, or};

impl Show for VmList {
    fn title(&self) -> String {
        "Page kinds behind virtual machines".to_owned()
    }

    fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = table(&self.title(), self.known());
        match &self.vms {
            Reading::Unread(why) => sheet.note(format!("not known: {why}")),
            Reading::Known(vms) if !vms.is_empty() => notes(vms).into_iter().for_each(|note| sheet.note(note)),
            Reading::Known(_) if self.unseen.is_none() => sheet.note("no virtual machine runs here"),
            Reading::Known(_) => sheet.note("no virtual machine was found, and not every process could be read"),
        }
        in_words(&self.unseen).into_iter().for_each(|words| sheet.note(words));
        vec![sheet]
    }

    fn csv(&self) -> Lines<'_> {
        let fields = columns![|vm| &Vm;
            pid => vm.pid, program => vm.program, name => vm.name.as_ref()?, kvm => vm.kvm.known()?,
            memory => vm.configured.known()?.total().0, asked => vm.configured.known().map(asked_for)?,
            prealloc => vm.configured.known()?.prealloc, shared => vm.configured.known()?.shared,
            resident => vm.backing.known()?.total().0, large => vm.backing.known()?.large().0,
            backing => vm.backing.known()?, kvm_pages_4k => vm.kvm_pages.known()?.pages_4k,
            kvm_pages_2m => vm.kvm_pages.known()?.pages_2m, kvm_pages_1g => vm.kvm_pages.known()?.pages_1g,
            mismatches => vm.mismatches.join(" "),
        ];
        lines(fields, self.known().iter())
    }
}

/// One row each, with a column for every page kind that occurs.
fn table(title: &str, vms: &[Vm]) -> Sheet {
    let first = columns![|vm| &Vm;
        "#pid" => vm.pid, "name" => vm.name.as_ref()?, "run by" => run_by(vm),
        "#memory" => or(vm.configured.known().map(Configured::total), "?"),
        "asked for" => or(vm.configured.known().map(asked_for), "?"),
        "#resident" => or(vm.backing.known().map(Backing::total), "?"),
    ];
    let last = columns![|vm| &Vm; "#huge, %" => share(vm.backing.known()), "KVM maps" => kvm_maps(vm)];
    let fields = first.into_iter().chain(by_kind(vms, |vm| vm.backing.known()));
    Sheet::of(title, fields.chain(last), vms.iter())
}

fn run_by(vm: &Vm) -> String {
    match vm.kvm {
        Reading::Known(true) => format!("{}, KVM", vm.program),
        Reading::Known(false) => format!("{}, no KVM", vm.program),
        Reading::Unread(_) => vm.program.clone(),
    }
}

/// `hugetlb-2M`, or `hugetlb-2M 4G + thp 1G` where the pieces differ.
fn asked_for(asked: &Configured) -> String {
    let name = |kind: Option<PageKind>| or(kind, "any pages");
    let kinds: BTreeSet<Option<PageKind>> = asked.memory.iter().map(|region| region.kind).collect();
    let size = |kind| -> u64 {
        let mine = asked.memory.iter().filter(|region| region.kind == kind);
        mine.map(|region| region.size.0).sum()
    };
    let alone = kinds.len() == 1;
    let parts = kinds.into_iter().map(|kind| match alone {
        true => name(kind),
        false => format!("{} {}", name(kind), Bytes(size(kind))),
    });
    joined(parts, " + ")
}

/// `4K 120, 2M 510, 1G 0`.
fn kvm_maps(vm: &Vm) -> String {
    let maps = |pages: &KvmPages| format!("4K {}, 2M {}, 1G {}", pages.pages_4k, pages.pages_2m, pages.pages_1g);
    or(vm.kvm_pages.known().map(maps), "?")
}

/// What is not as it should be, and why `?` stands somewhere: one note for each reason.
fn notes(vms: &[Vm]) -> Vec<String> {
    let mismatches = vms.iter().flat_map(|vm| {
        let mismatches = vm.mismatches.iter();
        mismatches.map(move |mismatch| format!("{}: {mismatch}", called(vm)))
    });
    let unread = [
        unread("memory asked for", vms, |vm| vm.configured.unread()),
        unread("backing", vms, |vm| vm.backing.unread()),
        unread("what KVM maps", vms, |vm| vm.kvm_pages.unread()),
    ];
    mismatches.chain(unread.into_iter().flatten()).collect()
}

fn called(vm: &Vm) -> String {
    match &vm.name {
        Some(name) => format!("{} ({name})", vm.pid),
        None => vm.pid.to_string(),
    }
}

fn unread(what: &str, vms: &[Vm], of: impl Fn(&Vm) -> Option<&Unread>) -> Option<String> {
    let reasons: Vec<&Unread> = vms.iter().filter_map(of).collect();
    let first = reasons.first()?;
    Some(format!(
        "? = {what} is not known for {} of {}; the first reason: {first}",
        reasons.len(),
        vms.len()
    ))
}

#[cfg(test)]
mod tests {
    use model::process::{Remedy, Unseen};
    use model::vms::{Configured, KvmPages, Region, Vm};
    use model::{Bytes, PageKind, Reading};

    use super::asked_for;
    use crate::results::VmList;
    use crate::show::Show;
    use draw::Look;

    fn region(size: Bytes, kind: Option<PageKind>) -> Region {
        Region { size, kind }
    }

    fn vm() -> Vm {
        Vm {
            pid: 4242,
            program: "qemu".to_owned(),
            name: Some("db\u{1b}[2J".to_owned()),
            kvm: Reading::Known(true),
            configured: Reading::Known(Configured {
                memory: vec![region(Bytes::gib(4), Some(PageKind::HUGETLB_2M))],
                prealloc: true,
                shared: false,
            }),
            backing: Reading::Known(
                [(PageKind::HUGETLB_2M, Bytes::gib(3)), (PageKind::Base, Bytes::gib(1))]
                    .into_iter()
                    .collect(),
            ),
            mapped: Bytes::gib(4),
            found: Some("by size".to_owned()),
            kvm_pages: Reading::Known(KvmPages {
                pages_4k: 10,
                pages_2m: 1536,
                pages_1g: 0,
            }),
            mismatches: vec!["configured for hugetlb-2M, but only 75 % of it is".to_owned()],
        }
    }

    fn text(vms: Vec<Vm>) -> String {
        let list = VmList {
            vms: Reading::Known(vms),
            unseen: Unseen::default(),
        };
        list.sheets()[0].text(Look::plain(160))
    }

    #[test]
    fn a_row_says_what_was_asked_for_and_what_came() {
        let text = text(vec![vm()]);
        for part in [
            "4242",
            "qemu, KVM",
            "4G",
            "hugetlb-2M",
            "75",
            "4K 10, 2M 1536, 1G 0",
            "but only 75 %",
            r"db\u{1b}",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_a_question_mark_with_a_reason() {
        let unknown = Vm {
            configured: Reading::absent("/proc/4242/cmdline"),
            backing: Reading::absent("/proc/4242/smaps"),
            kvm_pages: Reading::absent("/sys/kernel/debug/kvm"),
            mismatches: Vec::new(),
            ..vm()
        };
        let text = text(vec![vm(), unknown]);
        assert_eq!(
            text.matches(" ? = ").count() + text.matches("\n? = ").count(),
            3,
            "{text}"
        );
        assert!(
            text.contains("1 of 2; the first reason: absent: /proc/4242/smaps"),
            "{text}"
        );
        assert!(self::text(Vec::new()).contains("no virtual machine runs here"));
        let mut unseen = Unseen {
            remedy: Some(Remedy::Sudo),
            ..Unseen::default()
        };
        unseen.add(&model::Unread::new(model::Cause::Denied, "/proc/7/fd", ""));
        let vms = Reading::Known(Vec::new());
        let text = VmList { vms, unseen }.sheets()[0].text(Look::plain(160));
        assert!(!text.contains("runs here"), "{text}");
        assert!(
            text.contains("1 process could not be read (the first: denied: /proc/7/fd; run it with sudo)"),
            "{text}"
        );
    }

    #[test]
    fn pieces_that_differ_are_told_apart_and_csv_lines_are_whole() {
        let asked = Configured {
            memory: vec![
                region(Bytes::gib(4), Some(PageKind::HUGETLB_2M)),
                region(Bytes::gib(1), None),
                region(Bytes::gib(1), None),
            ],
            ..Configured::default()
        };
        assert_eq!(asked_for(&asked), "any pages 2G + hugetlb-2M 4G");
        let list = VmList {
            vms: Reading::Known(vec![vm()]),
            unseen: Unseen::default(),
        };
        let (head, mut lines) = list.csv();
        assert_eq!(lines.next().map(|line| line.len()), Some(head.len()));
    }
}
