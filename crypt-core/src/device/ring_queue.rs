//! A queue on a file, or several, over io_uring.
//!
//! One ring carries everything. A queue that polls the hardware has a second, polled ring for reads
//! and writes, since a polled ring can hold neither `fsync` nor the watch on the wake-up; such a
//! queue, and one that was asked to poll where the hardware can't, spins over the completions
//! instead of sleeping.
//!
//! The wait sleeps in the kernel on the ring alone: the wake-up is watched by a one-shot poll inside
//! the ring. That is one system call per sleep, and one more entry only after a wake-up has been
//! used; `poll(2)` on the ring and the eventfd would take a second call to collect. A one-shot poll
//! looks at the level when it is armed, so a wake-up between two waits is never lost.
//!
//! Operations are kept back until [`DeviceQueue::submit`], so that the thread that submits first
//! owns the rings. From any other thread, everything completes with `EEXIST`.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::device::file::Target;
use crate::device::files::Files;
use crate::device::limits::Limits;
use crate::device::ready::Ready;
use crate::device::ring::{Event, Ring};
use crate::device::ring_entry::Action;
use crate::device::ring_probe::polled_ring;
use crate::device::sync::{ALLOCATE, Calls, PUNCH_HOLE, ZERO_RANGE};
use crate::device::{DeviceCompletion, DeviceOp, DeviceQueue, Pushed, QueueConfig, QueueFacts};
use crate::error::{Errno, Error, ErrorKind, Result};
use crate::request::{Flags, Op};
use crate::sys;

/// Deepest queue: io_uring takes 32768 entries, one of which watches the wake-up.
const DEPTH_LIMIT: u32 = 32_767;
/// Most operations handed to the kernel at a time. A device that begins with the first ones while the
/// others are prepared stays busier than one that gets a whole queue at once, whose completions then
/// come at once too: 8 % more random reads at depth 32 on a virtual disk (`scripts/vs-fio.sh`).
const BURST: usize = 4;

/// Data plane of a file through io_uring.
pub(super) struct RingQueue {
    main: Ring,
    polled: Option<Ring>,
    files: Arc<Files>,
    /// For changes of a range that goes over the end of a file; only where there are several.
    calls: Option<Calls>,
    limits: Limits,
    depth: usize,
    /// Operations accepted and not reaped.
    held: usize,
    staged: Vec<DeviceOp>,
    ready: Ready,
    owner: Option<ThreadId>,
    spin: bool,
    /// Whether the file system zeroes a range by itself, as far as known.
    zero_range: bool,
    /// Whether the kernel has a command that discards blocks, as far as known.
    discards_blocks: bool,
    facts: QueueFacts,
}

impl RingQueue {
    /// A queue on open files.
    ///
    /// # Errors
    /// The system's, where it refuses a ring; a depth of zero or beyond what a ring can hold.
    pub(super) fn new(target: Target, config: &QueueConfig<'_>) -> Result<Self> {
        let depth = checked_depth(config.depth)?;
        let Target {
            files, mut facts, ..
        } = target;
        let refused = |source: io::Error| {
            let what = "set up io_uring; check kernel.io_uring_disabled and RLIMIT_MEMLOCK";
            Error::io(format!("{what}, or use the sync engine"), source)
        };
        let mut main = Ring::new(Arc::clone(&files), depth, false).map_err(refused)?;
        let mut polled = None;
        if config.polled {
            match polled_ring(&files, depth, target.poll_block_bytes) {
                Ok(ring) => polled = Some(ring),
                Err(why) => facts.notes.push(why),
            }
        }
        facts.polled = polled.is_some();
        let registered = polled.as_mut().unwrap_or(&mut main).register(config.slots);
        facts.registered_buffers = registered.is_ok() && !config.slots.is_empty();
        if let Err(error) = registered {
            let note = format!("buffers are not registered ({error}); raise RLIMIT_MEMLOCK");
            facts.notes.push(note);
        }
        Ok(Self {
            main,
            polled,
            discards_blocks: true,
            calls: match files.parts().len() {
                1 => None,
                _ => Some(Calls::new(Arc::clone(&files))?),
            },
            files,
            limits: target.limits,
            depth: depth as usize,
            held: 0,
            staged: Vec::with_capacity(depth as usize),
            ready: Ready::with_depth(depth),
            owner: None,
            spin: config.polled,
            zero_range: true,
            facts,
        })
    }

    /// Whether the calling thread may use the rings; the first one to ask may.
    fn adopt(&mut self) -> Result<(), Errno> {
        let current = thread::current().id();
        match self.owner {
            Some(owner) if owner == current => Ok(()),
            Some(_) => Err(rustix::io::Errno::EXIST.into()),
            None => {
                self.main.enable()?;
                if let Some(polled) = &mut self.polled {
                    polled.enable()?;
                }
                self.owner = Some(current);
                Ok(())
            }
        }
    }

    fn start_staged(&mut self) {
        // Moved out and back, since the loop needs the rest of `self`.
        let mut staged = std::mem::take(&mut self.staged);
        let refusal = self.adopt().err();
        for (n, op) in (1..).zip(staged.drain(..)) {
            match refusal {
                None => {
                    let action = self.first_action(&op);
                    self.start(op, action);
                    if n % BURST == 0 {
                        self.hand_over();
                    }
                }
                Some(errno) => self.ready.finish(op, Err(errno)),
            }
        }
        self.staged = staged;
        if refusal.is_none() {
            self.hand_over();
        }
    }

    /// What the kernel can't take now stays in the rings, and goes with the next call.
    fn hand_over(&mut self) {
        for ring in std::iter::once(&mut self.main).chain(&mut self.polled) {
            if ring.has_queued() {
                let _later = ring.submit();
            }
        }
    }

    fn first_action(&self, op: &DeviceOp) -> Action {
        match op.op {
            Op::Read | Op::Write => Action::Transfer,
            Op::Flush => Action::Sync { file: 0 },
            Op::Discard => match self.discards_blocks && self.is_block(op) {
                true => Action::DiscardBlocks,
                false => Action::Fallocate(PUNCH_HOLE),
            },
            Op::Allocate => Action::Fallocate(ALLOCATE),
            Op::WriteZeroes if self.zero_range => Action::Fallocate(ZERO_RANGE),
            Op::WriteZeroes => Action::Zeros { done_bytes: 0 },
        }
    }

    fn start(&mut self, op: DeviceOp, action: Action) {
        let ring = match &mut self.polled {
            Some(polled) if action == Action::Transfer => polled,
            _ => &mut self.main,
        };
        // The table has as many places as the queue has, so this doesn't fail.
        if let Err(op) = ring.start(op, action) {
            self.ready.finish(op, Err(Errno::EAGAIN));
        }
    }

    fn submit_rings(&mut self) -> Result<(), Errno> {
        self.main.kick()?;
        match &mut self.polled {
            Some(polled) => polled.kick(),
            None => Ok(()),
        }
    }

    /// Moves what the kernel has finished to `ready`, and starts what follows from it.
    fn harvest(&mut self) -> Result<(), Errno> {
        if self.owner == Some(thread::current().id()) {
            self.submit_rings()?;
        }
        while let Some(event) = self.next_event() {
            if let Event::Done { op, action, result } = event {
                self.settle(op, action, result);
            }
        }
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        let polled = self.polled.as_mut().and_then(Ring::next);
        polled.or_else(|| self.main.next())
    }

    /// Decides what an answer of the kernel means for its operation.
    fn settle(&mut self, op: DeviceOp, action: Action, result: i32) {
        if result < 0 {
            return self.settle_error(op, action, Errno::from_raw(-result));
        }
        let len_bytes = op.len_bytes;
        match action {
            Action::Transfer => self.ready.finish(op, Ok(result as u64)),
            Action::Sync { file } if op.op == Op::Flush => {
                match file + 1 < self.files.parts().len() {
                    true => self.start(op, Action::Sync { file: file + 1 }),
                    false => self.ready.finish(op, Ok(0)),
                }
            }
            Action::Sync { .. } => self.ready.finish(op, Ok(len_bytes)),
            Action::Zeros { .. } if result == 0 => self.ready.finish(op, Err(Errno::EIO)),
            Action::Zeros { done_bytes } if done_bytes + (result as u64) < len_bytes => {
                let done_bytes = done_bytes + result as u64;
                self.start(op, Action::Zeros { done_bytes });
            }
            // `RWF_DSYNC` exists for writes only; the other changes are synced afterwards.
            _ if op.flags.contains(Flags::FUA) => {
                let file = self.files.place(op.offset_bytes);
                let file = file.map_or(0, |place| place.index);
                self.start(op, Action::Sync { file });
            }
            _ => self.ready.finish(op, Ok(len_bytes)),
        }
    }

    /// Passes an error on, or tries what else does the same.
    fn settle_error(&mut self, op: DeviceOp, action: Action, errno: Errno) {
        let lacking = errno == Errno::EOPNOTSUPP;
        match (op.op, action) {
            (Op::WriteZeroes, Action::Fallocate(_)) if lacking => {
                self.zero_range = false;
                self.start(op, Action::Zeros { done_bytes: 0 });
            }
            // Linux before 6.12.
            (Op::Discard, Action::DiscardBlocks) if lacking => {
                self.discards_blocks = false;
                self.start(op, Action::Fallocate(PUNCH_HOLE));
            }
            // A disk that discards, but can't zero a range; this blocks the queue's thread.
            (Op::Discard, Action::Fallocate(_)) if lacking && self.is_block(&op) => {
                let result = self.discard_now(&op);
                self.ready.finish(op, result);
            }
            _ => self.ready.finish(op, Err(errno)),
        }
    }

    /// Whether an operation is for a block device.
    fn is_block(&self, op: &DeviceOp) -> bool {
        let place = self.files.place(op.offset_bytes);
        place.is_some_and(|place| self.files.parts()[place.index].is_block)
    }

    fn discard_now(&self, op: &DeviceOp) -> Result<u64, Errno> {
        let place = self.files.place(op.offset_bytes).ok_or(Errno::EINVAL)?;
        let file = self.files.parts()[place.index].file.as_fd();
        sys::discard_blocks(file, place.offset_bytes, op.len_bytes)?;
        Ok(op.len_bytes)
    }

    /// What the limits allow is cut at the end of its file, or, where it can't be short, done here and now, which
    /// blocks the queue's thread. Its result, where it is over.
    fn admit(&mut self, op: &mut DeviceOp) -> Option<Result<u64, Errno>> {
        if let Err(errno) = self.limits.check(op) {
            return Some(Err(errno));
        }
        let calls = self.calls.as_mut().filter(|_| op.op != Op::Flush)?;
        let room_bytes = self
            .files
            .place(op.offset_bytes)
            .map_or(0, |place| place.len_bytes);
        match op.op {
            Op::Read | Op::Write if room_bytes == 0 => Some(Err(Errno::EINVAL)),
            Op::Read | Op::Write => {
                op.len_bytes = op.len_bytes.min(room_bytes);
                None
            }
            _ => (op.len_bytes > room_bytes).then(|| calls.execute(op)),
        }
    }

    fn sleep(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
        self.main.watch(wake);
        self.main.wait(timeout)
    }

    /// Spins until something is ready, the wake-up came, or `timeout` has passed.
    fn spin(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.main.watch(wake);
        loop {
            self.submit_rings()?;
            while let Some(event) = self.next_event() {
                match event {
                    Event::Done { op, action, result } => self.settle(op, action, result),
                    Event::Wake => return Ok(()),
                }
            }
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if self.ready.len() > 0 || late {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    fn in_flight(&self) -> usize {
        self.main.in_flight() + self.polled.as_ref().map_or(0, Ring::in_flight)
    }
}

impl DeviceQueue for RingQueue {
    fn push(&mut self, mut op: DeviceOp) -> Result<Pushed, DeviceOp> {
        if self.held >= self.depth {
            return Err(op);
        }
        self.held += 1;
        match self.admit(&mut op) {
            None => self.staged.push(op),
            Some(result) => self.ready.finish(op, result),
        }
        Ok(Pushed::Queued)
    }

    fn submit(&mut self) {
        if !self.staged.is_empty() {
            self.start_staged();
        }
    }

    fn reap(&mut self, done: &mut Vec<DeviceCompletion>) {
        // An error of the ring keeps coming back from `wait`, which can say so.
        let _reported_by_wait = self.harvest();
        let before = done.len();
        self.ready.drain_into(done);
        self.held -= done.len() - before;
    }

    fn wait(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
        self.adopt()?;
        self.harvest()?;
        if self.ready.len() > 0 {
            return Ok(());
        }
        if self.spin && self.in_flight() > 0 {
            self.spin(wake, timeout)
        } else {
            self.sleep(wake, timeout)
        }
    }

    fn facts(&self) -> QueueFacts {
        self.facts.clone()
    }
}

fn checked_depth(depth: u32) -> Result<u32> {
    if (1..=DEPTH_LIMIT).contains(&depth) {
        return Ok(depth);
    }
    Err(Error::new(
        ErrorKind::LimitExceeded,
        format!("a queue of depth {depth} does not fit a ring; use 1 to {DEPTH_LIMIT}"),
    ))
}
