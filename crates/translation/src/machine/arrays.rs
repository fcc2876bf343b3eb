//! From rows of the CPU table, or of a file, to arrays of entries.

use model::Bytes;
use model::tlb::Ways;

use super::assumed::RowReading;
use super::error::MachineError;
use crate::access::Side;
use crate::cpus::{TlbKind, TlbRow};
use crate::tlb::level::{Array, Held};

fn sides(kind: TlbKind) -> Vec<Side> {
    match kind {
        TlbKind::Data => vec![Side::Load, Side::Store],
        TlbKind::DataLoad => vec![Side::Load],
        TlbKind::DataStore => vec![Side::Store],
        TlbKind::Instruction => vec![Side::Fetch],
        TlbKind::Unified => Side::ALL.to_vec(),
    }
}

/// The arrays that rows describe: rows of one group are one array, and so are two rows of one level and kind that share a size.
pub(super) fn arrays(place: &str, rows: &[TlbRow], readings: &mut Vec<RowReading>) -> Result<Vec<Array>, MachineError> {
    let mut arrays: Vec<(&TlbRow, Array)> = Vec::new();
    for row in rows {
        let new = array(place, row, readings)?;
        let same = arrays
            .iter_mut()
            .find(|(first, array)| match (&first.group, &row.group) {
                (Some(one), Some(other)) => one == other,
                (None, None) => {
                    first.level == row.level && first.kind == row.kind && array.ways == new.ways && shares(array, &new)
                }
                _ => false,
            });
        match same {
            Some((first, array)) if first.group.is_some() => {
                readings.push(RowReading::SharedArray);
                let (first, sets) = (0, array.sets);
                array
                    .holds
                    .extend(new.holds.into_iter().map(|held| Held { first, sets, ..held }));
            }
            Some((_, array)) => {
                readings.push(RowReading::Halves);
                join(array, new);
            }
            None => arrays.push((row, new)),
        }
    }
    Ok(arrays.into_iter().map(|(_, array)| array).collect())
}

fn shares(array: &Array, other: &Array) -> bool {
    let holds = |page: Bytes| array.holds.iter().any(|held| held.page == page);
    other.holds.iter().any(|held| holds(held.page))
}

/// The second array's sets behind the first's; sizes that both hold use them all.
fn join(array: &mut Array, other: Array) {
    for held in other.holds {
        match array.holds.iter_mut().find(|known| known.page == held.page) {
            Some(known) => known.sets += held.sets,
            None => array.holds.push(Held {
                first: array.sets + held.first,
                ..held
            }),
        }
    }
    array.sets += other.sets;
}

/// The most entries of an array.
const MOST: u32 = 65_536;

fn array(place: &str, row: &TlbRow, readings: &mut Vec<RowReading>) -> Result<Array, MachineError> {
    let ways = match row.ways {
        Some(Ways::Count(ways)) => ways,
        Some(Ways::Full) | None => row.entries,
    };
    let sets = row.entries.checked_div(ways).unwrap_or(0);
    if sets == 0 || sets * ways != row.entries || row.entries > MOST {
        return Err(MachineError::Geometry {
            place: place.to_owned(),
            entries: row.entries,
            ways,
        });
    }
    if !sets.is_power_of_two() {
        readings.push(RowReading::OddSets);
    }
    let pages: Vec<Bytes> = row.pages.iter().map(|page| page.0).collect();
    Ok(Array {
        sides: sides(row.kind),
        ..Array::new(row.level, &pages, sets, ways)
    })
}
