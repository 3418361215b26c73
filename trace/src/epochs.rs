//! Epochs of one-sided communication with a group: the messages by which its ranks synchronise
//! (docs/decisions/0027-windows.md).

/// Windows of a communicator that tags tell apart.
const WINDOWS: u32 = 1 << 22;

/// The tag of the events by which two ranks synchronise before and after one-sided communication: `MPI_Win_post` sends
/// one to each member of its group, which `MPI_Win_start` receives there, and so do `MPI_Win_complete` and `MPI_Win_wait`
/// (`closes`). `window` is its number among the windows that were made from its communicator. No message has such a tag.
pub const fn epoch_tag(window: u32, closes: bool) -> i32 {
    i32::MIN + 2 * (window % WINDOWS) as i32 + closes as i32
}

/// By how much an event with this tag changes the number of epochs that are open on its rank.
pub const fn epoch_change(tag: i32) -> i64 {
    match tag.wrapping_sub(i32::MIN) {
        of_epoch if (of_epoch as u32) < 2 * WINDOWS => 1 - 2 * (of_epoch & 1) as i64,
        _ => 0,
    }
}
