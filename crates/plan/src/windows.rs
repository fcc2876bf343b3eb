//! Windows: the privilege that huge pages need, as instructions.

use model::plan::Layer;

use super::draft::{Draft, Drafts};

/// Drafts the instructions for a user.
pub(super) fn draft(drafts: &mut Drafts<'_>, user: &str) {
    let text = format!(
        "secpol.msc: Local Policies, User Rights Assignment, \"Lock pages in memory\": add {user}\n\
         Log {user} off and on again, or restart the service that runs as {user}\n\
         Start the program early after boot: pages of 2M must be free in one piece\n\
         Check: whoami /priv lists SeLockMemoryPrivilege"
    );
    let draft = Draft::instruction(Layer::Windows, "windows-privilege", "the Windows machine", text);
    let why = "VirtualAlloc(MEM_LARGE_PAGES) needs SeLockMemoryPrivilege; a JVM says \"does not have \
               enough privilege to lock pages in memory\"";
    drafts.add(
        draft
            .why(why)
            .source("Microsoft, Large-Page Support; VMware, Large Page Performance (ESX 3.5), appendix")
            .restart(format!("sessions of {user}")),
    );
}
