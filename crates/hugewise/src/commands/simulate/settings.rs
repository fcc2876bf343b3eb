//! The page sizes and modes that `hugewise simulate translation` compares: those typed, or those of the machine.

use model::Bytes;
use translation::Mode;
use translation::machine::Machine;
use translation::study::Setting;

use crate::cli::args::Translation;

/// All of them, and the one that the others are compared with.
pub(super) fn settings_and_baseline(args: &Translation, machine: &Machine) -> anyhow::Result<(Vec<Setting>, Setting)> {
    let settings = settings(args, machine);
    let baseline = args.baseline.or(settings.first().copied());
    let baseline = baseline.ok_or_else(|| anyhow::anyhow!("{} has no page size that is simulated", machine.id))?;
    Ok((settings, baseline))
}

/// Page sizes that are simulated if none is typed: those of x86.
const USUAL: [Bytes; 3] = [Bytes::kib(4), Bytes::mib(2), Bytes::gib(1)];

/// Every mode with every page size, or with every pair of them. Natively the guest's page counts alone.
fn settings(args: &Translation, machine: &Machine) -> Vec<Setting> {
    let usual = || USUAL.into_iter().filter(|&page| machine.maps(page));
    let pairs: Vec<(Bytes, Bytes)> = match (&args.guest_pages[..], &args.pages[..]) {
        ([], []) => usual().map(|page| (page, page)).collect(),
        ([], pages) => pages.iter().map(|&page| (page, page)).collect(),
        (guests, _) => {
            let hosts = |&guest: &Bytes| args.host_pages.iter().map(move |&host| (guest, host));
            guests.iter().flat_map(hosts).collect()
        }
    };
    let mut settings: Vec<Setting> = Vec::new();
    for mode in modes(args, machine) {
        for &(guest_page, host) in &pairs {
            let setting = Setting::new(mode, guest_page, host);
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    }
    settings
}

fn modes(args: &Translation, machine: &Machine) -> Vec<Mode> {
    if !args.mode.is_empty() {
        return args.mode.clone();
    }
    let virt = if machine.nested_paging == Some(false) {
        Mode::Shadow
    } else {
        Mode::Nested
    };
    vec![Mode::Native, virt]
}
