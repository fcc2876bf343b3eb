//! The items of a list that are to be kept, without a branch on which they are.

/// Makes `kept` those of `items` for which `stays` is true; it is asked once for each, in their order.
#[inline(always)]
pub(super) fn keep<T: Copy>(items: &[T], kept: &mut Vec<T>, mut stays: impl FnMut(T) -> bool) {
    // Each item is written to the next place, and overwritten by the next one if it goes.
    items.clone_into(kept);
    let mut count = 0;
    for &item in items {
        let is_kept = stays(item);
        kept[count] = item;
        count += usize::from(is_kept);
    }
    kept.truncate(count);
}
