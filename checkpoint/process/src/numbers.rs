//! Devices and numbers of files: a restarted program is told of those that it had open at the cut what it was told before,
//! since what stands for them now is a copy, or another machine's.
use crate::own::Guarded;
use crate::same::Number;
use crate::sys::failed;
use crate::trap::Call;

/// As many files have their old numbers.
const MOST: usize = 1024;

struct Numbers {
    count: usize,
    /// What each file has here, and what it had.
    pairs: [(Number, Number); MOST],
}

static TABLE: Guarded<Numbers> = Guarded::new(Numbers { count: 0, pairs: [((0, 0), (0, 0)); MOST] });

impl Numbers {
    /// What is told of a file that has this number here. One that happens to have the old number of another gets the new one
    /// of that.
    fn told(&self, here: Number) -> Number {
        let pairs = self.pairs.get(..self.count).unwrap_or(&[]);
        let old = pairs.iter().find(|pair| pair.0 == here).map(|pair| pair.1);
        old.or_else(|| pairs.iter().find(|pair| pair.1 == here).map(|pair| pair.0)).unwrap_or(here)
    }
}

/// The file that has this number here is to have its old one.
pub(crate) fn add(here: Number, old: Number) {
    let mut table = TABLE.lock();
    let count = table.count;
    if table.told(here) != old
        && let Some(pair) = table.pairs.get_mut(count)
    {
        *pair = (here, old);
        table.count += 1;
    }
}

/// The program is gone: files have the numbers that they have.
pub(crate) fn clear() {
    TABLE.lock().count = 0;
}

/// Puts old numbers into what a call that has succeeded tells about a file.
pub(crate) unsafe fn translate(call: &Call, result: isize) {
    let args = call.args;
    let told = |here| TABLE.lock_blocked().told(here);
    if failed(result) {
        return;
    }
    // SAFETY: the program's pointer, which the kernel has just written to.
    unsafe {
        let place = match call.number {
            libc::SYS_stat | libc::SYS_lstat | libc::SYS_fstat => args[1],
            libc::SYS_newfstatat => args[2],
            libc::SYS_statx => {
                let place = args[4] as *mut libc::statx;
                let mut about = place.read_unaligned();
                let device = libc::makedev(about.stx_dev_major, about.stx_dev_minor);
                let (device, number) = told((device, about.stx_ino));
                (about.stx_dev_major, about.stx_dev_minor) = (libc::major(device), libc::minor(device));
                about.stx_ino = number;
                place.write_unaligned(about);
                return;
            }
            _ => return,
        };
        let place = place as *mut libc::stat;
        let mut about = place.read_unaligned();
        (about.st_dev, about.st_ino) = told((about.st_dev, about.st_ino));
        place.write_unaligned(about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_old_numbers_and_no_two_have_one() {
        let mut table = Box::new(Numbers { count: 2, pairs: [((0, 0), (0, 0)); MOST] });
        table.pairs[..2].copy_from_slice(&[((1, 20), (1, 10)), ((1, 21), (9, 11))]);
        let told: Vec<Number> = [(1, 20), (1, 21), (1, 10), (9, 11), (1, 22)].map(|here| table.told(here)).into();
        assert_eq!(told, [(1, 10), (9, 11), (1, 20), (1, 21), (1, 22)]);
        table.count = 0;
        assert_eq!(table.told((1, 20)), (1, 20));
    }
}
