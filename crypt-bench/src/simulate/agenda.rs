//! What is going to happen, in order of time; in the order of entry where times are the same, so that a
//! run is the same each time.

#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A thread of the simulation.
pub(super) type Actor = usize;

/// Something that happens at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The thread goes on: its work of some time is over, or its spin. Nothing where the thread has
    /// begun something else since (`epoch`).
    Run { actor: Actor, epoch: u32 },
    /// The thread's wake-up arrives.
    Wake { actor: Actor },
    /// The device has finished an operation of the thread.
    Device { actor: Actor, token: u64 },
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, time_ns: u64, event: Event) {
        self.sequence += 1;
        self.entries.push(Reverse((time_ns, self.sequence, event)));
    }

    pub(super) fn next(&mut self) -> Option<(u64, Event)> {
        let Reverse((time_ns, _, event)) = self.entries.pop()?;
        Some((time_ns, event))
    }

    /// Whether nothing happens up to and at `time_ns`.
    pub(super) fn is_free_until(&self, time_ns: u64) -> bool {
        self.entries
            .peek()
            .is_none_or(|Reverse((next_ns, ..))| *next_ns > time_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_then_of_entry() {
        let mut agenda = Agenda::default();
        for (time_ns, actor) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            agenda.add(time_ns, Event::Wake { actor });
        }
        assert!(agenda.is_free_until(2) && !agenda.is_free_until(3));
        let order: Vec<_> = std::iter::from_fn(|| agenda.next()).collect();
        let wake = |time_ns, actor| (time_ns, Event::Wake { actor });
        assert_eq!(order, [wake(3, 1), wake(3, 3), wake(5, 0), wake(5, 2)]);
        assert!(agenda.is_free_until(u64::MAX));
    }
}
