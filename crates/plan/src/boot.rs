//! The kernel's command line: pools that can only be had at boot.

use model::Bytes;
use model::plan::Layer;
use programs::config::{Distribution, OnBoot};

use super::draft::{Draft, Drafts};

const GRUB: &str = "/etc/default/grub.d/60-hugewise.cfg";
const CMDLINE: &str = "/etc/kernel/cmdline";
/// Debian keeps kernels in /boot, others beside their modules.
const KERNEL_INSTALL: &str = "kernel-install add \"$(uname -r)\" \"$(ls /lib/modules/$(uname -r)/vmlinuz /boot/vmlinuz-$(uname -r) 2>/dev/null | head -n 1)\"";
const SOURCE: &str = "Linux Documentation/admin-guide/kernel-parameters.txt, hugepagesz= and hugepages=";

/// Asks for a pool at boot.
pub(super) fn pool(drafts: &mut Drafts<'_>, page: Bytes, parts: &[(Option<u32>, u64)], why: &str) {
    let count = |&(node, pages): &(Option<u32>, u64)| match node {
        Some(node) => format!("{node}:{pages}"),
        None => pages.to_string(),
    };
    let counts: Vec<String> = parts.iter().map(count).collect();
    let parameters = format!("hugepagesz={} hugepages={}", page.exact(), counts.join(","));
    let line = drafts.host.snapshot.kernel.command_line.known();
    if line.is_some_and(|line| has_words(line, &parameters)) {
        drafts.note(format!("`{parameters}` is on the kernel's command line already"));
        return;
    }
    earlier(drafts, page);
    add(drafts, &format!("boot-pool-{}", page.exact()), page, &parameters, why);
}

/// Are these words, one behind the other, among those of a line?
fn has_words(line: &str, words: &str) -> bool {
    let [line, words]: [Vec<&str>; 2] = [line, words].map(|text| text.split_whitespace().collect());
    line.windows(words.len()).any(|some| some == words)
}

/// Of two counts for one pool the first one holds.
fn earlier(drafts: &mut Drafts<'_>, page: Bytes) {
    let default = drafts.host.default_page();
    let boot = drafts.host.config.boot.known();
    if let Some(pages) = boot.and_then(|boot| boot.pages_of(page, Some(default))) {
        let size = page.exact();
        drafts.note(format!(
            "the command line requests {pages} pages of {size} already, and the first count holds: \
             take it out"
        ));
    }
}

fn add(drafts: &mut Drafts<'_>, id: &str, page: Bytes, parameters: &str, why: &str) {
    let why = format!("`{parameters}`: contiguous memory is certain only at boot; {why}");
    let has_grub_d =
        drafts.host.distribution() == Distribution::Debian && drafts.host.has_directory("/etc/default/grub.d");
    if has_grub_d {
        let line = format!("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {parameters}\"");
        let size = format!("hugepagesz={} ", page.exact());
        let draft = drafts.edit(Layer::Boot, id, GRUB, |text| {
            super::files::with_line(text, &line, |found| found.contains(&size))
        });
        drafts.add(draft.reboot(), why, SOURCE);
        let run = Draft::instruction(Layer::Boot, "update-grub", "this host", "update-grub\nreboot");
        drafts.add(run.reboot(), "GRUB's menu is made from its files", "grub-mkconfig(8)");
    } else if is_by_entries(drafts) {
        let draft = drafts.edit(Layer::Boot, id, CMDLINE, |text| with_parameters(text, page, parameters));
        drafts.add(draft.reboot(), why, SOURCE);
        let (name, tool) = match drafts.host.distribution() {
            Distribution::ProxmoxBoot => ("proxmox-boot-tool", "proxmox-boot-tool refresh"),
            Distribution::SuseEntries => ("sdbootutil", "sdbootutil update-all-entries"),
            _ => ("kernel-install", KERNEL_INSTALL),
        };
        let run = Draft::instruction(Layer::Boot, name, "this host", format!("{tool}\nreboot"));
        let why = "boot entries are made from that file";
        drafts.add(run.reboot(), why, &format!("{name}(8)"));
    } else {
        let there = OnBoot::of(&drafts.host.snapshot, &drafts.host.config);
        let how = drafts.host.distribution().add_boot_parameters(&there, parameters);
        let draft = Draft::instruction(Layer::Boot, id, "this host", how);
        drafts.add(draft.reboot(), why, SOURCE);
    }
}

/// Are boot entries made from the file? Red Hat's tool, and what starts other machines, have a way of their own.
fn is_by_entries(drafts: &Drafts<'_>) -> bool {
    use Distribution::{Debian, Efi, Other, ProxmoxBoot, SuseEntries, UnifiedImage};
    let own = drafts.host.distribution();
    let is_there = drafts.host.has_directory("/etc/kernel") && !drafts.host.text(CMDLINE).is_empty();
    is_there && matches!(own, Debian | Efi | Other | ProxmoxBoot | SuseEntries | UnifiedImage)
}

/// The line without an earlier pair for that size, and with the new one.
fn with_parameters(text: &str, page: Bytes, parameters: &str) -> String {
    let size = format!("hugepagesz={}", page.exact());
    let mut words: Vec<&str> = Vec::new();
    let mut skips_count = false;
    for word in text.split_whitespace() {
        let drop = word == size || (skips_count && word.starts_with("hugepages="));
        skips_count = word == size;
        if !drop {
            words.push(word);
        }
    }
    words.push(parameters);
    format!("{}\n", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::{has_words, with_parameters};
    use model::Bytes;

    #[test]
    fn a_number_is_not_looked_for_in_the_digits_of_another() {
        let line = "quiet hugepagesz=1G hugepages=40";
        assert!(!has_words(line, "hugepagesz=1G hugepages=4"));
        assert!(has_words(line, "hugepagesz=1G hugepages=40"));
        assert!(!has_words("ahugepagesz=1G hugepages=4", "hugepagesz=1G hugepages=4"));
    }

    #[test]
    fn an_earlier_pair_of_that_size_is_taken_out() {
        let text = "root=/dev/sda1 hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=512 quiet\n";
        let expected = "root=/dev/sda1 hugepagesz=2M hugepages=512 quiet hugepagesz=1G hugepages=4\n";
        assert_eq!(
            with_parameters(text, Bytes::gib(1), "hugepagesz=1G hugepages=4"),
            expected
        );
    }
}
