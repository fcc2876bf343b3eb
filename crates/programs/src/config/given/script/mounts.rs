//! hugetlbfs as a script mounts it.

use model::Bytes;

use super::words::Word;

/// `mount -t hugetlbfs -o OPTIONS DEVICE DIRECTORY`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugeMount {
    /// `FILE:LINE`.
    pub place: String,
    pub target: String,
    /// Where another one, for pages of another size, is mounted at the same directory before: it is hidden from then on.
    pub over: Option<String>,
    options: String,
    device: String,
    /// Is it certainly there at the end of what was read?
    is_there: bool,
}

/// Options of hugetlbfs (Documentation/admin-guide/mm/hugetlbpage.rst).
const OPTIONS: [&str; 7] = ["pagesize=", "size=", "min_size=", "nr_inodes=", "mode=", "uid=", "gid="];

impl HugeMount {
    /// Of the words behind `mount`.
    pub(super) fn of(place: String, words: &[Word], is_sure: bool) -> Option<Self> {
        let (mut kind, mut options, mut names) = ("", Vec::new(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().map_or("", |next| next.text.as_str());
            match word.text.as_str() {
                "-t" | "--types" => kind = value(),
                "-o" | "--options" => options.push(value()),
                text if text.starts_with('-') => {}
                _ => names.push(word),
            }
        }
        match names[..] {
            [device, target] if kind == "hugetlbfs" => Some(Self {
                place,
                target: target.text.clone(),
                over: None,
                options: options.join(","),
                device: device.text.clone(),
                is_there: is_sure && !target.is_open(),
            }),
            _ => None,
        }
    }

    /// An option without `-o`, which `mount` takes as the name of the device.
    pub fn stray(&self) -> Option<&str> {
        let is_option = OPTIONS.iter().any(|option| self.device.starts_with(option));
        is_option.then_some(&*self.device)
    }

    /// The page size that is written, be it as an option or in the place of the device.
    pub fn written(&self) -> Option<Bytes> {
        let mut words = self.options.split(',').chain(self.device.split(','));
        let size = words.find_map(|word| word.strip_prefix("pagesize="))?;
        size.parse().ok()
    }
}

/// So many mounts before a line are looked at.
const NEAR: usize = 256;

/// One more, over those before it.
pub(super) fn mount(mounts: &mut Vec<HugeMount>, new: HugeMount) {
    let is_hidden = |old: &&HugeMount| old.is_there && old.target == new.target && old.written() != new.written();
    let hidden = mounts.iter().rev().take(NEAR).find(is_hidden).filter(|_| new.is_there);
    let over = hidden.map(|old| old.place.clone());
    mounts.push(HugeMount { over, ..new });
}

/// `umount DIRECTORY`
pub(super) fn unmount(mounts: &mut [HugeMount], words: &[Word]) {
    let is_named = |mount: &HugeMount| words.iter().any(|word| word.is_open() || word.text == mount.target);
    for mount in mounts.iter_mut().rev().take(NEAR).filter(|mount| is_named(mount)) {
        mount.is_there = false;
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use model::Bytes;

    #[test]
    fn options_without_o_are_devices_and_a_later_mount_hides_an_earlier_one() {
        let text = "mount -t hugetlbfs -o pagesize=2M nodev /mnt/huge\nsudo mount -t hugetlbfs pagesize=1GB /mnt/huge\n\
                    umount /mnt/huge\nmount nodev /mnt/huge -t hugetlbfs -o mode=0777,pagesize=1G\n\
                    mountpoint -q /mnt/x || mount -t hugetlbfs none /mnt/huge\nmount -t tmpfs size=1G /mnt/tmp\n";
        let script = read("a.sh", text);
        let read: Vec<_> = script
            .mounts
            .iter()
            .map(|own| (own.stray(), own.written(), own.over.as_deref()))
            .collect();
        assert_eq!(
            read,
            [
                (None, Some(Bytes::mib(2)), None),
                (Some("pagesize=1GB"), Some(Bytes::gib(1)), Some("a.sh:1")),
                (None, Some(Bytes::gib(1)), None),
                (None, None, None),
            ]
        );
    }
}
