//! What the pipeline reads from and writes to: a control plane shared by all, and one data-plane
//! queue per submitter thread.
//!
//! Contract of every implementation, checked by one conformance suite (`tests/device_conformance.rs`):
//! - an operation owns its [`SlotBuffer`] until its completion, which hands it back;
//! - every pushed operation completes exactly once, in the push or in a reap; a local failure is an ordinary completion with
//!   an error, nothing is dropped;
//! - a completion may be short (the pipeline continues the remainder); zero bytes is an error for
//!   the pipeline to report;
//! - no order holds between operations in flight; a flush covers the writes completed before it was
//!   pushed;
//! - dropping a queue waits for what is in flight; where it can't, the memory leaks.
//!
//! The data path does not allocate after [`Device::open_queue`].

pub mod claim;
pub mod faulty;
pub mod file;
mod files;
pub mod guard;
mod immediate;
mod limits;
pub mod memory;
pub mod model;
pub mod null;
mod ready;
mod ring;
mod ring_entry;
mod ring_probe;
mod ring_queue;
pub mod service;
mod stripes;
mod sync;
mod sysfs;

use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

pub use immediate::ImmediateDevice;

use crate::buffer::{Area, SlotBuffer};
use crate::error::{Errno, Result};
use crate::request::{Flags, Op};

/// Control plane of a device: facts about it, and new queues.
pub trait Device: Send + Sync + fmt::Debug {
    /// Size, block size and abilities.
    fn info(&self) -> DeviceInfo;

    /// Opens a data-plane queue. Call it on the thread that will use the queue.
    ///
    /// # Errors
    /// Where the system refuses the resources; the message says which and what to use instead.
    fn open_queue(&self, config: &QueueConfig<'_>) -> Result<Box<dyn DeviceQueue>>;

    /// A way to write from any thread without a queue; `None` unless every write is over at once.
    fn immediate(&self) -> Option<Arc<dyn ImmediateDevice>> {
        None
    }
}

/// Facts about a device. All sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// What kind of device this is, for results: `null`, `memory`, `file`, `model:nvme`, ...
    pub kind: String,
    /// Capacity.
    pub size_bytes: u64,
    /// Smallest unit of access; offsets, lengths and (with O_DIRECT) memory must be multiples of it.
    pub logical_block_bytes: u32,
    /// Whether a polled queue really polls the hardware.
    pub can_poll: bool,
    /// Whether `Discard` is accepted.
    pub can_discard: bool,
    /// Whether writes are refused.
    pub read_only: bool,
}

/// How a queue will be used.
#[derive(Clone, Copy, Debug)]
pub struct QueueConfig<'a> {
    /// Most operations in flight at once. The queue never holds fewer.
    pub depth: u32,
    /// Whether to poll for completions (`HIPRI`) where the device can.
    pub polled: bool,
    /// The slots whose memory will be used, for registration; all from one slab, in index order.
    pub slots: &'a [SlotBuffer],
}

/// One operation for a device. The buffer is owned by the operation until its completion.
#[derive(Debug)]
pub struct DeviceOp {
    /// Comes back in the completion; no meaning to the device.
    pub token: u64,
    /// What to do. `WriteZeroes` is only pushed where no cipher is in front of the device.
    pub op: Op,
    /// `FUA` makes a write durable before it completes; others are hints.
    pub flags: Flags,
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Length in bytes; zero for `Flush`.
    pub len_bytes: u64,
    /// Memory to transfer from or to: `area_offset_bytes` into `area`, `len_bytes` long. `Read` and
    /// `Write` have one; other operations may carry one that they don't touch.
    pub buffer: Option<SlotBuffer>,
    /// Which area of the buffer.
    pub area: Area,
    /// Where in the area the transfer starts.
    pub area_offset_bytes: u32,
}

impl DeviceOp {
    /// The memory to transfer from; empty where the operation has none, or it doesn't fit its area.
    #[must_use]
    pub fn memory(&self) -> &[u8] {
        let range = self.memory_range();
        let area = self.buffer.as_ref().map(|buffer| buffer.area(self.area));
        area.and_then(|area| area.get(range)).unwrap_or_default()
    }

    /// The memory to transfer to; empty where the operation has none, or it doesn't fit its area.
    #[must_use]
    pub fn memory_mut(&mut self) -> &mut [u8] {
        let range = self.memory_range();
        let area = self
            .buffer
            .as_mut()
            .map(|buffer| buffer.area_mut(self.area));
        area.and_then(|area| area.get_mut(range))
            .unwrap_or_default()
    }

    /// The end of the operation.
    #[inline]
    pub(crate) fn complete(self, result: Result<u64, Errno>) -> DeviceCompletion {
        DeviceCompletion {
            token: self.token,
            result,
            buffer: self.buffer,
        }
    }

    fn memory_range(&self) -> Range<usize> {
        let start = self.area_offset_bytes as usize;
        start..start.saturating_add(usize::try_from(self.len_bytes).unwrap_or(usize::MAX))
    }
}

/// The end of one operation.
#[derive(Debug)]
pub struct DeviceCompletion {
    /// The operation's token.
    pub token: u64,
    /// Bytes transferred (the whole length for operations without payload), or why it failed.
    pub result: Result<u64, Errno>,
    /// The operation's buffer, given back.
    pub buffer: Option<SlotBuffer>,
}

/// What became of an operation that a queue accepted.
#[derive(Debug)]
pub enum Pushed {
    /// It starts with the next [`DeviceQueue::submit`], and its end is reaped.
    Queued,
    /// It is over: the device needs no time for it, or refuses it. Nothing is left to reap.
    Done(DeviceCompletion),
}

/// Data plane of a device: one per submitter thread.
pub trait DeviceQueue: Send {
    /// Takes one operation. A device that is done at once says so here, which saves both sides the
    /// way over a list; otherwise the operation is queued.
    ///
    /// # Errors
    /// Gives the operation back when the queue is full: reap, then push again.
    fn push(&mut self, op: DeviceOp) -> Result<Pushed, DeviceOp>;

    /// Starts what was queued. Failures come back as completions.
    fn submit(&mut self);

    /// Appends finished operations to `done`, without waiting and without growing it.
    fn reap(&mut self, done: &mut Vec<DeviceCompletion>);

    /// Blocks until a completion may be ready, `wake` is readable, or `timeout` has passed.
    ///
    /// `wake` is an eventfd of the owner, the same one in each call; the caller drains it. Returning
    /// early is allowed. A submitted operation always ends the wait when it completes.
    ///
    /// # Errors
    /// Where the system call fails for a reason other than an interrupt.
    fn wait(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno>;

    /// How the queue really works, for results.
    fn facts(&self) -> QueueFacts;
}

/// What a queue got of what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFacts {
    /// Mechanism: `immediate`, `io_uring`, `sync`, `timer`, ...
    pub engine: &'static str,
    /// Whether buffers are registered with the kernel.
    pub registered_buffers: bool,
    /// Whether completions are polled from the hardware.
    pub polled: bool,
    /// Whether the page cache is bypassed.
    pub direct: bool,
    /// Why something asked for was not had, one sentence each.
    pub notes: Vec<String>,
}
