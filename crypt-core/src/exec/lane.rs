//! A queue's own way to the workers and back.
//!
//! A lane belongs to one thread, the queue's. What it hands off, its memory included, belongs to the
//! workers until [`Lane::collect`] gives it back; every hand-off that was accepted comes back
//! exactly once, whatever happened to it. Room for all of it is allocated in [`Lane::open`].
//!
//! Dropping a lane waits for its works on the calling thread (they always end), and frees what
//! nobody collected.
#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::mailbox::Mailbox;
use super::pool::{PoolLoad, WorkerPool};
use super::presence::Seat;
use super::spinner::Spinner;
use super::task::{TaskContext, TaskOwner};
use super::wake::WakeAccount;
use super::work::{Done, Route, Work};
use super::write_thread::WriteThread;
use crate::buffer::SlotBuffer;
use crate::cipher::SectorCipher;
use crate::device::ImmediateDevice;
use crate::error::{Error, ErrorKind, Result};

/// Memory of the slots that one [`Lane::collect`] gives back. A device that copies keeps the queue's
/// thread for as long as what it is given at once; meanwhile workers run dry, and the caller does not
/// hear of the first request.
const COLLECT_BYTES: usize = 256 << 10;

/// How the works of a lane can get to the device without coming back first.
#[derive(Clone, Debug, Default)]
pub enum Writes {
    /// They can't: [`Route::Return`] only.
    #[default]
    Return,
    /// The worker writes ([`Route::Worker`]).
    Worker(Arc<dyn ImmediateDevice>),
    /// Through the write thread ([`Route::WriteThread`]).
    WriteThread(Arc<WriteThread>),
}

impl Writes {
    fn serve(&self, route: &Route) -> bool {
        match route {
            Route::Return => true,
            Route::Worker { .. } => matches!(self, Self::Worker(_)),
            Route::WriteThread { .. } => matches!(self, Self::WriteThread(_)),
        }
    }

    fn thread(&self) -> Option<&WriteThread> {
        match self {
            Self::WriteThread(thread) => Some(thread),
            Self::Return | Self::Worker(_) => None,
        }
    }
}

/// One queue's connection to a [`WorkerPool`]. See the module documentation.
#[derive(Debug)]
pub struct Lane {
    // Dropped first, and waits for all works, while pool and write thread still run.
    tasks: TaskOwner,
    depth: u32,
    outstanding: u32,
    /// Parts that still fit into the pool's queue, by the last look at it.
    room: usize,
    wakes: WakeAccount,
    /// Whether the thread has had nothing else to do since it last asked for the load.
    rested: bool,
    seat: Seat,
    pool: Arc<WorkerPool>,
    writes: Writes,
}

impl Lane {
    /// Opens a lane with room for `depth` works at a time. Works with a route other than
    /// [`Route::Return`] need `writes` that serve it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for depth 0, [`ErrorKind::LimitExceeded`] where the write thread
    /// has no room for `depth` writes more, the system's error where it refuses an eventfd.
    pub fn open(
        pool: &Arc<WorkerPool>,
        cipher: Arc<dyn SectorCipher>,
        depth: u32,
        writes: Writes,
    ) -> Result<Self> {
        let shared = pool.shared();
        // Whoever posts a result leaves the cell a moment later; a spare for each such thread.
        let cells = depth.saturating_add(shared.workers()).saturating_add(2);
        if depth == 0 {
            let context = "a lane to the workers needs a depth of at least 1";
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let mailbox = Mailbox::new(cells as usize)?;
        if let Some(thread) = writes.thread() {
            thread.inbox().reserve(depth)?;
        }
        let context = TaskContext {
            cipher,
            mailbox,
            writes: writes.thread().map(|thread| Arc::clone(thread.inbox())),
            device: match &writes {
                Writes::Worker(device) => Some(Arc::clone(device)),
                Writes::Return | Writes::WriteThread(_) => None,
            },
            clock: shared.clock(),
        };
        Ok(Self {
            seat: shared.presence.join(),
            tasks: TaskOwner::new(cells, context),
            depth,
            outstanding: 0,
            room: 0,
            wakes: WakeAccount::default(),
            rested: true,
            pool: Arc::clone(pool),
            writes,
        })
    }

    /// Hands `work` to the workers. Never waits, never allocates.
    ///
    /// # Errors
    /// Gives the work back where the pool or the lane is full, the pool has been shut down, the work
    /// is malformed, or it has a route that the lane doesn't serve. Run it inline:
    /// [`run_span`](super::run_span) reports what is wrong with it.
    pub fn hand_off(&mut self, work: Work) -> std::result::Result<(), Work> {
        let parts = usize::from(work.parts.get());
        if !self.writes.serve(&work.route)
            || self.outstanding == self.depth
            || !self.has_room(parts)
        {
            return Err(work);
        }
        let pool = self.pool.shared();
        pool.presence.running(&mut self.seat);
        let summons = work.summons();
        let parts = self.tasks.start(work)?;
        self.outstanding += 1;
        pool.submit(parts, summons);
        Ok(())
    }

    /// Appends what has ended to `done`, without waiting and without growing it: at most what fits,
    /// and no further slot after 256 KiB of memory. The rest comes with the next call.
    pub fn collect(&mut self, done: &mut Vec<Done>) {
        let mut collected_bytes = 0;
        while self.outstanding > 0
            && done.len() < done.capacity()
            && collected_bytes < COLLECT_BYTES
        {
            let Some(next) = self.tasks.collect() else {
                return;
            };
            self.outstanding -= 1;
            collected_bytes += next.buffer.as_ref().map_or(0, SlotBuffer::area_len);
            done.push(next);
        }
    }

    /// Announces that the thread is about to sleep on [`Lane::wake_fd`]. Returns `false` where
    /// something has ended already: don't sleep, collect. After `true`, call [`Lane::end_sleep`].
    #[must_use]
    pub fn prepare_sleep(&mut self) -> bool {
        let mailbox = &self.tasks.context().mailbox;
        let asleep = mailbox.wake.arm(&mut self.wakes, || !mailbox.is_empty());
        if asleep {
            self.rested = true;
            self.pool.shared().outsider_sleeps(&mut self.seat);
        }
        asleep
    }

    /// The eventfd that becomes readable, once per sleep, when work ends after
    /// [`Lane::prepare_sleep`]. It may also be readable early; the sleep ends then like any other.
    #[must_use]
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.tasks.context().mailbox.wake.fd()
    }

    /// Ends the sleep that [`Lane::prepare_sleep`] announced, and drains the eventfd.
    pub fn end_sleep(&mut self) {
        self.tasks.context().mailbox.wake.disarm(&mut self.wakes);
        self.pool.shared().presence.running(&mut self.seat);
    }

    /// Says that the queue works, where it does so without [`Lane::load`] or a hand-off.
    #[inline]
    pub fn resume(&mut self) {
        self.pool.shared().presence.running(&mut self.seat);
    }

    /// Says that the queue has nothing in flight since `now_ns`: its thread may go on elsewhere,
    /// and soon does not count as needing a core. [`Lane::load`] and a hand-off say the contrary.
    #[inline]
    pub fn pause(&mut self, now_ns: u64) {
        self.pool.shared().presence.pausing(&mut self.seat, now_ns);
    }

    /// Runs one queued part, of this or another queue, on the calling thread; `false` where none is
    /// queued, or where another queue's thread is bound to the same CPU and has work of its own for it.
    /// `same_cpu` work is left to its own worker.
    pub fn assist(&mut self) -> bool {
        let pool = self.pool.shared();
        let assisted = !pool.presence.is_crowded(&self.seat) && pool.assist();
        self.rested |= assisted;
        assisted
    }

    /// Looks for results for as long as a worker would spin, where works are out and the core would
    /// be idle otherwise. Returns whether something can be collected or assisted with. Cheaper than
    /// a sleep for work that ends within microseconds.
    #[must_use]
    pub fn spin(&mut self) -> bool {
        let (pool, mailbox) = (self.pool.shared(), &self.tasks.context().mailbox);
        let may_spin = |now_ns| pool.may_spin(now_ns) && !pool.presence.is_crowded(&self.seat);
        if self.outstanding == 0 || !may_spin(pool.clock().now_ns()) {
            return false;
        }
        self.rested |= mailbox.is_empty();
        let mut spinner = Spinner::new(pool.clock(), pool.spin_ns());
        while mailbox.is_empty() && !pool.has_queued() {
            if !spinner.goes_on(may_spin) {
                return false;
            }
        }
        true
    }

    /// How busy the pool is at `now_ns`, by [`Clock`](crate::clock::Clock). The queue counts as
    /// running from then on.
    #[inline]
    pub fn load(&mut self, now_ns: u64) -> PoolLoad {
        let pool = self.pool.shared();
        pool.presence.running(&mut self.seat);
        let saturated = !std::mem::take(&mut self.rested);
        PoolLoad {
            saturated,
            ..pool.load(now_ns)
        }
    }

    /// Works handed off and not collected yet.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// The pool that the lane leads to.
    #[must_use]
    pub fn pool(&self) -> &Arc<WorkerPool> {
        &self.pool
    }

    /// Whether `parts` parts fit, and takes up their room. Looking at the queue costs two cache
    /// misses, so a look is good for half of what it found; other lanes may use the other half.
    fn has_room(&mut self, parts: usize) -> bool {
        let pool = self.pool.shared();
        if pool.is_stopped() {
            return false;
        }
        if self.room < parts {
            let room = pool.room();
            if room < parts {
                return false;
            }
            self.room = parts.max(room / 2);
        }
        self.room -= parts;
        true
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.tasks.wait();
        if let Some(thread) = self.writes.thread() {
            thread.inbox().release(self.depth);
        }
        self.pool.shared().presence.leave(&mut self.seat);
    }
}
