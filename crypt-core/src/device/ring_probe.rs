//! Whether a queue may poll: a polled ring, after one read through another has shown that the hardware answers.

#![forbid(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::buffer::{Area, SlotBuffer};
use crate::device::DeviceOp;
use crate::device::files::Files;
use crate::device::ring::{Event, Ring};
use crate::device::ring_entry::Action;
use crate::error::Errno;
use crate::request::{Flags, Op};

/// How long the probe of a polled ring may take.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// A polled ring that has proven to work with one read, or why there is none.
pub(super) fn polled_ring(
    files: &Arc<Files>,
    depth: u32,
    poll_block_bytes: Option<u32>,
) -> Result<Ring, String> {
    let block_bytes = poll_block_bytes.ok_or(
        "the queue spins instead of polling: the device has no poll queues, or is not opened with \
         O_DIRECT",
    )?;
    let failed = |error: &dyn std::fmt::Display| {
        format!("the queue spins instead of polling: a polled read failed ({error})")
    };
    probe(files, block_bytes).map_err(|errno| failed(&errno))?;
    Ring::new(Arc::clone(files), depth, true).map_err(|error| failed(&error))
}

/// Reads the first block through a polled ring of its own.
fn probe(files: &Arc<Files>, block_bytes: u32) -> Result<(), Errno> {
    let io = |error: io::Error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
    let mut ring = Ring::new(Arc::clone(files), 1, true).map_err(io)?;
    ring.enable()?;
    let slots = SlotBuffer::allocate(1, block_bytes as usize);
    let read = DeviceOp {
        token: 0,
        op: Op::Read,
        flags: Flags::empty(),
        offset_bytes: 0,
        len_bytes: u64::from(block_bytes),
        buffer: slots.map_err(|error| error.errno())?.pop(),
        area: Area::Data,
        area_offset_bytes: 0,
    };
    ring.start(read, Action::Transfer)
        .map_err(|_| Errno::EAGAIN)?;
    ring.wait(Some(PROBE_LIMIT))?;
    match ring.next() {
        Some(Event::Done { result, .. }) if result < 0 => Err(Errno::from_raw(-result)),
        Some(_) => Ok(()),
        None => Err(Errno::EAGAIN),
    }
}
