//! Writing from any thread, for devices that are done when they are called.
//!
//! A device in memory needs no queue: a write is a copy by whoever has the data. Such a device gives
//! out a handle that all threads may share, so that the worker that encrypted a write can bring it
//! to the device itself, on its own core and while the data is in its cache
//! ([`WriteRoute::Worker`](crate::policy::WriteRoute::Worker)). A device behind a kernel ring, or one that
//! takes time, has none: the thread that called it would have to wait.
//!
//! Contract: a write has the same results as one pushed to a queue of the device, short ones and
//! errors included, and is over on return; the caller's memory is not kept. Nothing allocates.
//! A decorator gives out a handle where the device underneath does, and does to its writes what it does to
//! those of its queues.

#![forbid(unsafe_code)]

use std::fmt;

use crate::error::Errno;
use crate::request::Flags;

/// A device that any thread may write to. See the module documentation.
pub trait ImmediateDevice: Send + Sync + fmt::Debug {
    /// Writes `data` at `offset_bytes`, on the calling thread. Returns the bytes written, which may
    /// be fewer.
    ///
    /// # Errors
    /// As a `Write` with these `flags` that is pushed to a queue of the device.
    fn write(&self, offset_bytes: u64, data: &[u8], flags: Flags) -> Result<u64, Errno>;
}
