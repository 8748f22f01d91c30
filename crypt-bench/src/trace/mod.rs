//! Traces of requests, read line by line: fio's iologs, versions 2 and 3, and what blkparse prints of a block trace.
//!
//! ```text
//! fio version 3 iolog                       fio version 2 iolog
//! MICROSECONDS FILE add|open|close          FILE add|open|close
//! MICROSECONDS FILE read|write OFFSET LEN   FILE read|write OFFSET LEN
//! MICROSECONDS FILE sync|datasync 0 0       FILE sync|datasync 0 0
//!                                           FILE wait MICROSECONDS 0
//! ```
//!
//! A block trace names devices by their numbers (`8,0`), of which each is a file here, `/dev/block/8:0`.
//!
//! Nothing is kept but the names of the files and one line, however long a trace is. Times count from the first
//! request; one that lies before its predecessor's is its predecessor's.

#![forbid(unsafe_code)]

mod blkparse;
mod line;
mod summary;

use std::fmt;
use std::io::{BufRead, Read};

pub use blkparse::Stage;
use line::{Action, Line};
pub use summary::{FileSummary, Summary};

/// Longest line in bytes.
const MOST_LINE_BYTES: u64 = 8192;
/// Most files of a trace.
const MOST_FILES: usize = 1024;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Makes what was written durable.
    Sync,
    /// Discards.
    Trim,
}

/// How a trace is changed while it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// Offsets are divided by this; at least 1.
    pub scale: u64,
    /// Offsets are rounded down to multiples of this; at least 1.
    pub align_bytes: u64,
    /// Kinds that are left out.
    pub skip: Vec<Kind>,
    /// Offsets and lengths are multiples of this.
    pub unit_bytes: u64,
    /// Where requests of a block trace are taken.
    pub stage: Stage,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in microseconds after the first request.
    pub after_us: u64,
    /// What.
    pub kind: Kind,
    /// Number of its file, from 0.
    pub file: usize,
    /// First byte.
    pub offset_bytes: u64,
    /// Length; 0 for [`Kind::Sync`].
    pub len_bytes: u64,
}

/// Why a trace can't be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line, from 1.
    pub line: u64,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for TraceError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Two,
    Three,
    Blkparse,
}

/// A trace that is read.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    changes: Changes,
    format: Format,
    /// Names, and whether they are open.
    files: Vec<(String, bool)>,
    /// Numbers of the devices, in the same order.
    devices: Vec<String>,
    line: u64,
    buffer: Vec<u8>,
    /// The line in the buffer is still to be understood.
    pending: bool,
    /// Only figures follow.
    ended: bool,
    /// Time of the first request, and of the last line.
    first_us: Option<u64>,
    now_us: u64,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// Where it is not that of an iolog of version 2 or 3, nor of blkparse.
    pub fn new(input: R, changes: Changes) -> Result<Self, TraceError> {
        let mut reader = Self {
            input,
            changes,
            format: Format::Two,
            files: Vec::new(),
            devices: Vec::new(),
            line: 0,
            buffer: Vec::with_capacity(256),
            pending: false,
            ended: false,
            first_us: None,
            now_us: 0,
        };
        reader.fill()?;
        let first = String::from_utf8_lossy(&reader.buffer);
        reader.format = match first.trim_end() {
            "fio version 2 iolog" => Format::Two,
            "fio version 3 iolog" => Format::Three,
            first if blkparse::is_first(first) => Format::Blkparse,
            _ => {
                return Err(TraceError {
                    line: 1,
                    message: "a trace begins with `fio version 2 iolog` or `fio version 3 iolog`, or is what \
                              `blkparse -i TRACE` prints of a trace of blktrace"
                        .to_owned(),
                });
            }
        };
        reader.pending = reader.format == Format::Blkparse;
        Ok(reader)
    }

    /// The next request; `None` at the end.
    ///
    /// # Errors
    /// A line that is malformed, or asks for what can't be done.
    pub fn next_event(&mut self) -> Result<Option<Event>, TraceError> {
        while self.fill()? {
            let buffer = std::mem::take(&mut self.buffer);
            let event = std::str::from_utf8(&buffer)
                .map_err(|_| "not text".to_owned())
                .and_then(|text| self.understand(text));
            self.buffer = buffer;
            match event {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(message) => return Err(self.error(message)),
            }
        }
        Ok(None)
    }

    /// Whether it is a block trace, of devices.
    pub fn is_of_devices(&self) -> bool {
        self.format == Format::Blkparse
    }

    /// Names of the files that were added so far.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }

    fn error(&self, message: String) -> TraceError {
        TraceError {
            line: self.line,
            message,
        }
    }

    /// Reads a line; false at the end.
    fn fill(&mut self) -> Result<bool, TraceError> {
        if std::mem::take(&mut self.pending) {
            return Ok(true);
        }
        self.buffer.clear();
        self.line += 1;
        let mut limited = (&mut self.input).take(MOST_LINE_BYTES + 1);
        let read = limited.read_until(b'\n', &mut self.buffer);
        match read {
            Err(error) => Err(self.error(error.to_string())),
            Ok(bytes) if bytes as u64 > MOST_LINE_BYTES => {
                Err(self.error(format!("longer than {MOST_LINE_BYTES} bytes")))
            }
            Ok(bytes) => Ok(bytes > 0),
        }
    }

    fn understand(&mut self, text: &str) -> Result<Option<Event>, String> {
        match self.format {
            Format::Blkparse => self.of_blkparse(text),
            _ => self.of_iolog(text),
        }
    }

    fn of_blkparse(&mut self, text: &str) -> Result<Option<Event>, String> {
        if self.ended {
            return Ok(None);
        }
        match blkparse::Line::parse(text, self.changes.stage)? {
            blkparse::Line::Other => Ok(None),
            blkparse::Line::End => {
                self.ended = true;
                Ok(None)
            }
            blkparse::Line::Request(device, time_us, kind, offset, len) => {
                self.now_us = self.now_us.max(time_us);
                let file = self.device(device)?;
                self.event(kind, file, offset, len)
            }
        }
    }

    fn of_iolog(&mut self, text: &str) -> Result<Option<Event>, String> {
        let Some(line) = Line::parse(text, self.format == Format::Three)? else {
            return Ok(None);
        };
        if let Some(time_us) = line.time_us {
            self.now_us = self.now_us.max(time_us);
        }
        match line.action {
            Action::Add => self.add(line.file).map(|()| None),
            Action::Open | Action::Close => {
                let file = self.find(line.file)?;
                self.files[file].1 = line.action == Action::Open;
                Ok(None)
            }
            Action::Wait(_) if self.format == Format::Three => {
                Err("version 3 has times instead of `wait`; remove the line".to_owned())
            }
            Action::Wait(wait_us) => {
                self.now_us = self.now_us.saturating_add(wait_us);
                Ok(None)
            }
            Action::Request(kind, offset, len) => {
                let file = self.find(line.file)?;
                if !self.files[file].1 {
                    return Err(format!("{} is not open here", line.file));
                }
                self.event(kind, file, offset, len)
            }
        }
    }

    fn event(
        &mut self,
        kind: Kind,
        file: usize,
        offset: u64,
        len: u64,
    ) -> Result<Option<Event>, String> {
        let first_us = *self.first_us.get_or_insert(self.now_us);
        if self.changes.skip.contains(&kind) {
            return Ok(None);
        }
        if kind == Kind::Trim {
            return Err("trims can't be played; add replay_skip=trim to leave them out".to_owned());
        }
        let scaled = offset / self.changes.scale.max(1);
        let event = Event {
            after_us: self.now_us - first_us,
            kind,
            file,
            offset_bytes: scaled - scaled % self.changes.align_bytes.max(1),
            len_bytes: len,
        };
        match kind {
            Kind::Sync => Ok(Some(Event {
                offset_bytes: 0,
                len_bytes: 0,
                ..event
            })),
            _ => self.check(&event).map(|()| Some(event)),
        }
    }

    fn check(&self, event: &Event) -> Result<(), String> {
        let unit = self.changes.unit_bytes.max(1);
        let (offset, len) = (event.offset_bytes, event.len_bytes);
        if len == 0 || !len.is_multiple_of(unit) || len > u64::from(u32::MAX >> 1) {
            return Err(format!(
                "a length of {len} bytes; lengths are multiples of the sector size of {unit} bytes, up to {}",
                u32::MAX >> 1
            ));
        }
        if !offset.is_multiple_of(unit) {
            return Err(format!(
                "offset {offset} is not a multiple of the sector size of {unit} bytes; add replay_align={unit}"
            ));
        }
        let end = offset
            .checked_add(len)
            .filter(|end| i64::try_from(*end).is_ok());
        end.map(|_| ())
            .ok_or_else(|| format!("offset {offset} is beyond 63 bits"))
    }

    fn add(&mut self, name: &str) -> Result<(), String> {
        if self.files.iter().any(|(known, _)| known == name) {
            return Ok(());
        }
        if self.files.len() >= MOST_FILES {
            return Err(format!("more than {MOST_FILES} files"));
        }
        self.files.push((name.to_owned(), false));
        Ok(())
    }

    /// The file of a device, by the number that a block trace has for it.
    fn device(&mut self, numbers: &str) -> Result<usize, String> {
        let found = self.devices.iter().position(|known| known == numbers);
        if let Some(at) = found {
            return Ok(at);
        }
        self.add(&blkparse::path(numbers))?;
        self.devices.push(numbers.to_owned());
        Ok(self.devices.len() - 1)
    }

    fn find(&self, name: &str) -> Result<usize, String> {
        let found = self.files.iter().position(|(known, _)| known == name);
        found.ok_or_else(|| format!("{name} was not added before"))
    }
}

#[cfg(test)]
mod tests;
