//! What a trace is about, found by reading all of it once.

#![forbid(unsafe_code)]

use std::io::BufRead;

use super::{Kind, Reader, TraceError};

/// What is in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Names of the files with requests.
    pub files: Vec<String>,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub syncs: u64,
    /// Bytes of reads and writes.
    pub bytes: u64,
    /// Longest request, in bytes.
    pub longest_bytes: u64,
    /// First byte behind all requests.
    pub end_bytes: u64,
    /// Time of the last request after the first, in microseconds.
    pub length_us: u64,
}

impl Summary {
    /// Reads a trace to its end.
    ///
    /// # Errors
    /// The first line that can't be played.
    pub fn of<R: BufRead>(mut reader: Reader<R>) -> Result<Self, TraceError> {
        let mut summary = Self::default();
        let mut used = Vec::new();
        while let Some(event) = reader.next_event()? {
            match event.kind {
                Kind::Read => summary.reads += 1,
                Kind::Write => summary.writes += 1,
                Kind::Sync | Kind::Trim => summary.syncs += 1,
            }
            summary.bytes = summary.bytes.saturating_add(event.len_bytes);
            summary.longest_bytes = summary.longest_bytes.max(event.len_bytes);
            summary.end_bytes = summary.end_bytes.max(event.offset_bytes + event.len_bytes);
            summary.length_us = event.after_us;
            used.resize(used.len().max(event.file + 1), false);
            used[event.file] = true;
        }
        let names = reader.files().zip(&used).filter(|(_, used)| **used);
        summary.files = names.map(|(name, _)| name.to_owned()).collect();
        Ok(summary)
    }
}
