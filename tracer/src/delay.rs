//! Delays before calls: `phasecast stability` perturbs a program's time with them (seed 000, section 3.2.2). What is to be
//! delayed stands in a file ([`phasecast_trace::delays`]). Where there is none, a call pays for one look at a flag.
use crate::{clock, finish};
use phasecast_trace::delays::{Delay, VARIABLE, parse};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

static WANTED: AtomicBool = AtomicBool::new(false);
static PLACES: OnceLock<Vec<Place>> = OnceLock::new();
/// A moment in units and ns: with another, the length of a unit.
static START: OnceLock<(u64, u64)> = OnceLock::new();
/// Calls until modules that were not there are looked for again; the wait doubles each time.
static AGAIN: Mutex<(u64, u64)> = Mutex::new((1, 1));

/// A place whose calls are delayed.
struct Place {
    delay: Delay,
    /// Where its calls return to; 0 while its module is not there.
    address: AtomicUsize,
    calls: AtomicU64,
}

/// Whether any call of this rank is to be delayed.
#[inline(always)]
pub fn wanted() -> bool {
    WANTED.load(Relaxed)
}

/// Reads the delays of this rank, if there is a file of them.
///
/// # Errors
/// A sentence if it cannot be read.
pub fn load(rank: u32) -> Result<(), String> {
    let Some(path) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let cannot = |error: &dyn std::fmt::Display| {
        format!("the delays in {} cannot be read ({error})", Path::new(&path).display())
    };
    let text = std::fs::read_to_string(&path).map_err(|error| cannot(&error))?;
    let delays = parse(&text).map_err(|error| cannot(&error))?;
    let own = delays.into_iter().filter(|delay| delay.rank == rank);
    let places: Vec<Place> =
        own.map(|delay| Place { delay, address: AtomicUsize::new(0), calls: AtomicU64::new(0) }).collect();
    START.get_or_init(clock::pair);
    let places = PLACES.get_or_init(|| places);
    find(places);
    WANTED.store(!places.is_empty(), Relaxed);
    Ok(())
}

/// Gives places their addresses, as far as their modules are there.
fn find(places: &[Place]) {
    let modules = finish::modules();
    for place in places.iter().filter(|place| place.address.load(Relaxed) == 0) {
        let of_name = |path: &str| Path::new(path).file_name().is_some_and(|name| *name == *place.delay.module);
        let address = modules.iter().filter(|module| of_name(&module.3)).find_map(|(from, to, at, _)| {
            let address = from.checked_add(place.delay.offset.checked_sub(*at)?)?;
            (address < *to).then_some(address)
        });
        if let Some(address) = address {
            place.address.store(address as usize, Relaxed);
        }
    }
}

/// A call that returns to `site` is about to be made; the one before it returned at `last` (units).
#[cold]
#[inline(never)]
pub fn before(site: usize, last: u64) {
    let Some(places) = PLACES.get() else { return };
    let known = |place: &&Place| place.address.load(Relaxed) == site;
    let found = places.iter().find(known).or_else(|| {
        places.iter().any(|place| place.address.load(Relaxed) == 0).then(|| look_again(places))?;
        places.iter().find(known)
    });
    let Some(place) = found else { return };
    if place.calls.fetch_add(1, Relaxed) % place.delay.every != 0 {
        return;
    }
    let share = if place.delay.share > 0.0 { place.delay.share * block_ns(last) } else { 0.0 };
    let ns = place.delay.fixed_ns + (share as u64).min(phasecast_trace::delays::LONGEST_NS);
    std::thread::sleep(Duration::from_nanos(ns));
}

/// How long ago that was, in ns.
fn block_ns(last: u64) -> f64 {
    let (Some(&(units, ns)), (now, now_ns)) = (START.get(), clock::pair()) else { return 0.0 };
    let length = now_ns.saturating_sub(ns) as f64 / now.saturating_sub(units).max(1) as f64;
    now.saturating_sub(last) as f64 * length
}

/// Looks for modules that were loaded later, ever less often.
fn look_again(places: &[Place]) {
    let mut again = AGAIN.lock().unwrap_or_else(PoisonError::into_inner);
    again.0 -= 1;
    if again.0 == 0 {
        *again = (again.1 * 2, again.1 * 2);
        find(places);
    }
}
