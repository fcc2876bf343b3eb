//! Does this guest report its free pages to its host?

use crate::Source;

/// Devices of the balloon's driver.
const BALLOONS: &str = "/sys/bus/virtio/drivers/virtio_balloon";
/// Which of its features is `VIRTIO_BALLOON_F_REPORTING`.
const REPORTING: usize = 5;

/// Are free pages of this guest reported to its host, which drops them until they are touched again (free page reporting)?
/// Known of virtio-balloon alone.
pub fn reports_free_pages(source: &Source) -> bool {
    let names = source.list(BALLOONS).into_result().unwrap_or_default();
    // A row of 0 and 1, one for each feature that both sides use.
    let features = names
        .iter()
        .filter(|name| name.starts_with("virtio"))
        .map(|name| source.line(&format!("/sys/bus/virtio/devices/{name}/features")));
    features
        .filter_map(|features| features.known()?.chars().nth(REPORTING))
        .any(|feature| feature == '1')
}

#[cfg(test)]
mod tests {
    use super::{BALLOONS, reports_free_pages};
    use crate::{Source, Tree};

    #[test]
    fn a_balloon_reports_by_its_sixth_feature_and_no_driver_by_none() {
        let devices = "/sys/bus/virtio/devices/virtio0/features";
        let of = |features: &str| {
            let bound = Tree::new()
                .line(devices, features)
                .link(&format!("{BALLOONS}/virtio0"), "../../devices/virtio0");
            reports_free_pages(&Source::from_tree("test", bound))
        };
        assert!(of("0110010100000000000000000000000010000000"));
        assert!(!of("0110100100000000000000000000000010000000"));
        assert!(!of("011"));
        // Its driver was taken from it.
        let unbound = Tree::new().line(devices, "0110010100000000");
        assert!(!reports_free_pages(&Source::from_tree("test", unbound)));
    }
}
