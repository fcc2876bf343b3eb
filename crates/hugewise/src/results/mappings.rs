//! The mappings of one process: it may have hundreds of thousands, so that each is kept as a line of text.

use host::processes::Reason;
use model::Bytes;
use model::process::MappingPages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// One mapping in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MappingRow {
    /// What it has.
    #[serde(flatten)]
    pub pages: MappingPages,
    /// Why some of it is on base pages; `null` if none of it is.
    #[serde(default)]
    pub why_base: Option<Reason>,
}

/// Rows of mappings, read back as [`MappingRow`]s one by one. In JSON it is a list of those.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Vec<MappingRow>")]
pub struct MappingRows {
    /// What each row has as JSON, a line each.
    lines: String,
    is_cut: bool,
}

impl MappingRows {
    /// The most that is kept of one process, which is half a million mappings; with very long names it wants memory to be used up.
    pub const MOST: Bytes = Bytes::mib(128);

    /// Adds a row. One for which there is no room cuts the list.
    pub fn push(&mut self, row: &MappingRow) {
        // What a row holds can be written as JSON.
        let line = serde_json::to_string(&(&row.pages, row.why_base)).unwrap_or_default();
        self.is_cut |= (self.lines.len() + line.len()) as u64 > Self::MOST.0;
        if !self.is_cut {
            self.lines.extend([line.as_str(), "\n"]);
        }
    }

    /// Is something missing?
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The rows, made one by one.
    pub fn iter(&self) -> impl Iterator<Item = MappingRow> + '_ {
        self.lines.lines().filter_map(|line| {
            let (pages, why_base) = serde_json::from_str(line).ok()?;
            Some(MappingRow { pages, why_base })
        })
    }
}

impl Serialize for MappingRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl TryFrom<Vec<MappingRow>> for MappingRows {
    type Error = String;

    fn try_from(rows: Vec<MappingRow>) -> Result<Self, String> {
        let mut all = Self::default();
        rows.iter().for_each(|row| all.push(row));
        match all.is_cut {
            true => Err(format!("the mappings take more than {}", Self::MOST)),
            false => Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MappingRow, MappingRows};

    const ROWS: &str = r#"[
        {"start":"1000","end":"3000","perms":"rw-p","name":"[heap]","size":8192,"backing":{"base":4096,"mthp-64K":65536},
         "thp_eligible":null,"flags":["rd","wr"],"why_base":"not-given"},
        {"start":"3000","end":"4000","perms":"r--p","name":"","size":4096,"backing":{},"thp_eligible":false,"flags":[],"why_base":null},
        {"start":"7f0000000000","end":"7f0000200000","perms":"rw-s","name":"/a b","size":2097152,
         "backing":{"hugetlb-2M":2097152},"thp_eligible":true,"flags":["ht"],"why_base":null}
    ]"#;

    #[test]
    fn rows_are_read_back_as_they_were_added_and_as_a_plain_list_has_them() {
        let plain: Vec<MappingRow> = serde_json::from_str(ROWS).expect("rows");
        let packed: MappingRows = serde_json::from_str(ROWS).expect("rows");
        assert_eq!(packed.iter().collect::<Vec<_>>(), plain);
        let text = |rows: &dyn Fn() -> serde_json::Result<String>| rows().expect("JSON");
        assert_eq!(
            text(&|| serde_json::to_string_pretty(&packed)),
            text(&|| serde_json::to_string_pretty(&plain))
        );
        assert_eq!(packed.clone(), packed);
    }

    #[test]
    fn a_row_that_cannot_be_kept_is_named() {
        let wrong = ROWS.replacen("1000", "here", 1);
        let why = serde_json::from_str::<MappingRows>(&wrong).expect_err("no address");
        assert!(why.to_string().starts_with("`here` is not an address"), "{why}");
    }
}
