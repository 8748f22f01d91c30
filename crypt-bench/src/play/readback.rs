//! What a thread finds out about blocks that it compares.

#![forbid(unsafe_code)]

use crate::record::{DirectionRecorder, Window};
use crate::verify::{Checks, Mismatch};

/// When blocks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Never: they are written with what it takes to compare them some day.
    Never,
    /// As they are read, by a thread that only reads.
    Reading,
    /// After the last write, all that was written is read.
    After,
    /// Nothing is written; what would be is read.
    Only,
}

/// What a thread that compares blocks is given.
#[derive(Clone, Debug)]
pub struct Verification {
    /// How.
    pub checks: Checks,
    /// When.
    pub when: When,
    /// The first block that is wrong ends the thread.
    pub fatal: bool,
}

/// What a thread found out.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Blocks that were compared.
    pub blocks: u64,
    /// Blocks that are not what they should be.
    pub mismatches: u64,
    /// The first of them.
    pub first: Option<Mismatch>,
    /// The reads of [`When::After`] and [`When::Only`], and their time. They are in no other figure.
    pub reads: Option<(Window, DirectionRecorder)>,
}

/// A thread's progress with it.
pub(super) struct Verifier {
    pub(super) verification: Verification,
    pub(super) verified: Verified,
}

impl Verifier {
    pub(super) fn new(verification: Verification) -> Self {
        Self {
            verification,
            verified: Verified {
                blocks: 0,
                mismatches: 0,
                first: None,
                reads: None,
            },
        }
    }

    /// Compares what was read at this offset; whether the thread may go on.
    pub(super) fn check(&mut self, data: &[u8], offset_bytes: u64) -> bool {
        let verified = &mut self.verified;
        match self.verification.checks.check(data, offset_bytes) {
            Ok(blocks) => verified.blocks += blocks,
            Err((mismatch, wrong)) => {
                let interval = self.verification.checks.interval_bytes;
                let len = data.len() as u64;
                verified.blocks += interval.map_or(1, |bytes| len.div_ceil(bytes.max(1)));
                verified.mismatches += wrong;
                verified.first.get_or_insert(mismatch);
            }
        }
        verified.mismatches == 0 || !self.verification.fatal
    }
}
