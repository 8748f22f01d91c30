//! Blocks that prove what they are: written with a header and a checksum, compared when they are read.
//!
//! Every interval of a write begins with fio's header (`header`): where it belongs, which run wrote it, and
//! the checksum of what follows. With [`Method::Pattern`] there is no header, and all bytes are known. What an
//! interval holds depends on the run and its offset alone, so requests that overlap agree, in whatever order
//! they end. Pure; nothing is allocated unless a block is wrong.

#![forbid(unsafe_code)]

mod header;
mod method;

use std::fmt;

use crate::generate::{BytePattern, Random};
use crate::host::hex;
use header::Header;
pub use method::Method;

/// Length of a block's header without its checksum, in bytes.
pub const HEADER_BYTES: usize = header::LEN_BYTES;

/// What is known beforehand of blocks that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// They were written by a run with this seed, and by no other.
    Run(u64),
    /// Somebody wrote them, and their headers say with which seed.
    Anybody,
}

/// How blocks are written and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checks {
    /// The checksum.
    pub method: Method,
    /// What blocks hold behind their headers; random bytes without. [`Method::Pattern`] needs it.
    pub pattern: Option<BytePattern>,
    /// Bytes with a header of their own; a request each where it is `None`.
    pub interval_bytes: Option<u64>,
    /// Where the blocks come from.
    pub origin: Origin,
}

/// A block that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// First byte of the block.
    pub offset_bytes: u64,
    /// Its length.
    pub len_bytes: u64,
    /// What differs.
    pub what: &'static str,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of the block of {} bytes at offset {}: expected {}, found {}",
            self.what, self.len_bytes, self.offset_bytes, self.expected, self.found
        )
    }
}

impl Checks {
    /// Fills the buffer of a write at this offset.
    pub fn seal(&self, buffer: &mut [u8], offset_bytes: u64) {
        if let Some(pattern) = &self.pattern {
            pattern.fill(buffer, offset_bytes);
        }
        let Some(digest_bytes) = self.method.digest_bytes() else {
            return;
        };
        let run = match self.origin {
            Origin::Run(seed) => seed,
            Origin::Anybody => 0,
        };
        let interval = self.interval(buffer.len());
        for (index, block) in buffer.chunks_mut(interval).enumerate() {
            let header = Header {
                kind: self.method.fio_kinds()[0],
                len_bytes: block.len() as u32,
                seed: 0,
                offset_bytes: offset_bytes + (index * interval) as u64,
            };
            let seed = block_seed(run, header.offset_bytes);
            let Some((head, body)) = block.split_at_mut_checked(header::LEN_BYTES + digest_bytes)
            else {
                continue;
            };
            if self.pattern.is_none() {
                Random::new(seed).fill(body);
            }
            let (head, digest) = head.split_at_mut(header::LEN_BYTES);
            Header { seed, ..header }.write(head);
            self.method.digest(body, digest);
        }
    }

    /// Compares what a read at this offset has brought. Returns the number of blocks.
    ///
    /// # Errors
    /// The first block that is not what it should be, and how many are.
    pub fn check(&self, buffer: &[u8], offset_bytes: u64) -> Result<u64, (Mismatch, u64)> {
        let interval = self.interval(buffer.len());
        if self.method == Method::Pattern {
            return match self.check_pattern(buffer, offset_bytes) {
                None => Ok(1),
                Some(mismatch) => Err((mismatch, 1)),
            };
        }
        let (mut first, mut wrong, mut blocks) = (None, 0, 0);
        for (index, block) in buffer.chunks(interval).enumerate() {
            blocks += 1;
            let at = offset_bytes + (index * interval) as u64;
            if let Some(mismatch) = self.check_block(block, at) {
                wrong += 1;
                first.get_or_insert(mismatch);
            }
        }
        match first {
            None => Ok(blocks),
            Some(first) => Err((first, wrong)),
        }
    }

    fn interval(&self, len: usize) -> usize {
        let interval = self.interval_bytes.map_or(len, |bytes| bytes as usize);
        interval.min(len).max(1)
    }

    fn check_block(&self, block: &[u8], offset_bytes: u64) -> Option<Mismatch> {
        let digest_bytes = self.method.digest_bytes()?;
        let mismatch = |what, expected, found| Mismatch {
            offset_bytes,
            len_bytes: block.len() as u64,
            what,
            expected,
            found,
        };
        let Some((head, body)) = block.split_at_checked(header::LEN_BYTES + digest_bytes) else {
            return Some(mismatch("the length", "more".to_owned(), "less".to_owned()));
        };
        let (head, digest) = head.split_at(header::LEN_BYTES);
        let seed = match self.origin {
            Origin::Run(run) => Some(block_seed(run, offset_bytes)),
            Origin::Anybody => None,
        };
        let wanted = header::Wanted {
            kinds: self.method.fio_kinds(),
            len_bytes: block.len() as u32,
            offset_bytes,
            seed,
        };
        if let Err(wrong) = wanted.check(head) {
            return Some(mismatch(wrong.what, wrong.expected, wrong.found));
        }
        let mut computed = [0; method::MOST_DIGEST_BYTES];
        let computed = &mut computed[..digest_bytes];
        self.method.digest(body, computed);
        (computed != digest).then(|| mismatch(self.method.name(), hex(digest), hex(computed)))
    }

    /// The first byte that is not that of the pattern.
    fn check_pattern(&self, buffer: &[u8], offset_bytes: u64) -> Option<Mismatch> {
        let pattern = self.pattern.as_ref()?;
        let at = pattern.first_difference(buffer, offset_bytes)?;
        let shown = 16.min(buffer.len() - at);
        let found = &buffer[at..at + shown];
        let mut expected = [0; 16];
        pattern.copy_from(at, &mut expected[..shown], offset_bytes);
        Some(Mismatch {
            offset_bytes: offset_bytes + at as u64,
            len_bytes: (buffer.len() - at) as u64,
            what: "the pattern",
            expected: hex(&expected[..shown]),
            found: hex(found),
        })
    }
}

/// The seed of a block: of one run and one offset.
fn block_seed(run: u64, offset_bytes: u64) -> u64 {
    Random::new(run ^ offset_bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next()
}

#[cfg(test)]
mod tests;
