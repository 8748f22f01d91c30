//! How many cores the threads outside the pool need now: queues at work, write threads.
//!
//! Each such thread has a seat, a word that it alone writes: 0 while it sleeps, [`RUNNING`] while it
//! works, else the time when it last did. A queue without requests in flight may be back in a
//! microsecond or never, so it counts for [`LINGER_NS`] more. Counting looks at all seats, so the
//! count is kept and refreshed by whoever asks when it is old.
//!
//! What counts is cores, not threads: a thread that may run on one CPU only shares it with every other
//! that is bound to the same one, and together they keep one core busy. Where a thread may run is looked up
//! once, when it first works.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam::utils::CachePadded;
use rustix::thread::{CpuSet, sched_getaffinity};

/// Most threads told apart; further ones share a seat, and count as one.
const SEATS: usize = 256;
/// The word of a thread that works.
const RUNNING: u64 = u64::MAX;
/// How long a queue counts after it has last done something.
const LINGER_NS: u64 = 100_000;
/// How old a count may be before it is made again, for each seat in use.
const REFRESH_NS_PER_SEAT: u64 = 5_000;
const MIN_REFRESH_NS: u64 = 20_000;

/// The CPU of a thread that may run on several.
const ANY_CPU: u32 = u32::MAX;

/// The seats of one pool. Never allocates after its construction.
#[derive(Debug)]
pub(crate) struct Presence {
    seats: Box<[CachePadded<Place>]>,
    /// Seats below this have been used.
    used: AtomicUsize,
    free: Mutex<Vec<usize>>,
    /// The last count in the low 16 bits, and when it was made, in units of 1024 ns, in the others.
    counted: CachePadded<AtomicU64>,
}

/// What others see of a seat.
#[derive(Debug)]
struct Place {
    word: AtomicU64,
    /// The only CPU that the thread may run on, or [`ANY_CPU`].
    cpu: AtomicU32,
}

/// A thread's place. Give it back with [`Presence::leave`].
#[derive(Debug)]
pub(crate) struct Seat {
    index: usize,
    /// What the thread last wrote, so that it writes changes only.
    word: u64,
    /// The only CPU that it may run on, or [`ANY_CPU`]; `None` before it first works.
    cpu: Option<u32>,
}

impl Presence {
    pub(crate) fn new() -> Self {
        Self {
            seats: (0..SEATS).map(|_| CachePadded::default()).collect(),
            used: AtomicUsize::new(0),
            // The last seat is the shared one.
            free: Mutex::new((0..SEATS - 1).rev().collect()),
            counted: CachePadded::default(),
        }
    }

    /// A seat for a thread that does nothing yet.
    pub(crate) fn join(&self) -> Seat {
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let index = free.unwrap_or(SEATS - 1);
        self.used.fetch_max(index + 1, Ordering::Relaxed);
        Seat {
            index,
            word: 0,
            cpu: None,
        }
    }

    pub(crate) fn leave(&self, seat: &mut Seat) {
        self.asleep(seat);
        if seat.index < SEATS - 1 {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.push(seat.index);
        }
    }

    /// The calling thread, whose seat it is, works.
    #[inline]
    pub(crate) fn running(&self, seat: &mut Seat) {
        if seat.word != RUNNING {
            if seat.cpu.is_none() {
                self.bind(seat, only_cpu());
            }
            self.write(seat, RUNNING);
        }
    }

    /// The thread had something to do until `now_ns`, and may be back.
    #[inline]
    pub(crate) fn pausing(&self, seat: &mut Seat, now_ns: u64) {
        self.write(seat, now_ns.min(RUNNING - 1));
    }

    /// The thread sleeps, or is gone.
    pub(crate) fn asleep(&self, seat: &mut Seat) {
        self.write(seat, 0);
    }

    /// Whether another thread that works is bound to the same CPU.
    pub(crate) fn is_crowded(&self, seat: &Seat) -> bool {
        let Some(cpu) = seat.cpu.filter(|&cpu| cpu != ANY_CPU) else {
            return false;
        };
        let used = self.used.load(Ordering::Relaxed);
        let mut others = (0..used).filter(|&index| index != seat.index);
        others.any(|index| {
            let place = &self.seats[index];
            place.cpu.load(Ordering::Relaxed) == cpu
                && place.word.load(Ordering::Relaxed) == RUNNING
        })
    }

    /// Cores that are needed, by a count that is about as old as counting is expensive.
    #[inline]
    pub(crate) fn count(&self, now_ns: u64) -> u32 {
        let counted = self.counted.load(Ordering::Relaxed);
        let seats = self.used.load(Ordering::Relaxed) as u64;
        let keeps_ns = MIN_REFRESH_NS.max(seats * REFRESH_NS_PER_SEAT);
        if now_ns.saturating_sub((counted >> 16) << 10) < keeps_ns {
            return (counted & 0xFFFF) as u32;
        }
        self.count_now(now_ns)
    }

    /// Cores that are needed now.
    pub(crate) fn count_now(&self, now_ns: u64) -> u32 {
        let used = self.used.load(Ordering::Relaxed);
        let (mut bound, mut others) = (CpuSet::new(), 0_u32);
        for place in self.seats[..used].iter().filter(|seat| seat.counts(now_ns)) {
            match place.cpu.load(Ordering::Relaxed) {
                ANY_CPU => others += 1,
                cpu => bound.set(cpu as usize),
            }
        }
        let count = others + bound.count();
        self.counted
            .store((now_ns >> 10) << 16 | u64::from(count), Ordering::Relaxed);
        count
    }

    /// Says where the thread may run. Nothing is known of those that share the last seat.
    fn bind(&self, seat: &mut Seat, cpu: u32) {
        let cpu = if seat.index < SEATS - 1 { cpu } else { ANY_CPU };
        seat.cpu = Some(cpu);
        self.seats[seat.index].cpu.store(cpu, Ordering::Relaxed);
    }

    fn write(&self, seat: &mut Seat, word: u64) {
        seat.word = word;
        self.seats[seat.index].word.store(word, Ordering::Relaxed);
    }
}

impl Place {
    fn counts(&self, now_ns: u64) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word == RUNNING || (word != 0 && word.saturating_add(LINGER_NS) > now_ns)
    }
}

impl Default for Place {
    fn default() -> Self {
        Self {
            word: AtomicU64::new(0),
            cpu: AtomicU32::new(ANY_CPU),
        }
    }
}

/// The CPU that the calling thread is bound to, or [`ANY_CPU`].
fn only_cpu() -> u32 {
    match sched_getaffinity(None) {
        Ok(cpus) if cpus.count() == 1 => {
            let only = (0..CpuSet::MAX_CPU).find(|&cpu| cpus.is_set(cpu));
            only.map_or(ANY_CPU, |cpu| cpu as u32)
        }
        _ => ANY_CPU,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seat of a thread that is bound to `cpu`.
    fn join(presence: &Presence, cpu: u32) -> Seat {
        let mut seat = presence.join();
        presence.bind(&mut seat, cpu);
        seat
    }

    #[test]
    fn a_thread_counts_while_it_works_and_a_moment_longer() {
        let presence = Presence::new();
        let mut seat = join(&presence, ANY_CPU);
        assert_eq!(presence.count_now(1), 0);
        presence.running(&mut seat);
        assert_eq!(presence.count_now(u64::MAX), 1);
        presence.pausing(&mut seat, 1_000_000);
        assert_eq!(presence.count_now(1_000_000 + LINGER_NS - 1), 1);
        assert_eq!(presence.count_now(1_000_000 + LINGER_NS), 0);
        presence.running(&mut seat);
        presence.asleep(&mut seat);
        assert_eq!(presence.count_now(1), 0);
    }

    #[test]
    fn a_count_is_kept_for_a_while() {
        let presence = Presence::new();
        let mut seat = join(&presence, ANY_CPU);
        presence.running(&mut seat);
        assert_eq!(presence.count(1_000_000), 1);
        presence.leave(&mut seat);
        assert_eq!(presence.count(1_010_000), 1, "still the old count");
        assert_eq!(presence.count(1_030_000), 0);
    }

    #[test]
    fn more_threads_than_seats_share_the_last() {
        let presence = Presence::new();
        let mut seats: Vec<_> = (0..SEATS + 10).map(|_| join(&presence, ANY_CPU)).collect();
        seats.iter_mut().for_each(|seat| presence.running(seat));
        assert_eq!(presence.count_now(1), SEATS as u32);
        seats.iter_mut().for_each(|seat| presence.leave(seat));
        assert_eq!(presence.count_now(1), 0);
        assert_eq!(presence.join().index, SEATS - 2);
    }

    #[test]
    fn threads_that_are_bound_to_one_cpu_keep_one_core_busy() {
        let presence = Presence::new();
        let mut seats = [0, 0, 1000, ANY_CPU, ANY_CPU].map(|cpu| join(&presence, cpu));
        seats.iter_mut().for_each(|seat| presence.running(seat));
        assert_eq!(presence.count_now(1), 4);
        assert_eq!(
            seats.each_ref().map(|seat| presence.is_crowded(seat)),
            [true, true, false, false, false]
        );
        presence.asleep(&mut seats[0]);
        assert_eq!(presence.count_now(1), 4, "the other one is there still");
        assert!(!presence.is_crowded(&seats[1]));
        presence.asleep(&mut seats[1]);
        assert_eq!(presence.count_now(1), 3);
    }

    #[test]
    fn a_seat_that_is_used_again_is_bound_anew() {
        let presence = Presence::new();
        let mut seat = join(&presence, 0);
        presence.leave(&mut seat);
        let mut seats = [0, ANY_CPU].map(|cpu| join(&presence, cpu));
        seats.iter_mut().for_each(|seat| presence.running(seat));
        presence.leave(&mut seats[0]);
        let mut seat = join(&presence, ANY_CPU);
        presence.running(&mut seat);
        assert_eq!(presence.count_now(1), 2);
    }

    #[test]
    fn a_thread_is_asked_where_it_may_run_when_it_first_works() {
        let presence = Presence::new();
        let count = std::thread::scope(|scope| {
            let bound = || {
                let mut seat = presence.join();
                let mut one = CpuSet::new();
                let allowed = sched_getaffinity(None).unwrap();
                let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu));
                one.set(cpu.unwrap());
                rustix::thread::sched_setaffinity(None, &one).unwrap();
                presence.running(&mut seat);
                seat
            };
            let threads = [(); 3].map(|()| scope.spawn(bound));
            let seats = threads.map(|thread| thread.join().unwrap());
            (presence.count_now(1), seats.map(|seat| seat.word))
        });
        assert_eq!(count, (1, [RUNNING; 3]));
    }
}
