//! The mappings of one process, each in a few words: a process may have hundreds of thousands.

use std::fmt;
use std::sync::Arc;

use host::processes::Reason;
use model::process::MappingPages;
use model::texts::Texts;
use model::{Address, Backing, Bytes, PageKind};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ps::MappingRow;

/// Rows of mappings, read back as [`MappingRow`]s one by one. In JSON it is a list of those.
#[derive(Clone, Default)]
pub struct MappingRows {
    rows: Vec<Row>,
    /// Bytes by page kind of all rows, one row after the other.
    kinds: Vec<(PageKind, Bytes)>,
    is_cut: bool,
    texts: Texts,
}

#[derive(Clone)]
struct Row {
    start: Address,
    end: Address,
    size: Bytes,
    offset: Bytes,
    perms: Arc<str>,
    name: Arc<str>,
    flags: Arc<str>,
    /// Where its part of `kinds` ends.
    kinds: u32,
    thp_eligible: Option<bool>,
    why_base: Option<Reason>,
}

impl MappingRows {
    /// Adds a row. One for whose texts there is no room cuts the list.
    pub fn push(&mut self, row: &MappingRow) {
        match self.packed(row) {
            Some(row) if !self.is_cut => self.rows.push(row),
            _ => self.is_cut = true,
        }
    }

    /// Is something missing?
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The rows, made one by one.
    pub fn iter(&self) -> impl Iterator<Item = MappingRow> + '_ {
        let ends = self.rows.iter().map(|row| row.kinds as usize);
        let starts = std::iter::once(0).chain(ends);
        starts.zip(&self.rows).map(|(start, row)| {
            let kinds = self.kinds[start..row.kinds as usize].iter().copied();
            row.unpacked(kinds.collect())
        })
    }

    fn packed(&mut self, row: &MappingRow) -> Option<Row> {
        let pages = &row.pages;
        let texts = &mut self.texts;
        let (perms, name) = (texts.of(&pages.perms)?, texts.of(&pages.name)?);
        let flags = texts.of(&pages.flags.join(" "))?;
        self.kinds.extend(pages.backing.iter());
        Some(Row {
            start: pages.start,
            end: pages.end,
            size: pages.size,
            offset: pages.offset,
            perms,
            name,
            flags,
            kinds: u32::try_from(self.kinds.len()).ok()?,
            thp_eligible: pages.thp_eligible,
            why_base: row.why_base,
        })
    }
}

impl Row {
    fn unpacked(&self, backing: Backing) -> MappingRow {
        MappingRow {
            pages: MappingPages {
                start: self.start,
                end: self.end,
                perms: self.perms.to_string(),
                name: self.name.to_string(),
                offset: self.offset,
                size: self.size,
                backing,
                thp_eligible: self.thp_eligible,
                flags: self.flags.split_ascii_whitespace().map(str::to_owned).collect(),
            },
            why_base: self.why_base,
        }
    }
}

impl PartialEq for MappingRows {
    fn eq(&self, other: &Self) -> bool {
        self.is_cut == other.is_cut && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for MappingRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for MappingRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for MappingRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Rows)
    }
}

struct Rows;

impl<'de> Visitor<'de> for Rows {
    type Value = MappingRows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of mappings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<MappingRows, A::Error> {
        let mut all = MappingRows::default();
        while let Some(row) = rows.next_element::<MappingRow>()? {
            all.push(&row);
            if all.is_cut() {
                let place = format!("{}-{}", row.pages.start, row.pages.end);
                return Err(A::Error::custom(format!(
                    "mapping {place}: the texts of all mappings are too long"
                )));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::MappingRows;
    use crate::results::ps::MappingRow;

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
        assert_eq!(packed.count(), 3);
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
