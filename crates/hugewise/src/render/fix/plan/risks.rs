//! What a change of a plan can cost, in words.

use model::plan::Risk;

/// Each cost by itself; often none.
pub(super) fn risks(risk: &Risk) -> Vec<String> {
    let takes = risk.takes.as_ref();
    let takes = takes.map(|taken| format!("takes {} from {}", taken.bytes, taken.from));
    let restart = (!risk.restart.is_empty()).then(|| format!("restart: {}", risk.restart.join(", ")));
    let reboot = risk.reboot.then(|| "takes effect at the next boot".to_owned());
    let losses = risk.losses.iter().cloned();
    losses.chain(takes).chain(restart).chain(reboot).collect()
}
