//! What a trace is about, found by reading all of it once.

#![forbid(unsafe_code)]

use std::io::BufRead;

use super::{Kind, Reader, TraceError};

/// A file of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// Its name.
    pub name: String,
    /// Its number, as events have it.
    pub number: usize,
    /// First byte behind all its requests.
    pub end_bytes: u64,
}

/// What is in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that are read or written.
    pub files: Vec<FileSummary>,
    /// Whether they are devices, of a block trace.
    pub of_devices: bool,
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
    /// Time of the last request after the first, in microseconds.
    pub length_us: u64,
}

impl Summary {
    /// First byte behind all requests, of whatever file.
    #[must_use]
    pub fn end_bytes(&self) -> u64 {
        let ends = self.files.iter().map(|file| file.end_bytes);
        ends.max().unwrap_or(0)
    }

    /// Reads a trace to its end.
    ///
    /// # Errors
    /// The first line that can't be played.
    pub fn of<R: BufRead>(mut reader: Reader<R>) -> Result<Self, TraceError> {
        let mut summary = Self {
            of_devices: reader.is_of_devices(),
            ..Self::default()
        };
        let mut ends_bytes = Vec::new();
        while let Some(event) = reader.next_event()? {
            match event.kind {
                Kind::Read => summary.reads += 1,
                Kind::Write => summary.writes += 1,
                Kind::Sync | Kind::Trim => summary.syncs += 1,
            }
            summary.bytes = summary.bytes.saturating_add(event.len_bytes);
            summary.longest_bytes = summary.longest_bytes.max(event.len_bytes);
            summary.length_us = event.after_us;
            ends_bytes.resize(ends_bytes.len().max(event.file + 1), 0);
            let end_bytes: &mut u64 = &mut ends_bytes[event.file];
            *end_bytes = (*end_bytes).max(event.offset_bytes + event.len_bytes);
        }
        let ends = ends_bytes.into_iter().enumerate();
        let files = reader.files().zip(ends).filter(|(_, (_, end))| *end > 0);
        let files = files.map(|(name, (number, end_bytes))| FileSummary {
            name: name.to_owned(),
            number,
            end_bytes,
        });
        summary.files = files.collect();
        Ok(summary)
    }
}
