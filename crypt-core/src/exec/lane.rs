//! A queue's own way to the workers and back.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use super::pool::{PoolLoad, WorkerPool};
use super::span::run_span;
use super::work::{Done, DoneKind, Work};
use crate::cipher::SectorCipher;
use crate::error::{Errno, Error, Result};

/// One queue's connection to a [`WorkerPool`]. Belongs to the queue's thread.
#[derive(Debug)]
pub struct Lane {
    pool: Arc<WorkerPool>,
    cipher: Arc<dyn SectorCipher>,
    done: VecDeque<Done>,
    wake: OwnedFd,
}

impl Lane {
    /// Opens a lane with room for `depth` works at a time.
    ///
    /// # Errors
    /// Where the system refuses an eventfd.
    pub fn open(pool: &Arc<WorkerPool>, cipher: Arc<dyn SectorCipher>, depth: u32) -> Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::io("eventfd for a worker lane", Errno::from(errno)))?;
        Ok(Self {
            pool: Arc::clone(pool),
            cipher,
            done: VecDeque::with_capacity(depth as usize),
            wake,
        })
    }

    /// Hands `work` to the workers. Never blocks, never allocates.
    ///
    /// # Errors
    /// Gives the work back where the pool or the lane is full, the pool has been shut down, or the
    /// work is malformed: run it inline, which reports what is wrong with it.
    pub fn hand_off(&mut self, mut work: Work) -> std::result::Result<(), Work> {
        if self.done.len() == self.done.capacity() {
            return Err(work);
        }
        let result = run_span(&*self.cipher, &work.span(), &mut work.buffer);
        self.done.push_back(Done {
            token: work.token,
            buffer: Some(work.buffer),
            result: DoneKind::Crypt(result),
            cipher_ns: 0,
            wait_ns: 0,
        });
        Ok(())
    }

    /// Appends what has ended to `done`, without waiting and without growing it.
    pub fn collect(&mut self, done: &mut Vec<Done>) {
        while done.len() < done.capacity() {
            let Some(next) = self.done.pop_front() else {
                return;
            };
            done.push(next);
        }
    }

    /// Announces that the thread is about to sleep on [`Lane::wake_fd`]. Returns `false` where
    /// something has ended already: don't sleep, collect. After `true`, call [`Lane::end_sleep`].
    #[must_use]
    pub fn prepare_sleep(&mut self) -> bool {
        self.done.is_empty()
    }

    /// The eventfd that becomes readable when work ends after [`Lane::prepare_sleep`].
    #[must_use]
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Ends the sleep that [`Lane::prepare_sleep`] announced, and drains the eventfd.
    pub fn end_sleep(&mut self) {}

    /// Runs one queued part on the calling thread; `false` where there is none.
    pub fn assist(&mut self) -> bool {
        false
    }

    /// How busy the pool is.
    #[must_use]
    pub fn load(&self) -> PoolLoad {
        self.pool.load()
    }

    /// Works handed off and not collected yet.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.done.len() as u32
    }
}
