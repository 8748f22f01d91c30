//! Waiting without sleeping, for as long as nobody else needs the core.
//!
//! Counting runnable threads says whether there is a core to spare, not whether this thread is on
//! it. So a spinner yields every microsecond or two; when the core was given to another thread it
//! stops, because the thread that it waits for may be that other one.
#![forbid(unsafe_code)]

use crate::clock::Clock;

/// Looks between two yields; a pause takes some tens of nanoseconds.
const LOOKS_PER_YIELD: u32 = 32;
/// A yield that takes longer than the system call alone ran somebody else.
const CONTENDED_NS: u64 = 5_000;

/// One wait. Ask [`Spinner::goes_on`] after each look that found nothing.
#[derive(Debug)]
pub(crate) struct Spinner {
    clock: Clock,
    end_ns: u64,
    looks: u32,
}

impl Spinner {
    /// A wait of at most `budget_ns`.
    pub(crate) fn new(clock: Clock, budget_ns: u64) -> Self {
        Self {
            end_ns: clock.now_ns().saturating_add(budget_ns),
            clock,
            looks: 0,
        }
    }

    /// Pauses for a moment; whether to look again. Now and then asks `may_spin`, with the time.
    pub(crate) fn goes_on(&mut self, may_spin: impl FnOnce(u64) -> bool) -> bool {
        std::hint::spin_loop();
        self.looks += 1;
        if !self.looks.is_multiple_of(LOOKS_PER_YIELD) {
            return true;
        }
        let before_ns = self.clock.now_ns();
        if before_ns >= self.end_ns || !may_spin(before_ns) {
            return false;
        }
        std::thread::yield_now();
        self.clock.now_ns().saturating_sub(before_ns) < CONTENDED_NS
    }
}
