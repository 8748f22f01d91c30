//! What the workers and their queues agree by: atomics, threads that park, and the bounded queue.
//!
//! Usually those of the standard library and of crossbeam. Under `--cfg loom` they are loom's, which runs the
//! models of `model.rs` through every order of events that the memory model allows; loom can't see into crossbeam,
//! so a stub stands for its queue.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
mod real {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering, fence,
    };
    pub(crate) use std::thread::{Thread, current, park};

    pub(crate) use crossbeam::queue::ArrayQueue;

    use crossbeam::utils::Backoff;

    /// How often a worker looks for its next part before it counts as idle: under a microsecond.
    pub(crate) const LOOKS_BEFORE_IDLE: u32 = 12;

    /// A wait for another thread that is about to do something.
    #[derive(Default)]
    pub(crate) struct Patience(Backoff);

    impl Patience {
        pub(crate) fn wait(&self) {
            if self.0.is_completed() {
                std::thread::sleep(std::time::Duration::from_micros(50));
            } else {
                self.0.snooze();
            }
        }
    }
}

#[cfg(loom)]
mod modelled {
    use std::fmt;
    use std::sync::{Mutex, PoisonError};

    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering, fence,
    };
    pub(crate) use loom::thread::{Thread, current, park};

    /// More looks are more of the same to a model.
    pub(crate) const LOOKS_BEFORE_IDLE: u32 = 1;

    #[derive(Default)]
    pub(crate) struct Patience;

    impl Patience {
        pub(crate) fn wait(&self) {
            loom::thread::yield_now();
        }
    }

    const EMPTY: u8 = 0;
    const CLAIMED: u8 = 1;
    const FULL: u8 = 2;

    /// A stub of crossbeam's bounded queue that promises less: no order, and nothing but that whoever takes a value sees
    /// what its giver did before. Like the original it fences before it says that there is nothing to take.
    pub(crate) struct ArrayQueue<T> {
        slots: Box<[(AtomicU8, Mutex<Option<T>>)]>,
    }

    impl<T> fmt::Debug for ArrayQueue<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("ArrayQueue").finish_non_exhaustive()
        }
    }

    impl<T> ArrayQueue<T> {
        pub(crate) fn new(capacity: usize) -> Self {
            let slot = |_| (AtomicU8::new(EMPTY), Mutex::new(None));
            Self {
                slots: (0..capacity).map(slot).collect(),
            }
        }

        pub(crate) fn push(&self, value: T) -> Result<(), T> {
            match self.claim(EMPTY, Ordering::Acquire) {
                Some((state, place)) => {
                    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                    state.store(FULL, Ordering::Release);
                    Ok(())
                }
                None => Err(value),
            }
        }

        pub(crate) fn pop(&self) -> Option<T> {
            let claimed = self.claim(FULL, Ordering::Acquire).or_else(|| {
                fence(Ordering::SeqCst);
                self.claim(FULL, Ordering::Acquire)
            });
            let (state, place) = claimed?;
            let value = place.lock().unwrap_or_else(PoisonError::into_inner).take();
            state.store(EMPTY, Ordering::Release);
            value
        }

        pub(crate) fn len(&self) -> usize {
            let is_full = |state: &AtomicU8| state.load(Ordering::Relaxed) == FULL;
            self.slots
                .iter()
                .filter(|(state, _)| is_full(state))
                .count()
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.len() == 0
        }

        pub(crate) fn capacity(&self) -> usize {
            self.slots.len()
        }

        fn claim(&self, from: u8, order: Ordering) -> Option<(&AtomicU8, &Mutex<Option<T>>)> {
            let slot = self.slots.iter().find(|(state, _)| {
                let found = state.load(Ordering::Relaxed) == from;
                found
                    && state
                        .compare_exchange(from, CLAIMED, order, Ordering::Relaxed)
                        .is_ok()
            });
            slot.map(|(state, place)| (state, place))
        }
    }
}

#[cfg(loom)]
pub(crate) use modelled::*;
#[cfg(not(loom))]
pub(crate) use real::*;
