//! A decorator that gives a device the timing of a real drive: each operation is done by the device
//! underneath at once, and its completion is held back until the time that a
//! [`ServiceModel`] gives.
//!
//! All queues of a device share one model, as they would share one drive. An operation that fails
//! underneath completes without delay. A wait sleeps until shortly before the next completion is
//! due and spins over the rest, so completions come within a few microseconds of their time where
//! the thread has a CPU; for that it lowers the timer slack of the waiting thread to one
//! nanosecond, and leaves it there. An inner device that is slower than the model makes the
//! completions late.
//!
//! Dropping a queue waits for the device underneath, not for the model. Nothing allocates after
//! opening.

#![forbid(unsafe_code)]

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::buffer::SlotBuffer;
use crate::clock::Clock;
use crate::device::limits::Limits;
use crate::device::memory::MemoryDevice;
use crate::device::null::NullDevice;
use crate::device::ready::wait_readable;
use crate::device::service::{ServiceModel, ServiceOp};
use crate::device::{
    Device, DeviceCompletion, DeviceInfo, DeviceOp, DeviceQueue, Pushed, QueueConfig, QueueFacts,
};
use crate::error::{Errno, Result};

/// How long before a completion is due a wait stops sleeping and spins: longer than a sleeping
/// thread takes to get its CPU back.
const SPIN_NS: u64 = 60_000;

/// A device with the timing of a model.
#[derive(Debug)]
pub struct ModelDevice {
    inner: Arc<dyn Device>,
    model: Arc<Mutex<ServiceModel>>,
}

impl ModelDevice {
    /// Puts the timing of `model` on top of `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Device>, model: ServiceModel) -> Self {
        Self {
            inner,
            model: Arc::new(Mutex::new(model)),
        }
    }

    /// The preset called `name` (see [`ServiceModel::named`]) over memory of `size_bytes`, or over nothing
    /// where it transfers nothing.
    ///
    /// # Errors
    /// As for [`ServiceModel::named`] and [`MemoryDevice::new`].
    pub fn in_memory(name: &str, size_bytes: u64, seed: u64) -> Result<Self> {
        let model = ServiceModel::named(name, size_bytes, seed)?;
        let inner: Arc<dyn Device> = if model.transfers() {
            Arc::new(MemoryDevice::new(size_bytes)?)
        } else {
            Arc::new(NullDevice::new(size_bytes))
        };
        Ok(Self::new(inner, model))
    }

    fn name(&self) -> String {
        let model = self.model.lock();
        let model = model.unwrap_or_else(PoisonError::into_inner);
        model.name().to_owned()
    }
}

impl Device for ModelDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            kind: format!("model:{}", self.name()),
            can_poll: false,
            ..self.inner.info()
        }
    }

    fn open_queue(&self, config: &QueueConfig<'_>) -> Result<Box<dyn DeviceQueue>> {
        let depth = config.depth as usize;
        Ok(Box::new(ModelQueue {
            inner: self.inner.open_queue(config)?,
            model: Arc::clone(&self.model),
            limits: Limits::new(&self.inner.info()),
            clock: Clock::monotonic(),
            polled: config.polled,
            precise: false,
            records: vec![Record::default(); depth].into(),
            free: (0..config.depth).collect(),
            staged: Vec::with_capacity(depth),
            arrived: Vec::with_capacity(depth),
            pending: BinaryHeap::with_capacity(depth),
            sequence: 0,
        }))
    }
}

/// What is remembered of an operation while the inner device has it.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    token: u64,
    due_ns: u64,
}

/// An operation that was pushed and not submitted.
struct Staged {
    index: u32,
    op: ServiceOp,
}

/// A completion that is held back. Ordered by time, the earliest greatest.
struct Pending {
    due_ns: u64,
    sequence: u64,
    completion: DeviceCompletion,
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |pending: &Self| (pending.due_ns, pending.sequence);
        key(other).cmp(&key(self))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pending {}

/// Data plane of [`ModelDevice`].
struct ModelQueue {
    inner: Box<dyn DeviceQueue>,
    model: Arc<Mutex<ServiceModel>>,
    limits: Limits,
    clock: Clock,
    polled: bool,
    /// Whether the owner's thread has its timer slack lowered.
    precise: bool,
    /// One per operation at the inner device; `free` has the others. The index is the inner token.
    records: Box<[Record]>,
    free: Vec<u32>,
    staged: Vec<Staged>,
    arrived: Vec<DeviceCompletion>,
    pending: BinaryHeap<Pending>,
    sequence: u64,
}

impl ModelQueue {
    /// Takes what the inner device has finished, and holds it back.
    fn collect(&mut self) {
        self.inner.reap(&mut self.arrived);
        // Moved out and back, since the loop needs the rest of `self`.
        let mut arrived = std::mem::take(&mut self.arrived);
        for completion in arrived.drain(..) {
            let index = completion.token as u32;
            let Record { token, due_ns } = self.records[index as usize];
            self.free.push(index);
            let due_ns = if completion.result.is_ok() { due_ns } else { 0 };
            self.hold_back(token, due_ns, completion.result, completion.buffer);
        }
        self.arrived = arrived;
    }

    fn hold_back(
        &mut self,
        token: u64,
        due_ns: u64,
        result: Result<u64, Errno>,
        buffer: Option<SlotBuffer>,
    ) {
        self.sequence += 1;
        self.pending.push(Pending {
            due_ns,
            sequence: self.sequence,
            completion: DeviceCompletion {
                token,
                result,
                buffer,
            },
        });
    }

    /// Operations that the inner device still has.
    fn at_inner(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Nanoseconds until the next completion is due; `None` where none is held back.
    fn due_in_ns(&self, now_ns: u64) -> Option<u64> {
        let next = self.pending.peek()?;
        Some(next.due_ns.saturating_sub(now_ns))
    }

    fn sleep_precisely(&mut self) {
        if !self.precise {
            // Without it, sleeps are up to 50 us longer: late, but not wrong.
            let _best_effort = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            self.precise = true;
        }
    }
}

impl DeviceQueue for ModelQueue {
    fn push(&mut self, mut op: DeviceOp) -> Result<Pushed, DeviceOp> {
        // A completion that is held back keeps its place until it is reaped.
        if self.free.len() <= self.pending.len() {
            return Err(op);
        }
        // The model must not see a range that no drive would take.
        if let Err(errno) = self.limits.check(&op) {
            self.hold_back(op.token, 0, Err(errno), op.buffer);
            return Ok(Pushed::Queued);
        }
        let Some(index) = self.free.pop() else {
            return Err(op);
        };
        let token = op.token;
        let service = ServiceOp::from(&op);
        op.token = u64::from(index);
        match self.inner.push(op) {
            Ok(Pushed::Queued) => {}
            Ok(Pushed::Done(completion)) => self.arrived.push(completion),
            Err(mut op) => {
                self.free.push(index);
                op.token = token;
                return Err(op);
            }
        }
        self.records[index as usize] = Record { token, due_ns: 0 };
        self.staged.push(Staged { index, op: service });
        Ok(Pushed::Queued)
    }

    fn submit(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        let now_ns = self.clock.now_ns();
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        for Staged { index, op } in self.staged.drain(..) {
            self.records[index as usize].due_ns = model.admit(now_ns, op);
        }
        drop(model);
        self.inner.submit();
    }

    fn reap(&mut self, done: &mut Vec<DeviceCompletion>) {
        // Not before submit: devices that finish at push would complete without a time.
        if !self.staged.is_empty() {
            return;
        }
        self.collect();
        let now_ns = self.clock.now_ns();
        while self.due_in_ns(now_ns) == Some(0) && done.len() < done.capacity() {
            done.extend(self.pending.pop().map(|pending| pending.completion));
        }
    }

    fn wait(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
        self.sleep_precisely();
        let start_ns = self.clock.now_ns();
        let limit_ns = timeout.map_or(u64::MAX, |timeout| {
            u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)
        });
        loop {
            if self.staged.is_empty() {
                self.collect();
            }
            let now_ns = self.clock.now_ns();
            let left_ns = limit_ns.saturating_sub(now_ns.saturating_sub(start_ns));
            let due_in_ns = self.due_in_ns(now_ns);
            let rest_ns = due_in_ns.unwrap_or(u64::MAX).min(left_ns);
            if rest_ns == 0 {
                return Ok(());
            }
            // A time-out of zero looks without sleeping: the spin.
            let nap_ns = match due_in_ns {
                Some(due_in_ns) => rest_ns.min(due_in_ns.saturating_sub(SPIN_NS)),
                None => rest_ns,
            };
            let nap = (nap_ns < u64::MAX).then_some(Duration::from_nanos(nap_ns));
            if self.at_inner() > 0 {
                self.inner.wait(wake, nap)?;
            }
            let look = if self.at_inner() > 0 {
                Some(Duration::ZERO)
            } else {
                nap
            };
            if wait_readable(wake, look)? {
                return Ok(());
            }
        }
    }

    fn facts(&self) -> QueueFacts {
        let inner = self.inner.facts();
        let mut notes = inner.notes;
        if self.polled {
            let note = "polling was asked for, but completions come from a model's timer";
            notes.push(note.to_owned());
        }
        QueueFacts {
            engine: "timer",
            polled: false,
            notes,
            ..inner
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;
    use crate::buffer::Area;
    use crate::request::{Flags, Op};

    fn read(token: u64, buffer: Option<SlotBuffer>) -> DeviceOp {
        DeviceOp {
            token,
            op: Op::Read,
            flags: Flags::empty(),
            offset_bytes: token << 20,
            len_bytes: 4096,
            buffer,
            area: Area::Data,
            area_offset_bytes: 0,
        }
    }

    #[test]
    fn completions_come_in_order_of_time_and_never_early() {
        const DEPTH: u32 = 16;
        let device = ModelDevice::in_memory("hdd", 16 << 20, 5).unwrap();
        let mut expected = ServiceModel::named("hdd", 16 << 20, 5).unwrap();
        let mut slots = SlotBuffer::allocate(DEPTH, 4096).unwrap();
        let config = QueueConfig {
            depth: DEPTH,
            polled: false,
            slots: &slots,
        };
        let mut queue = device.open_queue(&config).unwrap();
        let clock = Clock::monotonic();
        let wake = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let start_ns = clock.now_ns();
        for token in 0..u64::from(DEPTH) {
            queue.push(read(token, slots.pop())).unwrap();
        }
        queue.submit();
        // A disk serves one after the other, so the whole takes at least as long from any start.
        let shortest_ns = (0..u64::from(DEPTH))
            .map(|token| expected.admit(0, ServiceOp::from(&read(token, None))))
            .max();
        let mut done = Vec::with_capacity(DEPTH as usize);
        let mut tokens = Vec::new();
        while tokens.len() < DEPTH as usize {
            queue
                .wait(wake.as_fd(), Some(Duration::from_millis(1)))
                .unwrap();
            queue.reap(&mut done);
            tokens.extend(done.drain(..).map(|completion| completion.token));
        }
        assert!(clock.now_ns() - start_ns >= shortest_ns.unwrap());
        assert_eq!(tokens, (0..u64::from(DEPTH)).collect::<Vec<_>>());
    }
}
