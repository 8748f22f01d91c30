//! Which threads outside the pool need a core now: queues at work, write threads.
//!
//! Each such thread has a seat, a word that it alone writes: 0 while it sleeps, [`RUNNING`] while it
//! works, else the time when it last did. A queue without requests in flight may be back in a
//! microsecond or never, so it counts for [`LINGER_NS`] more. Counting looks at all seats, so the
//! count is kept and refreshed by whoever asks when it is old.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam::utils::CachePadded;

/// Most threads told apart; further ones share a seat, and count as one.
const SEATS: usize = 256;
/// The word of a thread that works.
const RUNNING: u64 = u64::MAX;
/// How long a queue counts after it has last done something.
const LINGER_NS: u64 = 100_000;
/// How old a count may be before it is made again, for each seat in use.
const REFRESH_NS_PER_SEAT: u64 = 5_000;
const MIN_REFRESH_NS: u64 = 20_000;

/// The seats of one pool. Never allocates after its construction.
#[derive(Debug)]
pub(crate) struct Presence {
    seats: Box<[CachePadded<AtomicU64>]>,
    /// Seats below this have been used.
    used: AtomicUsize,
    free: Mutex<Vec<usize>>,
    /// The last count in the low 16 bits, and when it was made, in units of 1024 ns, in the others.
    counted: CachePadded<AtomicU64>,
}

/// A thread's place. Give it back with [`Presence::leave`].
#[derive(Debug)]
pub(crate) struct Seat {
    index: usize,
    /// What the thread last wrote, so that it writes changes only.
    word: u64,
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
        Seat { index, word: 0 }
    }

    pub(crate) fn leave(&self, seat: &mut Seat) {
        self.asleep(seat);
        if seat.index < SEATS - 1 {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.push(seat.index);
        }
    }

    /// The thread works.
    #[inline]
    pub(crate) fn running(&self, seat: &mut Seat) {
        if seat.word != RUNNING {
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

    /// Threads that need a core, by a count that is about as old as counting is expensive.
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

    /// Threads that need a core now.
    pub(crate) fn count_now(&self, now_ns: u64) -> u32 {
        let used = self.used.load(Ordering::Relaxed);
        let present = |seat: &&CachePadded<AtomicU64>| {
            let word = seat.load(Ordering::Relaxed);
            word == RUNNING || (word != 0 && word.saturating_add(LINGER_NS) > now_ns)
        };
        let count = self.seats[..used].iter().filter(present).count() as u64;
        self.counted
            .store((now_ns >> 10) << 16 | count, Ordering::Relaxed);
        count as u32
    }

    fn write(&self, seat: &mut Seat, word: u64) {
        seat.word = word;
        self.seats[seat.index].store(word, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counts_while_it_works_and_a_moment_longer() {
        let presence = Presence::new();
        let mut seat = presence.join();
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
        let mut seat = presence.join();
        presence.running(&mut seat);
        assert_eq!(presence.count(1_000_000), 1);
        presence.leave(&mut seat);
        assert_eq!(presence.count(1_010_000), 1, "still the old count");
        assert_eq!(presence.count(1_030_000), 0);
    }

    #[test]
    fn more_threads_than_seats_share_the_last() {
        let presence = Presence::new();
        let mut seats: Vec<_> = (0..SEATS + 10).map(|_| presence.join()).collect();
        seats.iter_mut().for_each(|seat| presence.running(seat));
        assert_eq!(presence.count_now(1), SEATS as u32);
        seats.iter_mut().for_each(|seat| presence.leave(seat));
        assert_eq!(presence.count_now(1), 0);
        assert_eq!(presence.join().index, SEATS - 2);
    }
}
