//! The way from the workers to a volume's write thread.
//!
//! Bounded by admission: each lane reserves its depth when it is attached, so a post always finds
//! room and a worker never waits for the write thread.
#![forbid(unsafe_code)]

use super::sync::{ArrayQueue, AtomicBool, AtomicU32, Ordering};
use super::task::Ticket;
use super::wake::WakeFd;
use crate::buffer::{Area, SlotBuffer};
use crate::error::{Error, ErrorKind, Result};
use crate::request::Flags;

/// An encrypted write on its way to the device.
#[derive(Debug)]
pub(crate) struct WriteTask {
    pub(crate) ticket: Ticket,
    pub(crate) buffer: Option<SlotBuffer>,
    pub(crate) offset_bytes: u64,
    pub(crate) len_bytes: u32,
    pub(crate) flags: Flags,
    pub(crate) area: Area,
}

/// Encrypted writes that the write thread has not taken yet.
#[derive(Debug)]
pub(crate) struct WriteInbox {
    tasks: ArrayQueue<WriteTask>,
    reserved: AtomicU32,
    stop: AtomicBool,
    pub(crate) wake: WakeFd,
}

impl WriteInbox {
    pub(crate) fn new(capacity: u32) -> Result<Self> {
        Ok(Self {
            tasks: ArrayQueue::new(capacity.max(1) as usize),
            reserved: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            wake: WakeFd::new()?,
        })
    }

    /// Reserves room for `depth` writes.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] where the lanes attached before leave too little, with figures.
    pub(crate) fn reserve(&self, depth: u32) -> Result<()> {
        let capacity = self.tasks.capacity() as u64;
        let fits = |reserved: u32| {
            let total = u64::from(reserved) + u64::from(depth);
            (total <= capacity).then_some(total as u32)
        };
        let order = (Ordering::Relaxed, Ordering::Relaxed);
        match self.reserved.fetch_update(order.0, order.1, fits) {
            Ok(_) => Ok(()),
            Err(reserved) => Err(Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "the write thread has room for {capacity} writes in flight, {reserved} of them \
                     taken, {depth} more asked for; start it with a larger capacity"
                ),
            )),
        }
    }

    pub(crate) fn release(&self, depth: u32) {
        self.reserved.fetch_sub(depth, Ordering::Relaxed);
    }

    pub(crate) fn post(&self, task: WriteTask) {
        let refused = self.tasks.push(task).is_err();
        assert!(!refused, "lanes reserve room for every write they send");
        self.wake.notify();
    }

    pub(crate) fn take(&self) -> Option<WriteTask> {
        self.tasks.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake.notify();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}
