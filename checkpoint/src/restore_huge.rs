//! Huge pages of a restored memory: which there are to be on this machine, and making them.
use crate::memory::{self, HUGE, Mapping, MemoryError};
use crate::memory_kinds::{Kind, Kinds};
use phasecast_image::state::huge_stretches;
use phasecast_image::{Content, Flags, HUGE_PAGES, HugePolicy, PAGE, Region, Run, State};

/// The regions of a state with the huge pages that this machine would have given them. If it has the base's setting, these
/// are the base's.
pub(crate) fn as_here(state: &State) -> Vec<Region> {
    under(state, memory::huge_policy())
}

fn under(state: &State, here: HugePolicy) -> Vec<Region> {
    let mut regions = state.regions.clone();
    if here == state.huge_policy {
        return regions;
    }
    // The heap grows by less than a huge page, and the stack too: neither gets any at a first touch.
    let (heap, heap_end) = state.brk;
    let grows = |region: &Region| {
        let frame = (region.start..region.end()).contains(&state.frame);
        frame || region.flags.has(Flags::STACK) || (region.start < heap_end && region.end() > heap)
    };
    for region in &mut regions {
        let asked = region.flags.has(Flags::HUGE);
        match here {
            HugePolicy::Always if region.backing.is_some() || region.flags.0 & NEVER_HUGE != 0 || grows(region) => {}
            HugePolicy::Always => promote(region),
            HugePolicy::Madvise if asked => promote(region),
            _ => region.runs.iter_mut().for_each(|run| run.huge = false),
        }
    }
    regions
}

/// Regions that the kernel gives no huge pages.
const NEVER_HUGE: u16 = Flags::NO_HUGE | Flags::SHARED;

/// Makes every 2 MB of a region huge of which a part is there: the first touch would have done that.
fn promote(region: &mut Region) {
    let mut runs: Vec<Run> = Vec::new();
    let mut at = region.start / PAGE as u64;
    let end = region.end() / PAGE as u64;
    for run in std::mem::take(&mut region.runs) {
        let (mut left, mut done) = (run.pages, 0);
        while left > 0 {
            let block = at / HUGE_PAGES * HUGE_PAGES;
            let pages = left.min(block + HUGE_PAGES - at);
            let content = match run.content {
                Content::Data(first) => Content::Data(first + done),
                content => content,
            };
            runs.push(Run { pages, huge: run.huge, content });
            (at, left, done) = (at + pages, left - pages, done + pages);
        }
    }
    let mut at = region.start / PAGE as u64;
    let mut rest = &mut runs[..];
    while !rest.is_empty() {
        let block = at / HUGE_PAGES * HUGE_PAGES;
        let mut count = 0;
        let mut to = at;
        while count < rest.len() && to < block + HUGE_PAGES {
            to += rest[count].pages;
            count += 1;
        }
        let (these, others) = rest.split_at_mut(count);
        let own = these.iter().any(|run| matches!(run.content, Content::Data(_) | Content::PrivateZero));
        if own && block == at && block + HUGE_PAGES <= end {
            for run in these {
                let zero = !matches!(run.content, Content::Data(_));
                run.content = if zero { Content::PrivateZero } else { run.content };
                run.huge = true;
            }
        }
        (rest, at) = (others, to);
    }
    region.runs = runs;
}

/// Makes the huge pages of a region by touching each once.
pub(crate) fn make(region: &Region) {
    if !region.flags.has(Flags::HUGE) && memory::huge_policy() != HugePolicy::Always {
        for (from, to) in huge_stretches(region) {
            // SAFETY: a mapping of our own. If the kernel has no huge pages, the touches make small ones.
            unsafe { libc::madvise(from as *mut _, (to - from) as usize, libc::MADV_HUGEPAGE) };
        }
    }
    let mut at = region.start;
    for run in &region.runs {
        let end = at + run.pages * PAGE as u64;
        let blocks = (at / HUGE * HUGE..end).step_by(HUGE as usize);
        match run.content {
            _ if !run.huge => {}
            Content::SharedZero => blocks.for_each(touch_read),
            _ => blocks.for_each(touch_write),
        }
        at = end;
    }
}

/// How many bytes of the huge pages stand in such, and how many do not because the kernel had none.
pub(crate) fn count(regions: &[Region]) -> Result<(u64, u64), MemoryError> {
    let kinds = Kinds::open()?;
    let (mut got, mut refused) = (0, 0);
    for (start, end) in regions.iter().flat_map(huge_stretches) {
        let found = kinds.of(&Mapping { start, end, ..Mapping::default() })?;
        let huge = |kind: &Kind| matches!(kind, Kind::Own { huge: true } | Kind::Zero { huge: true });
        let here: u64 = found.iter().filter(|(_, kind)| huge(kind)).map(|(pages, _)| pages * PAGE as u64).sum();
        got += here;
        refused += end - start - here;
    }
    Ok((got, refused))
}

/// Has the kernel back memory that was just mapped (all zero) with pages of its own or, if it is only read, the pages of
/// zeros.
pub(crate) fn touch(start: u64, length: u64, write: bool) {
    let advice = if write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
    // SAFETY: a mapping of our own; its content stays.
    if length > PAGE as u64 && unsafe { libc::madvise(start as *mut _, length as usize, advice) } == 0 {
        return;
    }
    // One page is faster so, and kernels before 5.14 know no other way.
    for address in (start..start + length).step_by(PAGE) {
        if write { touch_write(address) } else { touch_read(address) }
    }
}

fn touch_read(address: u64) {
    // SAFETY: the address is in a mapping that was just made.
    unsafe { (address as *const u8).read_volatile() };
}

pub(crate) fn touch_write(address: u64) {
    // SAFETY: the address is in a mapping that was just made, and zero as all of it.
    unsafe { (address as *mut u8).write_volatile(0) };
}

/// The process's switch for huge pages, which is put back as it was.
pub(crate) struct Switch(libc::c_int);

impl Switch {
    pub fn take() -> Switch {
        // SAFETY: asks for a number.
        Switch(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) })
    }

    pub fn set_off(&self, off: bool) {
        self.set(libc::c_int::from(off));
    }

    fn set(&self, off: libc::c_int) {
        // SAFETY: sets a number. A kernel without the switch has no huge pages either.
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(off != 0), 0, 0, 0) };
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.set(self.0.max(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phasecast_image::Protection;

    fn region(start: u64, flags: u16, runs: &[(u64, bool, Content)]) -> Region {
        let runs: Vec<Run> = runs.iter().map(|&(pages, huge, content)| Run { pages, huge, content }).collect();
        let length = runs.iter().map(|run| run.pages).sum::<u64>() * PAGE as u64;
        let (protection, flags) = (Protection(3), Flags(flags));
        Region { start, length, protection, flags, backing: None, name: String::new(), runs }
    }

    #[test]
    fn a_machine_of_another_setting_gives_other_pages() {
        use Content::{Data, PrivateZero, SharedZero, Untouched};
        const BASE: u64 = 0x2000_0000_0000;
        let mixed =
            [(512 + 3, false, Untouched), (2, false, Data(7)), (100, false, SharedZero), (1500, false, Untouched)];
        let regions = vec![
            region(BASE - 4096, 0, &[(1, false, Data(1)), (513, false, Data(3)), (600, false, Untouched)]),
            region(BASE + 4 * HUGE, 0, &mixed),
            region(BASE + 40 * HUGE, Flags::HUGE, &[(512, true, Data(20))]),
            region(BASE + 44 * HUGE, Flags::NO_HUGE, &[(512, false, Data(20))]),
            region(BASE + 50 * HUGE, 0, &[(512, false, Data(20))]),
        ];
        let huge = HugePolicy::Madvise;
        let brk = (BASE + 50 * HUGE, BASE + 51 * HUGE);
        let state = State { size: 1, regions, huge_policy: huge, brk, ..State::default() };
        assert_eq!(under(&state, HugePolicy::Madvise), state.regions);
        assert!(under(&state, HugePolicy::Never).iter().all(|region| huge_stretches(region).is_empty()));
        let always = State { regions: under(&state, HugePolicy::Always), ..state };
        always.check().unwrap();
        let stretches: Vec<_> = always.regions.iter().map(huge_stretches).collect();
        // The second block of the first region has only one page of data, and is whole; the first begins before a bound.
        assert_eq!(stretches[0], [(BASE, BASE + 2 * HUGE)]);
        assert_eq!(stretches[1], [(BASE + 5 * HUGE, BASE + 6 * HUGE)]);
        assert_eq!(stretches[2..], [vec![(BASE + 40 * HUGE, BASE + 41 * HUGE)], vec![], vec![]]);
        let contents: Vec<_> = always.regions[1].runs.iter().map(|run| (run.pages, run.content)).collect();
        let expected = [(512, Untouched), (3, PrivateZero), (2, Data(7)), (100, PrivateZero), (407, PrivateZero)];
        assert_eq!(contents[..5], expected);
        let contents: Vec<_> = always.regions[0].runs.iter().map(|run| (run.pages, run.content)).collect();
        assert_eq!(contents[..4], [(1, Data(1)), (512, Data(3)), (1, Data(515)), (511, PrivateZero)]);
    }
}
