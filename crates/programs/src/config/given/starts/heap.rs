//! The heap of a JVM that none of its own options sets.

use model::Bytes;

use super::super::java::Java;
use super::Start;
use crate::config::Setting;
use crate::image_names;
use crate::jvm::{WHOLE, size_of};

/// Variables of which well-known start files make `-Xmx`: the name, the image that it is one of, if of one alone, and whether a
/// number without a unit is of MiB.
const VARIABLES: [(&str, Option<&str>, bool); 7] = [
    ("SOLR_HEAP", None, false),
    ("HADOOP_HEAPSIZE_MAX", None, true),
    ("HADOOP_HEAPSIZE", None, true),
    ("HBASE_HEAPSIZE", None, true),
    ("MAX_HEAP_SIZE", Some("cassandra"), false),
    ("MAX_MEMORY", Some("minecraft-server"), false),
    ("MEMORY", Some("minecraft-server"), false),
];

impl Start {
    /// With what sets the heap of its JVM.
    pub(super) fn with_heap(&self, mut java: Java) -> Java {
        if java.jvm.heap_max.is_none()
            && let Some((heap, by)) = self.by_variable().or_else(|| self.by_memory(&java))
        {
            java.jvm.heap_max = Some(heap);
            java.heap_by = Some(by);
        }
        java
    }

    fn by_variable(&self) -> Option<(Bytes, Setting)> {
        let image = image_names::name(&self.image);
        VARIABLES.iter().find_map(|(name, of, in_mib)| {
            let is_one = of.is_none_or(|of| of == image);
            let set = self.environment.iter().rfind(|set| is_one && set.name == *name)?;
            let mib = || set.value.parse::<u32>().ok().filter(|_| *in_mib);
            let size = mib().map_or_else(|| size_of(&set.value), |mib| Some(Bytes::mib(mib.into())));
            Some((size?, set.clone()))
        })
    }

    fn by_memory(&self, java: &Java) -> Option<(Bytes, Setting)> {
        let (memory, set) = self.memory.as_ref()?;
        // Then that is the machine's.
        if java.argument("-XX:-UseContainerSupport").is_some() {
            return None;
        }
        let heap = java.jvm.heap_in(*memory)?;
        let percent = java.jvm.share.map(|share| share as f64 * 100.0 / WHOLE as f64);
        let part = match percent {
            _ if java.jvm.part_of(*memory) != Some(heap) => heap.to_string(),
            Some(percent) => format!("{percent} %"),
            None => "a quarter".to_owned(),
        };
        let value = format!("{}, of which the heap is {part}", set.value);
        Some((heap, Setting::new(&set.place, &set.name, value)))
    }
}
