//! What the parts of one task leave behind: how many still run, the first error, and the times.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::error::Errno;

/// Start time of a task of which no part has started.
const NOT_STARTED: u64 = u64::MAX;

/// How one part ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartEnd {
    pub(crate) started_ns: u64,
    pub(crate) cipher_ns: u64,
    pub(crate) result: Result<(), Errno>,
}

impl PartEnd {
    /// The end of a part that was never run.
    pub(crate) const CANCELED: Self = Self {
        started_ns: NOT_STARTED,
        cipher_ns: 0,
        result: Err(Errno::ECANCELED),
    };
}

/// The shared record of one task.
#[derive(Debug)]
pub(crate) struct Record {
    remaining: AtomicU32,
    /// First error of any part; 0 for none.
    errno: AtomicI32,
    cipher_ns: AtomicU64,
    started_ns: AtomicU64,
}

impl Record {
    pub(crate) const fn new() -> Self {
        Self {
            remaining: AtomicU32::new(0),
            errno: AtomicI32::new(0),
            cipher_ns: AtomicU64::new(0),
            started_ns: AtomicU64::new(NOT_STARTED),
        }
    }

    /// Starts over for a task of `parts` parts. Whatever carries the parts publishes it.
    pub(crate) fn reset(&self, parts: u32) {
        self.remaining.store(parts, Ordering::Relaxed);
        self.errno.store(0, Ordering::Relaxed);
        self.cipher_ns.store(0, Ordering::Relaxed);
        self.started_ns.store(NOT_STARTED, Ordering::Relaxed);
    }

    /// Enters a part that has ended; whether it was the last. All that the others did is visible to
    /// the thread that gets `true`.
    pub(crate) fn enter(&self, end: PartEnd) -> bool {
        if let Err(errno) = end.result {
            let order = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = self
                .errno
                .compare_exchange(0, errno.raw(), order.0, order.1);
        }
        // Where only this part is left nobody else writes, so that the usual task of one part needs
        // no atomic update.
        if self.remaining.load(Ordering::Acquire) == 1 {
            let cipher_ns = self.cipher_ns() + end.cipher_ns;
            self.cipher_ns.store(cipher_ns, Ordering::Relaxed);
            let started_ns = self.started_ns.load(Ordering::Relaxed).min(end.started_ns);
            self.started_ns.store(started_ns, Ordering::Relaxed);
            return true;
        }
        self.cipher_ns.fetch_add(end.cipher_ns, Ordering::Relaxed);
        self.started_ns.fetch_min(end.started_ns, Ordering::Relaxed);
        self.remaining.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The first error of any part.
    pub(crate) fn result(&self) -> Result<(), Errno> {
        match self.errno.load(Ordering::Relaxed) {
            0 => Ok(()),
            errno => Err(Errno::from_raw(errno)),
        }
    }

    /// Cipher time, summed over the parts.
    pub(crate) fn cipher_ns(&self) -> u64 {
        self.cipher_ns.load(Ordering::Relaxed)
    }

    /// From `handed_off_ns` to the start of the first part; 0 where none has started.
    pub(crate) fn wait_ns(&self, handed_off_ns: u64) -> u64 {
        match self.started_ns.load(Ordering::Relaxed) {
            NOT_STARTED => 0,
            started_ns => started_ns.saturating_sub(handed_off_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(started_ns: u64, result: Result<(), Errno>) -> PartEnd {
        PartEnd {
            started_ns,
            cipher_ns: 10,
            result,
        }
    }

    #[test]
    fn the_last_part_is_told_and_the_first_error_wins() {
        let record = Record::new();
        record.reset(3);
        assert!(!record.enter(end(70, Err(Errno::EIO))));
        assert!(!record.enter(end(50, Err(Errno::EINVAL))));
        assert!(record.enter(PartEnd::CANCELED));
        assert_eq!(record.result(), Err(Errno::EIO));
        assert_eq!((record.cipher_ns(), record.wait_ns(40)), (20, 10));
        record.reset(1);
        assert!(record.enter(end(90, Ok(()))));
        assert_eq!(record.result(), Ok(()));
        assert_eq!((record.cipher_ns(), record.wait_ns(40)), (10, 50));
    }
}
