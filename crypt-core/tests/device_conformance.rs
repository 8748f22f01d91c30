//! What every device promises, checked for every implementation in one table.
//!
//! An implementation that is not in the table fails the suite. Something that this machine lacks
//! (root for loop devices, direct I/O in the temporary directory) is printed as `skipped: why`.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "a test may fail by panic, its helpers too"
)]

mod device_subjects;
mod loop_device;

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::device::{Device, DeviceCompletion, DeviceOp, DeviceQueue, Pushed, QueueConfig};
use crypt_core::error::Errno;
use crypt_core::request::{Flags, Op};
use device_subjects::{Subject, each, sources, subjects};
use loop_device::loop_device;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

/// Length of most transfers here, a multiple of every logical block.
const BLOCK_BYTES: u64 = 4096;
/// Nothing takes this long, however slow the machine: past it, a completion is lost.
const HANG_LIMIT: Duration = Duration::from_secs(120);

/// A queue with its slots, as a pipeline would hold them.
struct Rig {
    queue: Box<dyn DeviceQueue>,
    slots: Vec<SlotBuffer>,
    /// What was over when it was pushed.
    over: Vec<DeviceCompletion>,
    wake: OwnedFd,
}

impl Rig {
    fn open(subject: &Subject, device: &dyn Device, depth: u32) -> Self {
        let slots = SlotBuffer::allocate(depth, 4 * BLOCK_BYTES as usize).unwrap();
        let queue = device.open_queue(&QueueConfig {
            depth,
            polled: subject.polled,
            slots: &slots,
        });
        Self {
            queue: queue.unwrap_or_else(|error| panic!("{}: {error}", subject.name)),
            slots,
            over: Vec::new(),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap(),
        }
    }

    /// An operation on whole blocks with a slot of the rig.
    fn op(&mut self, op: Op, block: u64, len_bytes: u64) -> DeviceOp {
        DeviceOp {
            token: block,
            op,
            flags: Flags::empty(),
            offset_bytes: block * BLOCK_BYTES,
            len_bytes,
            buffer: self.slots.pop(),
            area: Area::Data,
            area_offset_bytes: 0,
        }
    }

    /// Pushes, which must be accepted. What is over at once waits for [`Rig::reap`].
    fn push(&mut self, op: DeviceOp) {
        match self.queue.push(op) {
            Ok(Pushed::Queued) => {}
            Ok(Pushed::Done(completion)) => self.over.push(completion),
            Err(_) => panic!("full below its depth"),
        }
    }

    /// Appends what is over, at once or later.
    fn reap(&mut self, done: &mut Vec<DeviceCompletion>) {
        let room = done.capacity() - done.len();
        done.extend(self.over.drain(..room.min(self.over.len())));
        self.queue.reap(done);
    }

    /// Waits until there may be something to reap.
    fn wait(&mut self, timeout: Duration) -> Result<(), Errno> {
        if !self.over.is_empty() {
            return Ok(());
        }
        self.queue.wait(self.wake.as_fd(), Some(timeout))
    }

    /// Waits for `count` completions.
    fn finish(&mut self, count: usize) -> Vec<DeviceCompletion> {
        let start = Instant::now();
        let mut done = Vec::with_capacity(count);
        loop {
            self.reap(&mut done);
            if done.len() == count {
                return done;
            }
            assert!(start.elapsed() < HANG_LIMIT, "a completion is lost");
            self.wait(Duration::from_secs(1)).unwrap();
        }
    }

    /// Runs one operation and takes its slot back.
    fn run(&mut self, op: DeviceOp) -> Result<u64, Errno> {
        self.push(op);
        self.queue.submit();
        let completion = self.finish(1).pop().unwrap();
        self.slots.extend(completion.buffer);
        completion.result
    }

    fn write(&mut self, block: u64, byte: u8) -> Result<u64, Errno> {
        let mut op = self.op(Op::Write, block, BLOCK_BYTES);
        op.memory_mut().fill(byte);
        self.run(op)
    }

    fn read(&mut self, block: u64) -> Vec<u8> {
        let op = self.op(Op::Read, block, BLOCK_BYTES);
        assert_eq!(self.run(op), Ok(BLOCK_BYTES));
        self.slots.last().unwrap().area(Area::Data)[..BLOCK_BYTES as usize].to_vec()
    }

    fn holds(&mut self, block: u64, byte: u8) -> bool {
        self.read(block).iter().all(|&found| found == byte)
    }
}

#[test]
fn every_implementation_is_registered() {
    let registered = subjects();
    for source in sources() {
        let known = registered
            .iter()
            .any(|subject| subject.sources.contains(&source.as_str()));
        assert!(
            known,
            "src/device/{source} implements a device but is not in the table"
        );
    }
}

#[test]
fn what_is_written_is_read_back() {
    each(|subject, fixture| {
        if !subject.stores {
            return;
        }
        let mut rig = Rig::open(subject, &*fixture.device, 4);
        for block in 0..16 {
            assert_eq!(rig.write(block, block as u8 + 1), Ok(BLOCK_BYTES));
        }
        for block in (0..16).rev() {
            assert!(rig.holds(block, block as u8 + 1), "block {block}");
        }
        let mut long = rig.op(Op::Read, 3, 3 * BLOCK_BYTES);
        long.area = Area::Bounce;
        long.area_offset_bytes = BLOCK_BYTES as u32;
        assert_eq!(rig.run(long), Ok(3 * BLOCK_BYTES));
        let bounce = rig.slots.last().unwrap().area(Area::Bounce);
        for (n, block) in bounce.chunks(BLOCK_BYTES as usize).skip(1).enumerate() {
            assert!(block.iter().all(|&byte| byte == n as u8 + 4));
        }
    });
}

#[test]
fn every_operation_completes_and_touches_its_range_only() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 4);
        let can_discard = fixture.device.info().can_discard;
        for op in [Op::Flush, Op::Discard, Op::WriteZeroes, Op::Allocate] {
            for block in [4, 5, 6] {
                rig.write(block, 0x77).unwrap();
            }
            let len_bytes = if op == Op::Flush { 0 } else { BLOCK_BYTES };
            let request = rig.op(op, 5, len_bytes);
            let result = rig.run(request);
            let lacking = match op {
                Op::Discard => !can_discard,
                Op::Allocate => subject.block_device,
                _ => false,
            };
            if lacking {
                assert_eq!(result, Err(Errno::EOPNOTSUPP), "{op:?}");
            } else {
                assert_eq!(result, Ok(len_bytes), "{op:?}");
            }
            if subject.stores {
                assert!(rig.holds(4, 0x77) && rig.holds(6, 0x77), "{op:?}");
                match op {
                    Op::WriteZeroes => assert!(rig.holds(5, 0)),
                    Op::Discard => {}
                    _ => assert!(rig.holds(5, 0x77), "{op:?}"),
                }
            }
        }
    });
}

#[test]
fn a_range_may_be_longer_than_any_buffer() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 2);
        let blocks = 300;
        rig.write(299, 0x11).unwrap();
        rig.write(300, 0x22).unwrap();
        let mut request = rig.op(Op::WriteZeroes, 0, blocks * BLOCK_BYTES);
        request.flags = Flags::FUA;
        assert_eq!(rig.run(request), Ok(blocks * BLOCK_BYTES));
        if subject.stores {
            assert!(rig.holds(299, 0) && rig.holds(300, 0x22));
        }
    });
}

#[test]
fn wrong_ranges_are_refused() {
    each(|subject, fixture| {
        let info = fixture.device.info();
        let block_bytes = u64::from(info.logical_block_bytes);
        let end_bytes = info.size_bytes / block_bytes * block_bytes;
        let last_block = u64::MAX / block_bytes * block_bytes;
        let wrong = [
            (end_bytes, block_bytes),
            (end_bytes - block_bytes, 2 * block_bytes),
            (last_block, block_bytes),
            (u64::MAX, block_bytes),
            (0, 0),
            (1, block_bytes),
            (0, block_bytes - 1),
            (block_bytes, last_block),
        ];
        let mut rig = Rig::open(subject, &*fixture.device, 2);
        for (offset_bytes, len_bytes) in wrong {
            for op in [
                Op::Read,
                Op::Write,
                Op::Discard,
                Op::WriteZeroes,
                Op::Allocate,
            ] {
                let mut request = rig.op(op, 0, len_bytes);
                request.offset_bytes = offset_bytes;
                let result = rig.run(request);
                assert_eq!(
                    result,
                    Err(Errno::EINVAL),
                    "{op:?} at {offset_bytes}, {len_bytes} bytes"
                );
            }
        }
        let last = rig.op(Op::Read, 0, block_bytes);
        let last = DeviceOp {
            offset_bytes: end_bytes - block_bytes,
            ..last
        };
        assert_eq!(rig.run(last), Ok(block_bytes), "the last block");
    });
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 2);
        for op in [Op::Read, Op::Write] {
            let without = DeviceOp {
                buffer: None,
                ..rig.op(op, 0, BLOCK_BYTES)
            };
            assert_eq!(rig.run(without), Err(Errno::EINVAL));
            rig.slots = SlotBuffer::allocate(2, 4 * BLOCK_BYTES as usize).unwrap();
            for (area_offset_bytes, len_bytes) in [
                (0, 5 * BLOCK_BYTES),
                (BLOCK_BYTES as u32, 4 * BLOCK_BYTES),
                (u32::MAX, BLOCK_BYTES),
            ] {
                let mut request = rig.op(op, 0, len_bytes);
                request.area_offset_bytes = area_offset_bytes;
                assert_eq!(rig.run(request), Err(Errno::EINVAL));
            }
        }
    });
}

#[test]
fn a_full_queue_hands_the_operation_back() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 3);
        for block in 0..3 {
            let op = rig.op(Op::Read, block, BLOCK_BYTES);
            rig.push(op);
        }
        let mut extra = rig.op(Op::Read, 77, BLOCK_BYTES);
        extra.buffer = SlotBuffer::allocate(1, BLOCK_BYTES as usize).unwrap().pop();
        let back = match rig.queue.push(extra) {
            Err(back) => back,
            Ok(Pushed::Done(completion)) if rig.over.len() == 3 => {
                // A queue whose operations are over at once is never full.
                assert_eq!((completion.token, completion.result), (77, Ok(BLOCK_BYTES)));
                assert!(completion.buffer.is_some());
                return;
            }
            Ok(pushed) => panic!("{}: beyond its depth: {pushed:?}", subject.name),
        };
        assert_eq!(
            (back.token, back.op, back.len_bytes),
            (77, Op::Read, BLOCK_BYTES)
        );
        assert!(back.buffer.is_some());
        rig.queue.submit();
        assert_eq!(rig.finish(3).len(), 3);
        assert_eq!(rig.run(back), Ok(BLOCK_BYTES), "room again after the reap");
    });
}

#[test]
fn a_tiny_queue_takes_many_requests() {
    each(|subject, fixture| {
        for (depth, count) in [(1, 1_000), (3, 10_000)] {
            let mut rig = Rig::open(subject, &*fixture.device, depth);
            let (mut pushed, mut finished, mut tokens) = (0_u64, 0_u64, 0_u64);
            let mut done = Vec::with_capacity(depth as usize);
            while finished < count {
                while pushed < count && !rig.slots.is_empty() {
                    let mut op = rig.op(Op::Read, pushed % 64, BLOCK_BYTES);
                    op.token = pushed;
                    rig.push(op);
                    pushed += 1;
                }
                rig.queue.submit();
                rig.wait(HANG_LIMIT).unwrap();
                rig.reap(&mut done);
                for completion in done.drain(..) {
                    assert_eq!(completion.result, Ok(BLOCK_BYTES));
                    rig.slots.extend(completion.buffer);
                    tokens += completion.token;
                    finished += 1;
                }
            }
            assert_eq!(tokens, count * (count - 1) / 2, "each token exactly once");
            assert_eq!(rig.slots.len(), depth as usize);
        }
    });
}

#[test]
fn each_buffer_comes_back_with_its_operation() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 8);
        for (token, op) in Op::ALL.into_iter().enumerate() {
            let mut request = rig.op(op, 1, BLOCK_BYTES);
            let buffer = request.buffer.as_ref().unwrap();
            request.token = 1000 * u64::from(buffer.index()) + token as u64;
            rig.push(request);
        }
        let mut wrong = rig.op(Op::Read, u64::MAX / BLOCK_BYTES, BLOCK_BYTES);
        wrong.token = 1000 * u64::from(wrong.buffer.as_ref().unwrap().index());
        rig.push(wrong);
        rig.queue.submit();
        for completion in rig.finish(7) {
            let index = completion.buffer.unwrap().index();
            assert_eq!(u64::from(index), completion.token / 1000);
        }
    });
}

#[test]
fn memory_of_other_slabs_works_too() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 2);
        rig.slots = SlotBuffer::allocate(5, BLOCK_BYTES as usize).unwrap();
        assert_eq!(rig.write(9, 0x33), Ok(BLOCK_BYTES));
        if subject.stores {
            assert!(rig.holds(9, 0x33));
        }
    });
}

#[test]
fn flush_and_fua_complete() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 2);
        let mut write = rig.op(Op::Write, 2, BLOCK_BYTES);
        write.flags = Flags::FUA | Flags::SYNC;
        write.memory_mut().fill(0x44);
        assert_eq!(rig.run(write), Ok(BLOCK_BYTES));
        let flush = rig.op(Op::Flush, 0, 0);
        assert_eq!(rig.run(flush), Ok(0));
        if subject.stores {
            assert!(rig.holds(2, 0x44));
        }
    });
}

/// Flush requests that a block device has completed (`Documentation/block/stat.rst`).
fn flushes(path: &Path) -> u64 {
    let stat = Path::new("/sys/class/block").join(path.file_name().unwrap());
    let stat = std::fs::read_to_string(stat.join("stat")).unwrap();
    stat.split_whitespace().nth(15).unwrap().parse().unwrap()
}

/// The kernel counts the flushes that reach a block device.
#[test]
fn flush_and_fua_reach_the_block_device() {
    for subject in subjects().iter().filter(|subject| subject.block_device) {
        let device = match loop_device(8 << 20) {
            Ok(device) => device,
            Err(why) => {
                println!("{}: skipped: {why}", subject.name);
                continue;
            }
        };
        let fixture = (subject.open_path)(device.path()).unwrap();
        let mut rig = Rig::open(subject, &*fixture, 2);
        let mut fua = rig.op(Op::Write, 0, BLOCK_BYTES);
        fua.flags = Flags::FUA;
        let before = flushes(device.path());
        rig.run(fua).unwrap();
        let after_fua = flushes(device.path());
        rig.write(1, 1).unwrap();
        let after_write = flushes(device.path());
        let flush = rig.op(Op::Flush, 0, 0);
        rig.run(flush).unwrap();
        let after_flush = flushes(device.path());
        assert!(after_fua > before, "{}: FUA did not flush", subject.name);
        assert_eq!(
            after_write, after_fua,
            "{}: a plain write flushed",
            subject.name
        );
        assert!(
            after_flush > after_write,
            "{}: flush is not one",
            subject.name
        );
    }
}

#[test]
fn dropping_a_queue_finishes_what_is_in_flight() {
    each(|subject, fixture| {
        for round in 1..=8_u8 {
            let mut rig = Rig::open(subject, &*fixture.device, 16);
            for block in 0..16 {
                let mut op = rig.op(Op::Write, block, BLOCK_BYTES);
                op.memory_mut().fill(round);
                rig.push(op);
            }
            rig.queue.submit();
            drop(rig);
            let mut rig = Rig::open(subject, &*fixture.device, 1);
            if subject.stores {
                for block in 0..16 {
                    assert!(rig.holds(block, round), "round {round}, block {block}");
                }
            }
        }
    });
}

/// Block devices are opened exclusively, so one that lingers would be busy.
#[test]
fn a_dropped_device_can_be_opened_again_at_once() {
    for subject in subjects().iter().filter(|subject| subject.block_device) {
        let storage = match loop_device(8 << 20) {
            Ok(storage) => storage,
            Err(why) => {
                println!("{}: skipped: {why}", subject.name);
                continue;
            }
        };
        for round in 0..20 {
            let device = (subject.open_path)(storage.path());
            let device = device.unwrap_or_else(|error| panic!("round {round}: {error}"));
            let second = (subject.open_path)(storage.path()).err();
            assert!(second.is_some_and(|error| error.contains("in use")));
            let mut rig = Rig::open(subject, &*device, 2);
            assert_eq!(rig.write(0, 1), Ok(BLOCK_BYTES));
        }
    }
}

#[test]
fn dropping_a_queue_before_submit_is_harmless() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 4);
        for block in 0..4 {
            let op = rig.op(Op::Read, block, BLOCK_BYTES);
            rig.push(op);
        }
        drop(rig);
    });
}

#[test]
fn a_read_only_device_refuses_every_change() {
    each(|subject, fixture| {
        let Some(device) = &fixture.read_only else {
            println!("{}: skipped: has no read-only form", subject.name);
            return;
        };
        assert!(device.info().read_only);
        let mut rig = Rig::open(subject, &**device, 2);
        for op in Op::ALL {
            let request = rig.op(op, 0, BLOCK_BYTES);
            let result = rig.run(request);
            if op.is_write() {
                assert_eq!(result, Err(Errno::EROFS), "{op:?}");
            } else {
                assert!(result.is_ok(), "{op:?}: {result:?}");
            }
        }
    });
}

#[test]
fn the_list_of_completions_never_grows() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 8);
        for block in 0..8 {
            let op = rig.op(Op::Read, block, BLOCK_BYTES);
            rig.push(op);
        }
        rig.queue.submit();
        let (start, mut finished) = (Instant::now(), 0);
        let mut done: Vec<DeviceCompletion> = Vec::with_capacity(3);
        let capacity = done.capacity();
        while finished < 8 {
            rig.reap(&mut done);
            assert_eq!(done.capacity(), capacity);
            // A full list gets nothing more.
            let len = done.len();
            if len == capacity {
                rig.reap(&mut done);
                assert_eq!((done.len(), done.capacity()), (len, capacity));
            }
            finished += done.drain(..).count();
            assert!(start.elapsed() < HANG_LIMIT, "a completion is lost");
            rig.wait(Duration::from_millis(1)).unwrap();
        }
    });
}

#[test]
fn a_wait_ends_by_wake_up_and_none_is_lost() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 2);
        let waker = rig.wake.try_clone().unwrap();
        let (request, requests) = mpsc::channel::<()>();
        let (counter, counts) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            while requests.recv().is_ok() {
                counter.send(()).unwrap();
                rustix::io::write(&waker, &1_u64.to_ne_bytes()).unwrap();
            }
        });
        for round in 0..300 {
            request.send(()).unwrap();
            let start = Instant::now();
            // As a pipeline does: wait, drain the wake-up, look at what it announced.
            while counts.try_recv().is_err() {
                rig.wait(HANG_LIMIT).unwrap();
                let _empty = rustix::io::read(&rig.wake, &mut [0; 8]);
                assert!(start.elapsed() < HANG_LIMIT, "wake-up {round} is lost");
            }
            if round % 3 == 0 {
                let op = rig.op(Op::Read, 0, BLOCK_BYTES);
                rig.run(op).unwrap();
            }
        }
        drop(request);
        thread.join().unwrap();
    });
}

#[test]
fn a_wake_up_before_the_wait_ends_it() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 2);
        for _ in 0..20 {
            rustix::io::write(&rig.wake, &1_u64.to_ne_bytes()).unwrap();
            // Not drained in between: the level counts.
            for _ in 0..2 {
                let start = Instant::now();
                rig.wait(HANG_LIMIT).unwrap();
                assert!(start.elapsed() < HANG_LIMIT, "the wake-up was lost");
            }
            rustix::io::read(&rig.wake, &mut [0; 8]).unwrap();
        }
    });
}

#[test]
fn a_wait_ends_by_completion_or_time() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 2);
        rig.wait(Duration::from_millis(5)).unwrap();
        for block in 0..50 {
            let op = rig.op(Op::Read, block, BLOCK_BYTES);
            rig.push(op);
            rig.queue.submit();
            let mut done = Vec::with_capacity(1);
            let start = Instant::now();
            while done.is_empty() {
                rig.wait(HANG_LIMIT).unwrap();
                rig.reap(&mut done);
                assert!(start.elapsed() < HANG_LIMIT, "the completion ended no wait");
            }
            rig.slots.extend(done.pop().unwrap().buffer);
        }
    });
}

#[test]
fn two_queues_work_at_once() {
    each(|subject, fixture| {
        let run = |half: u64| {
            let mut rig = Rig::open(subject, &*fixture.device, 4);
            for round in 0..20_u64 {
                let byte = (round * 2 + half) as u8;
                for n in 0..8 {
                    rig.write(n * 2 + half, byte).unwrap();
                }
                for n in 0..8 {
                    assert!(!subject.stores || rig.holds(n * 2 + half, byte));
                }
            }
        };
        thread::scope(|scope| {
            let threads = [0, 1].map(|half| scope.spawn(move || run(half)));
            for thread in threads {
                assert!(thread.join().is_ok(), "a queue failed");
            }
        });
    });
}

/// A queue on the wrong thread may fail, but it answers.
#[test]
fn a_queue_that_moved_to_another_thread_still_answers() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 4);
        assert_eq!(rig.write(0, 1), Ok(BLOCK_BYTES));
        let moved = move || {
            for block in 0..3 {
                let op = rig.op(Op::Read, block, BLOCK_BYTES);
                rig.push(op);
            }
            rig.queue.submit();
            let mut done = Vec::with_capacity(4);
            rig.reap(&mut done);
            let exist = Errno::from_raw(rustix::io::Errno::EXIST.raw_os_error());
            let start = Instant::now();
            while done.len() < 3 {
                assert!(start.elapsed() < HANG_LIMIT, "an operation got no answer");
                let _refused = rig.wait(Duration::from_millis(1));
                rig.reap(&mut done);
            }
            for completion in done {
                assert!(completion.buffer.is_some());
                // A ring has one issuer, everything else may not care.
                let expected = match subject.engine {
                    "io_uring" => Err(exist),
                    _ => Ok(BLOCK_BYTES),
                };
                assert_eq!(completion.result, expected);
            }
        };
        assert!(thread::scope(|scope| scope.spawn(moved).join()).is_ok());
    });
}

/// Dropping where nothing can be waited for must not free what the kernel still uses.
#[test]
fn a_queue_dropped_on_another_thread_is_safe() {
    each(|subject, fixture| {
        let mut rig = Rig::open(subject, &*fixture.device, 8);
        for block in 0..8 {
            let op = rig.op(Op::Read, block, BLOCK_BYTES);
            rig.push(op);
        }
        rig.queue.submit();
        thread::scope(|scope| scope.spawn(move || drop(rig)).join()).unwrap();
        // Memory that was freed too early would be handed out again, and be written into.
        let fresh = SlotBuffer::allocate(8, 4 * BLOCK_BYTES as usize).unwrap();
        thread::sleep(Duration::from_millis(20));
        for slot in &fresh {
            assert!(slot.area(Area::Data).iter().all(|&byte| byte == 0));
        }
    });
}

#[test]
fn facts_say_what_was_had() {
    each(|subject, fixture| {
        let rig = Rig::open(subject, &*fixture.device, 4);
        let facts = rig.queue.facts();
        assert_eq!(facts.engine, subject.engine, "{facts:?}");
        assert_eq!(facts.direct, subject.direct, "{facts:?}");
        let can_poll = fixture.device.info().can_poll;
        assert_eq!(facts.polled, subject.polled && can_poll, "{facts:?}");
        let explained = facts.polled || !subject.polled || !facts.notes.is_empty();
        assert!(
            explained,
            "polling was asked for, not had, and not explained"
        );
        if facts.engine == "io_uring" && !facts.registered_buffers {
            assert!(!facts.notes.is_empty(), "not registered, and not explained");
        }
    });
}

/// Devices are shared: the type system must agree.
#[test]
fn a_device_is_shared_between_threads() {
    fn shared<T: Send + Sync + ?Sized>() {}
    shared::<dyn Device>();
    shared::<Arc<dyn Device>>();
}

#[test]
fn devices_that_are_done_at_once_take_writes_from_any_thread() {
    each(|subject, fixture| {
        let immediate = fixture.device.immediate();
        assert_eq!(immediate.is_some(), subject.engine == "immediate");
        let Some(immediate) = immediate else {
            return;
        };
        let fua = Flags::FUA;
        thread::scope(|scope| {
            for thread in 0..4 {
                let immediate = Arc::clone(&immediate);
                scope.spawn(move || {
                    // Neighbours, so that the threads meet in whatever the device locks.
                    for block in (thread..64).step_by(4) {
                        let data = [block as u8 + 1; BLOCK_BYTES as usize];
                        let result = immediate.write(block * BLOCK_BYTES, &data, fua);
                        assert_eq!(result, Ok(BLOCK_BYTES));
                    }
                });
            }
        });
        let mut rig = Rig::open(subject, &*fixture.device, 4);
        if subject.stores {
            assert!((0..64).all(|block| rig.holds(block, block as u8 + 1)));
        }
        let size_bytes = fixture.device.info().size_bytes;
        let data = [0; BLOCK_BYTES as usize];
        for (offset_bytes, len) in [
            (0, 0),
            (100, 512),
            (0, 100),
            (size_bytes, 512),
            (u64::MAX, 512),
        ] {
            let result = immediate.write(offset_bytes, &data[..len], fua);
            assert_eq!(result, Err(Errno::EINVAL), "{offset_bytes} {len}");
        }
        let read_only = fixture.read_only.as_ref().unwrap().immediate().unwrap();
        assert_eq!(read_only.write(0, &data, fua), Err(Errno::EROFS));
    });
}
