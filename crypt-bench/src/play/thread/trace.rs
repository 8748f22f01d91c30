//! A thread that plays a trace: the next request, and when it is due.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::BufReader;

use crypt_core::request::Op;

use super::Worker;
use crate::generate::Step;
use crate::play::Trace;
use crate::trace::{Kind, Reader};

/// Bytes of the trace that are read at once.
const READ_BYTES: usize = 128 << 10;

/// A trace that is played.
pub(super) struct Tape {
    reader: Reader<BufReader<File>>,
    speed_percent: Option<u64>,
    starts_bytes: Vec<u64>,
    path: String,
}

impl Tape {
    /// Opens a trace.
    pub(super) fn open(trace: &Trace) -> Result<Self, String> {
        let in_trace = |error: &dyn std::fmt::Display| format!("{}: {error}", trace.path);
        let file = File::open(&trace.path).map_err(|error| in_trace(&error))?;
        let input = BufReader::with_capacity(READ_BYTES, file);
        let reader = Reader::new(input, trace.changes.clone());
        Ok(Self {
            reader: reader.map_err(|error| in_trace(&error))?,
            speed_percent: trace.speed_percent,
            starts_bytes: trace.starts_bytes.clone(),
            path: trace.path.clone(),
        })
    }

    /// The next request, and how long after the first one it is due.
    fn next(&mut self) -> Result<Option<(Step, Option<u64>)>, String> {
        let event = self.reader.next_event();
        let Some(event) = event.map_err(|error| format!("{}: {error}", self.path))? else {
            return Ok(None);
        };
        let start_bytes = self.starts_bytes.get(event.file).copied().unwrap_or(0);
        let step = Step {
            op: match event.kind {
                Kind::Read => Op::Read,
                Kind::Write => Op::Write,
                Kind::Sync | Kind::Trim => Op::Flush,
            },
            offset_bytes: start_bytes + event.offset_bytes,
            len_bytes: event.len_bytes,
        };
        let after_ns = self.speed_percent.map(|percent| {
            let ns = u128::from(event.after_us) * 100_000 / u128::from(percent.max(1));
            u64::try_from(ns).unwrap_or(u64::MAX)
        });
        Ok(Some((step, after_ns)))
    }
}

impl Worker {
    /// The next request of the trace. What is wrong with it by now ends the thread.
    pub(super) fn next_of_trace(&mut self) -> Option<Step> {
        match self.tape.as_mut()?.next() {
            Ok(Some((step, after_ns))) => {
                self.pace.plan(after_ns);
                Some(step)
            }
            Ok(None) => None,
            Err(message) => {
                self.broken.get_or_insert(message);
                None
            }
        }
    }
}
