//! What a stream of requests is made of, and its requests.

#![forbid(unsafe_code)]

use crypt_core::request::Op;

use super::{Lengths, Spread};
use crate::result::Rw;

/// What a stream is made of. All sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Direction and order.
    pub rw: Rw,
    /// Share of reads of a mix.
    pub rwmixread_percent: u8,
    /// Lengths of reads and of writes.
    pub lengths: [Lengths; 2],
    /// Random offsets of reads and of writes are multiples of this; over 0.
    pub align_bytes: [u64; 2],
    /// Share of random offsets of reads and of writes.
    pub random_percent: [u8; 2],
    /// Random offsets may repeat within a pass; those of a distribution other than the even one always
    /// do.
    pub repeats: bool,
    /// How random offsets are distributed.
    pub spread: Spread,
    /// Random patterns: requests per random offset, at least 1.
    pub run_ios: u64,
    /// Random patterns: where the requests of a run are.
    pub run: Run,
    /// Sequential patterns: bytes between the end of a request and the next one, negative to go
    /// backwards.
    pub step_bytes: i64,
    /// Requests stay in one zone of the range at a time.
    pub strides: Option<Strides>,
    /// The ranges that requests are in, one per file.
    pub spans: Vec<Span>,
    /// In which order they have their turns.
    pub service: Service,
    /// Bytes to transfer; `None` for no end.
    pub total_bytes: Option<u64>,
    /// Requests to make; `None` for no end.
    pub total_ios: Option<u64>,
    /// Writes after which a flush comes; 0 for none.
    pub flush_every: u64,
}

impl Script {
    /// The shortest length of the directions in use, in bytes; at least 1.
    pub(super) fn smallest_bytes(&self) -> u64 {
        let used = [self.rw.reads(), self.rw.writes()];
        let used = self.lengths.iter().zip(used).filter(|(_, used)| *used);
        used.map(|(lengths, _)| lengths.smallest())
            .min()
            .unwrap_or(1)
            .max(1)
    }
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start_bytes: u64,
    /// Length, at least the largest length of a request.
    pub len_bytes: u64,
}

/// How several files have their turns: fio's `file_service_type` and `openfiles`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Which one is next.
    pub order: ServiceOrder,
    /// Requests per turn, at least 1.
    pub run_ios: u64,
    /// Files that have turns at the same time, at least 1; others follow as these are done.
    pub open_files: usize,
}

impl Default for Service {
    /// fio's: every file, one request each.
    fn default() -> Self {
        Self {
            order: ServiceOrder::RoundRobin,
            run_ios: 1,
            open_files: usize::MAX,
        }
    }
}

/// Which file has the next turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceOrder {
    /// Any, all with the same probability.
    Random,
    /// The one behind.
    #[default]
    RoundRobin,
    /// The same one until it is done.
    Sequential,
}

/// Where the requests after a random one are: fio's `rw_sequencer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Run {
    /// One behind the other.
    #[default]
    Sequential,
    /// At the same offset.
    Identical,
}

/// fio's `zonemode=strided`: so many bytes are transferred in a zone, then the next one begins. Zones
/// that are not inside of the range as a whole are left out; after the last comes the first. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// Bytes to transfer per zone, over 0.
    pub transfer_bytes: u64,
    /// Length of a zone, at least the largest length.
    pub zone_bytes: u64,
    /// Bytes left out between zones.
    pub skip_bytes: u64,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// [`Op::Read`], [`Op::Write`] or [`Op::Flush`].
    pub op: Op,
    /// First byte.
    pub offset_bytes: u64,
    /// Length; 0 for a flush.
    pub len_bytes: u64,
}
