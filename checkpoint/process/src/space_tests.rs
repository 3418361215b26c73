//! Tests of the table of addresses.
use super::*;

fn table() -> Box<Table> {
    Box::new(Table { count: 0, spans: [(0, 0); SPANS], brk_start: 0, brk: 0, stack: (0, 0) })
}

#[test]
fn neighbours_merge_and_holes_split() {
    let mut t = table();
    assert!(t.insert(0x4000, 0x6000) && t.insert(0x8000, 0x9000) && t.insert(0x6000, 0x8000));
    assert_eq!(t.spans(), [(0x4000, 0x9000)]);
    assert!(t.remove(0x5000, 0x6000));
    assert_eq!(t.spans(), [(0x4000, 0x5000), (0x6000, 0x9000)]);
    assert!(t.remove(0x8000, 0x8000));
    assert_eq!(t.spans(), [(0x4000, 0x5000), (0x6000, 0x9000)]);
    assert!(t.remove(0x3000, 0x7000));
    assert_eq!(t.spans(), [(0x7000, 0x9000)]);
    assert!(t.is_free(0x4000, 0x7000) && !t.is_free(0x4000, 0x7001));
    assert!(t.is_taken(0x7000, 0x9000) && !t.is_taken(0x6fff, 0x9000));
    assert!(t.remove(0, usize::MAX));
    assert!(t.spans().is_empty());
}

#[test]
fn places_are_taken_from_the_top_and_packed() {
    let mut t = table();
    let first = t.find(0x3000, PAGE).unwrap();
    assert_eq!(first, RANGE.end - 0x3000);
    t.insert(first, RANGE.end);
    let second = t.find(0x1000, PAGE).unwrap();
    assert_eq!(second, first - 0x1000);
    t.insert(second, first);
    let huge = t.find(2 * HUGE, HUGE).unwrap();
    assert!(huge.is_multiple_of(HUGE) && huge + 2 * HUGE <= second && huge + 3 * HUGE > second);
    t.insert(huge, huge + 2 * HUGE);
    // The rest below the bound is used again by what is small.
    assert_eq!(t.find(0x1000, PAGE).unwrap(), second - 0x1000);
    t.remove(first, first + 0x1000);
    assert_eq!(t.find(0x1000, PAGE).unwrap(), first);
    assert!(t.find(RANGE.end - RANGE.start, PAGE).is_none());
    // Another range has nothing to do with it.
    let low = t.find_in(LOW, 0x3000, PAGE).unwrap();
    assert_eq!(low, LOW.end - 0x3000);
    t.insert(low, LOW.end);
    t.insert(0x40_0000, 0x50_0000);
    assert_eq!(t.find_in(LOW, 0x1000, PAGE).unwrap(), low - 0x1000);
    assert!(t.find_in(LOW, LOW.len() - 0x2000, PAGE).is_none());
}
