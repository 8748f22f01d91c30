//! What the parts of one task leave behind: how many still run, the first error, how much was written,
//! and the times.
//!
//! Parts that write do so in any order. The result of a task is that of one write: the bytes from its
//! start to the first gap. What was written beyond a gap is written once more, when the pipeline goes on
//! from there.
#![forbid(unsafe_code)]

use super::cut::Piece;
use super::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use crate::error::Errno;

/// Start time of a task of which no part has started.
const NOT_STARTED: u64 = u64::MAX;

/// How one part ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartEnd {
    pub(crate) started_ns: u64,
    pub(crate) cipher_ns: u64,
    pub(crate) result: Result<(), Errno>,
    /// What it wrote itself.
    pub(crate) write: Option<PartWrite>,
}

/// A part's own write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartWrite {
    pub(crate) piece: Piece,
    pub(crate) result: Result<u64, Errno>,
    pub(crate) device_ns: u64,
}

impl PartEnd {
    /// The end of a part that was never run.
    pub(crate) const CANCELED: Self = Self {
        started_ns: NOT_STARTED,
        cipher_ns: 0,
        result: Err(Errno::ECANCELED),
        write: None,
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
    /// First error of any write; 0 for none.
    write_errno: AtomicI32,
    /// Where the first gap in what was written starts.
    written_bytes: AtomicU64,
    device_ns: AtomicU64,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self {
            remaining: AtomicU32::new(0),
            errno: AtomicI32::new(0),
            cipher_ns: AtomicU64::new(0),
            started_ns: AtomicU64::new(NOT_STARTED),
            write_errno: AtomicI32::new(0),
            written_bytes: AtomicU64::new(0),
            device_ns: AtomicU64::new(0),
        }
    }

    /// Starts over for a task of `parts` parts and `len_bytes`. Whatever carries the parts publishes
    /// it.
    pub(crate) fn reset(&self, parts: u32, len_bytes: u64) {
        self.remaining.store(parts, Ordering::Relaxed);
        self.errno.store(0, Ordering::Relaxed);
        self.cipher_ns.store(0, Ordering::Relaxed);
        self.started_ns.store(NOT_STARTED, Ordering::Relaxed);
        self.write_errno.store(0, Ordering::Relaxed);
        self.written_bytes.store(len_bytes, Ordering::Relaxed);
        self.device_ns.store(0, Ordering::Relaxed);
    }

    /// Enters a part that has ended; whether it was the last. All that the others did is visible to
    /// the thread that gets `true`.
    pub(crate) fn enter(&self, end: PartEnd) -> bool {
        if let Err(errno) = end.result {
            set_first(&self.errno, errno);
        }
        if let Some(write) = &end.write {
            self.enter_write(write);
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

    fn enter_write(&self, write: &PartWrite) {
        self.device_ns.fetch_add(write.device_ns, Ordering::Relaxed);
        let len_bytes = u64::from(write.piece.len_bytes);
        match write.result {
            Ok(bytes) if bytes == len_bytes => {}
            Ok(bytes) if bytes < len_bytes => {
                let gap = u64::from(write.piece.offset_bytes) + bytes;
                self.written_bytes.fetch_min(gap, Ordering::Relaxed);
            }
            // No device writes more than it is given.
            Ok(_) => set_first(&self.write_errno, Errno::EIO),
            Err(errno) => set_first(&self.write_errno, errno),
        }
    }

    /// What the parts wrote, as one write: the bytes before the first gap, or the first error.
    pub(crate) fn written(&self) -> Result<u64, Errno> {
        match self.write_errno.load(Ordering::Relaxed) {
            0 => Ok(self.written_bytes.load(Ordering::Relaxed)),
            errno => Err(Errno::from_raw(errno)),
        }
    }

    /// Time of the device, summed over the parts that wrote.
    pub(crate) fn device_ns(&self) -> u64 {
        self.device_ns.load(Ordering::Relaxed)
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

fn set_first(cell: &AtomicI32, errno: Errno) {
    let _ = cell.compare_exchange(0, errno.raw(), Ordering::Relaxed, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(started_ns: u64, result: Result<(), Errno>) -> PartEnd {
        PartEnd {
            started_ns,
            cipher_ns: 10,
            result,
            write: None,
        }
    }

    /// What a task of three parts of 1000 bytes has written.
    fn written(results: [Result<u64, Errno>; 3]) -> Result<u64, Errno> {
        let record = Record::new();
        record.reset(3, 3000);
        for (n, result) in (0..).zip(results) {
            let piece = Piece {
                offset_bytes: n * 1000,
                len_bytes: 1000,
            };
            let write = Some(PartWrite {
                piece,
                result,
                device_ns: 7,
            });
            assert_eq!(
                record.enter(PartEnd {
                    write,
                    ..end(1, Ok(()))
                }),
                n == 2
            );
        }
        assert_eq!((record.result(), record.device_ns()), (Ok(()), 21));
        record.written()
    }

    #[test]
    fn writes_of_parts_count_up_to_the_first_gap() {
        assert_eq!(written([Ok(1000); 3]), Ok(3000));
        assert_eq!(written([Ok(1000), Ok(400), Ok(1000)]), Ok(1400));
        assert_eq!(written([Ok(1000), Ok(400), Ok(0)]), Ok(1400));
        assert_eq!(written([Ok(0), Ok(400), Ok(1000)]), Ok(0));
        assert_eq!(written([Ok(1000), Ok(1000), Ok(0)]), Ok(2000));
    }

    #[test]
    fn the_first_error_of_a_write_wins_over_short_ones() {
        let (again, full) = (Err(Errno::EAGAIN), Err(Errno::ENOSPC));
        assert_eq!(written([Ok(1000), full, Ok(0)]), full);
        assert_eq!(written([again, Ok(1000), full]), again);
        assert_eq!(written([Ok(1000), Ok(1000), Ok(1001)]), Err(Errno::EIO));
    }

    #[test]
    fn the_last_part_is_told_and_the_first_error_wins() {
        let record = Record::new();
        record.reset(3, 3000);
        assert!(!record.enter(end(70, Err(Errno::EIO))));
        assert!(!record.enter(end(50, Err(Errno::EINVAL))));
        assert!(record.enter(PartEnd::CANCELED));
        assert_eq!(record.result(), Err(Errno::EIO));
        assert_eq!((record.cipher_ns(), record.wait_ns(40)), (20, 10));
        record.reset(1, 1000);
        assert!(record.enter(end(90, Ok(()))));
        assert_eq!(record.result(), Ok(()));
        assert_eq!((record.cipher_ns(), record.wait_ns(40)), (10, 50));
    }
}
