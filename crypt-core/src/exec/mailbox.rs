//! Where a lane's finished work waits for the queue's thread.
//!
//! Many threads post, one collects. The box has room for every work that its lane can have out, so
//! a post never fails and never waits.
#![forbid(unsafe_code)]

use super::sync::ArrayQueue;
use super::wake::WakeFd;
use super::work::Done;
use crate::error::Result;

/// Finished works with the index of the task cell that each of them occupied.
#[derive(Debug)]
pub(crate) struct Mailbox {
    posted: ArrayQueue<(u32, Done)>,
    pub(crate) wake: WakeFd,
}

impl Mailbox {
    pub(crate) fn new(capacity: usize) -> Result<Self> {
        Ok(Self {
            posted: ArrayQueue::new(capacity.max(1)),
            wake: WakeFd::new()?,
        })
    }

    pub(crate) fn post(&self, cell: u32, done: Done) {
        let refused = self.posted.push((cell, done)).is_err();
        assert!(!refused, "a mailbox holds one result per task cell");
        self.wake.notify();
    }

    pub(crate) fn take(&self) -> Option<(u32, Done)> {
        self.posted.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.posted.is_empty()
    }
}
