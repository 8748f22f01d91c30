//! A decorator that makes a device fail on purpose: seeded errors, bad sectors, short transfers,
//! `EAGAIN`, transfers of nothing, torn writes, completions out of order.
//!
//! The same seed, plan and sequence of operations give the same faults; each queue of a device has
//! its own stream, in the order of opening, and so has each handle for writing from any thread. At most one fault hits an operation. What was injected
//! is counted, so that a test can tell that its faults took place.
//!
//! Buffers and drop behave as in the device underneath; nothing allocates after opening.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::device::ready::Ready;
use crate::device::{
    Device, DeviceCompletion, DeviceInfo, DeviceOp, DeviceQueue, ImmediateDevice, Pushed,
    QueueConfig, QueueFacts,
};
use crate::error::{Errno, Result};
use crate::request::{Flags, Op};
use crate::units::SECTOR_BYTES;

/// What goes wrong, and how often. Rates are shares of operations, from 0 to 1; together at most 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// Start of the pseudo-random streams.
    pub seed: u64,
    /// Fail with `EIO`, without touching the device.
    pub error_rate: f64,
    /// Fail with `EAGAIN`, without touching the device.
    pub eagain_rate: f64,
    /// Reads and writes that transfer only the first part, a multiple of the logical block. An
    /// operation of a single block is left alone.
    pub short_rate: f64,
    /// Reads and writes that report a transfer of zero bytes.
    pub zero_rate: f64,
    /// Writes that fail with `EIO` after a part, or all, of the data has arrived, in logical blocks.
    pub torn_rate: f64,
    /// Reads, writes, discards and the like that touch one of these 512-byte sectors fail with
    /// `EIO`, always.
    pub bad_sectors: Vec<Range<u64>>,
    /// Whether completions that are ready at the same time come back shuffled.
    pub reorder: bool,
}

/// Number of faults injected so far, over all queues of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// By `error_rate` or a bad sector.
    pub errors: u64,
    /// By `eagain_rate`.
    pub eagain: u64,
    /// By `short_rate`.
    pub short: u64,
    /// By `zero_rate`.
    pub zero: u64,
    /// By `torn_rate`.
    pub torn: u64,
}

/// A device with faults on top of `inner`.
#[derive(Debug)]
pub struct FaultyDevice {
    inner: Arc<dyn Device>,
    plan: FaultPlan,
    counters: Arc<Counters>,
    streams: AtomicU64,
}

impl FaultyDevice {
    /// Puts `plan` on top of `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Device>, plan: FaultPlan) -> Self {
        Self {
            inner,
            plan,
            counters: Arc::default(),
            streams: AtomicU64::new(0),
        }
    }

    /// What was injected so far.
    #[must_use]
    pub fn counts(&self) -> FaultCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FaultCounts {
            errors: read(&self.counters.errors),
            eagain: read(&self.counters.eagain),
            short: read(&self.counters.short),
            zero: read(&self.counters.zero),
            torn: read(&self.counters.torn),
        }
    }

    /// The next stream of faults.
    fn faults(&self) -> Faults {
        let stream = self.streams.fetch_add(1, Ordering::Relaxed);
        let seed = self.plan.seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Faults {
            block_bytes: u64::from(self.inner.info().logical_block_bytes.max(1)),
            plan: self.plan.clone(),
            counters: Arc::clone(&self.counters),
            random: fastrand::Rng::with_seed(seed),
        }
    }
}

impl Device for FaultyDevice {
    fn info(&self) -> DeviceInfo {
        let inner = self.inner.info();
        DeviceInfo {
            kind: format!("faulty:{}", inner.kind),
            ..inner
        }
    }

    fn open_queue(&self, config: &QueueConfig<'_>) -> Result<Box<dyn DeviceQueue>> {
        Ok(Box::new(FaultyQueue {
            inner: self.inner.open_queue(config)?,
            faults: self.faults(),
            records: vec![Record::default(); config.depth as usize].into(),
            free: (0..config.depth).collect(),
            arrived: Vec::with_capacity(config.depth as usize),
            ready: Ready::with_depth(config.depth),
        }))
    }

    fn immediate(&self) -> Option<Arc<dyn ImmediateDevice>> {
        let inner = self.inner.immediate()?;
        let faults = Mutex::new(self.faults());
        Some(Arc::new(FaultyWrites { inner, faults }))
    }
}

/// Writes from any thread, with faults in the order in which the threads come.
#[derive(Debug)]
struct FaultyWrites {
    inner: Arc<dyn ImmediateDevice>,
    faults: Mutex<Faults>,
}

impl ImmediateDevice for FaultyWrites {
    fn write(&self, offset_bytes: u64, data: &[u8], flags: Flags) -> Result<u64, Errno> {
        let len_bytes = data.len() as u64;
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = faults.draw(Op::Write, offset_bytes, len_bytes);
        let arriving_bytes = faults.arriving_bytes(fault, len_bytes);
        drop(faults);
        let arriving = usize::try_from(arriving_bytes).unwrap_or(usize::MAX);
        let arriving = data.get(..arriving).unwrap_or(data);
        let write = || self.inner.write(offset_bytes, arriving, flags);
        match fault {
            Fault::None | Fault::Short => write(),
            Fault::Error => Err(Errno::EIO),
            Fault::Again => Err(Errno::EAGAIN),
            Fault::Zero => Ok(0),
            Fault::Torn => write().and(Err(Errno::EIO)),
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    errors: AtomicU64,
    eagain: AtomicU64,
    short: AtomicU64,
    zero: AtomicU64,
    torn: AtomicU64,
}

/// What is remembered of an operation while the inner device has it.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    token: u64,
    /// What to report instead of success.
    failure: Option<Errno>,
}

/// A fault for one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Error,
    Again,
    Short,
    Zero,
    Torn,
}

/// One stream of faults.
#[derive(Debug)]
struct Faults {
    plan: FaultPlan,
    block_bytes: u64,
    counters: Arc<Counters>,
    random: fastrand::Rng,
}

impl Faults {
    /// Draws the fault of an operation, and counts it. One draw per operation, whatever comes of it.
    fn draw(&mut self, op: Op, offset_bytes: u64, len_bytes: u64) -> Fault {
        let fault = self.choose(op, offset_bytes, len_bytes);
        let counter = match fault {
            Fault::None => return fault,
            Fault::Error => &self.counters.errors,
            Fault::Again => &self.counters.eagain,
            Fault::Short => &self.counters.short,
            Fault::Zero => &self.counters.zero,
            Fault::Torn => &self.counters.torn,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        fault
    }

    fn choose(&mut self, op: Op, offset_bytes: u64, len_bytes: u64) -> Fault {
        let draw = self.random.f64();
        if op != Op::Flush && self.touches_bad_sector(offset_bytes, len_bytes) {
            return Fault::Error;
        }
        let transfer = matches!(op, Op::Read | Op::Write);
        let splits = transfer && len_bytes / self.block_bytes > 1;
        let rates = [
            (Fault::Error, self.plan.error_rate, true),
            (Fault::Again, self.plan.eagain_rate, true),
            (Fault::Short, self.plan.short_rate, splits),
            (Fault::Zero, self.plan.zero_rate, transfer),
            (Fault::Torn, self.plan.torn_rate, op == Op::Write),
        ];
        let mut limit = 0.0;
        for (fault, rate, applies) in rates {
            limit += rate;
            if draw < limit {
                return if applies { fault } else { Fault::None };
            }
        }
        Fault::None
    }

    fn touches_bad_sector(&self, offset_bytes: u64, len_bytes: u64) -> bool {
        let first = offset_bytes / SECTOR_BYTES;
        let end = offset_bytes
            .saturating_add(len_bytes)
            .div_ceil(SECTOR_BYTES);
        let mut bad = self.plan.bad_sectors.iter();
        bad.any(|range| range.start.max(first) < range.end.min(end))
    }

    /// How much of a transfer of `len_bytes` reaches the device, where any does.
    fn arriving_bytes(&mut self, fault: Fault, len_bytes: u64) -> u64 {
        let blocks = len_bytes / self.block_bytes;
        match fault {
            Fault::Short if blocks > 1 => self.block_bytes * self.random.u64(1..blocks),
            Fault::Torn if blocks > 1 => self.block_bytes * self.random.u64(1..=blocks),
            _ => len_bytes,
        }
    }
}

/// Data plane of [`FaultyDevice`].
struct FaultyQueue {
    inner: Box<dyn DeviceQueue>,
    faults: Faults,
    /// One per operation that is not reaped; `free` has the others. The index is the inner token.
    records: Box<[Record]>,
    free: Vec<u32>,
    arrived: Vec<DeviceCompletion>,
    ready: Ready,
}

impl DeviceQueue for FaultyQueue {
    fn push(&mut self, op: DeviceOp) -> Result<Pushed, DeviceOp> {
        // A finished operation keeps its place until it is reaped.
        if self.free.len() <= self.ready.len() {
            return Err(op);
        }
        let fault = self.faults.draw(op.op, op.offset_bytes, op.len_bytes);
        match fault {
            Fault::None => self.forward(op, None),
            Fault::Error => self.refuse(op, Err(Errno::EIO)),
            Fault::Again => self.refuse(op, Err(Errno::EAGAIN)),
            Fault::Zero => self.refuse(op, Ok(0)),
            Fault::Short | Fault::Torn => {
                let failure = (fault == Fault::Torn).then_some(Errno::EIO);
                let len_bytes = self.faults.arriving_bytes(fault, op.len_bytes);
                self.forward(DeviceOp { len_bytes, ..op }, failure)
            }
        }
    }

    fn submit(&mut self) {
        self.inner.submit();
    }

    fn reap(&mut self, done: &mut Vec<DeviceCompletion>) {
        self.inner.reap(&mut self.arrived);
        // Moved out and back, since the loop needs the rest of `self`.
        let mut arrived = std::mem::take(&mut self.arrived);
        for mut completion in arrived.drain(..) {
            let index = completion.token as u32;
            let record = self.records[index as usize];
            completion.token = record.token;
            completion.result = match record.failure {
                Some(errno) => completion.result.and(Err(errno)),
                None => completion.result,
            };
            self.free.push(index);
            self.ready.push(completion);
        }
        self.arrived = arrived;
        if self.faults.plan.reorder {
            while self.ready.len() > 0 && done.len() < done.capacity() {
                done.push(
                    self.ready
                        .swap_remove(self.faults.random.usize(..self.ready.len())),
                );
            }
        } else {
            self.ready.drain_into(done);
        }
    }

    fn wait(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
        if self.ready.len() + self.arrived.len() > 0 {
            return Ok(());
        }
        self.inner.wait(wake, timeout)
    }

    fn facts(&self) -> QueueFacts {
        self.inner.facts()
    }
}

impl FaultyQueue {
    /// Ends an operation here.
    fn refuse(&mut self, op: DeviceOp, result: Result<u64, Errno>) -> Result<Pushed, DeviceOp> {
        self.ready.finish(op, result);
        Ok(Pushed::Queued)
    }

    /// Hands an operation to the inner device under a token of ours.
    fn forward(&mut self, mut op: DeviceOp, failure: Option<Errno>) -> Result<Pushed, DeviceOp> {
        let Some(index) = self.free.pop() else {
            return Err(op);
        };
        let token = op.token;
        self.records[index as usize] = Record { token, failure };
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
        Ok(Pushed::Queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{Area, SlotBuffer};
    use crate::device::memory::MemoryDevice;
    use crate::request::Flags;

    const LEN_BYTES: u64 = 8192;

    fn queue(plan: FaultPlan) -> (FaultyDevice, Box<dyn DeviceQueue>) {
        let memory = MemoryDevice::new(1 << 20).unwrap();
        let device = FaultyDevice::new(Arc::new(memory), plan);
        let config = QueueConfig {
            depth: 4,
            polled: false,
            slots: &[],
        };
        let queue = device.open_queue(&config).unwrap();
        (device, queue)
    }

    fn op(op: Op, token: u64, offset_bytes: u64) -> DeviceOp {
        DeviceOp {
            token,
            op,
            flags: Flags::empty(),
            offset_bytes,
            len_bytes: LEN_BYTES,
            buffer: SlotBuffer::allocate(1, LEN_BYTES as usize).unwrap().pop(),
            area: Area::Data,
            area_offset_bytes: 0,
        }
    }

    fn run(queue: &mut dyn DeviceQueue, op: DeviceOp) -> DeviceCompletion {
        let token = op.token;
        queue.push(op).unwrap();
        queue.submit();
        let mut done = Vec::with_capacity(4);
        queue.reap(&mut done);
        let completion = done.pop().unwrap();
        assert_eq!(completion.token, token);
        assert!(completion.buffer.is_some());
        completion
    }

    #[test]
    fn each_rate_gives_its_fault_and_is_counted() {
        let certain = |set: fn(&mut FaultPlan)| {
            let mut plan = FaultPlan::default();
            set(&mut plan);
            let (device, mut queue) = queue(plan);
            let result = run(&mut *queue, op(Op::Write, 7, 0)).result;
            (result, device.counts())
        };
        let (result, counts) = certain(|plan| plan.error_rate = 1.0);
        assert_eq!((result, counts.errors), (Err(Errno::EIO), 1));
        let (result, counts) = certain(|plan| plan.eagain_rate = 1.0);
        assert_eq!((result, counts.eagain), (Err(Errno::EAGAIN), 1));
        let (result, counts) = certain(|plan| plan.zero_rate = 1.0);
        assert_eq!((result, counts.zero), (Ok(0), 1));
        let (result, counts) = certain(|plan| plan.torn_rate = 1.0);
        assert_eq!((result, counts.torn), (Err(Errno::EIO), 1));
        let (result, counts) = certain(|plan| plan.short_rate = 1.0);
        let len_bytes = result.unwrap();
        assert!(len_bytes > 0 && len_bytes < LEN_BYTES && len_bytes.is_multiple_of(512));
        assert_eq!(counts.short, 1);
    }

    #[test]
    fn a_torn_write_leaves_its_first_part() {
        let plan = FaultPlan {
            torn_rate: 1.0,
            seed: 3,
            ..FaultPlan::default()
        };
        let (_device, mut queue) = queue(plan);
        let mut write = op(Op::Write, 1, 0);
        let buffer = write.buffer.as_mut().unwrap();
        buffer.area_mut(Area::Data).fill(0x5a);
        assert_eq!(run(&mut *queue, write).result, Err(Errno::EIO));
        let read = run(&mut *queue, op(Op::Read, 2, 0)).buffer.unwrap();
        let written = read.area(Area::Data);
        let len = written.iter().take_while(|&&byte| byte == 0x5a).count();
        assert!(len > 0 && len.is_multiple_of(512));
        assert!(written[len..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn bad_sectors_fail_and_their_neighbours_do_not() {
        let plan = FaultPlan {
            bad_sectors: vec![16..17, 24..24],
            ..FaultPlan::default()
        };
        let (device, mut queue) = queue(plan);
        assert_eq!(run(&mut *queue, op(Op::Read, 1, 0)).result, Ok(LEN_BYTES));
        let bad = run(&mut *queue, op(Op::Read, 2, LEN_BYTES));
        assert_eq!(bad.result, Err(Errno::EIO));
        let after = run(&mut *queue, op(Op::Read, 3, LEN_BYTES + 512));
        assert_eq!(after.result, Ok(LEN_BYTES));
        assert_eq!(device.counts().errors, 1);
    }

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        let faults = |seed| {
            let plan = FaultPlan {
                seed,
                error_rate: 0.3,
                short_rate: 0.3,
                ..FaultPlan::default()
            };
            let (_device, mut queue) = queue(plan);
            let one = |n| run(&mut *queue, op(Op::Read, n, 0)).result;
            (0..64).map(one).collect::<Vec<_>>()
        };
        assert_eq!(faults(1), faults(1));
        assert_ne!(faults(1), faults(2));
    }
}
