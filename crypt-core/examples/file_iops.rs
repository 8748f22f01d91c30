//! Random 4 KiB reads from a file at depth 32 through its bare device queue, without pipeline or
//! cipher: what the operating system gives, to compare with other tools on the same file.
//!
//! `cargo run --release -p crypt-core --example file_iops -- PATH [direct|buffered] [SECONDS]`
//! prints operations per second.

#![forbid(unsafe_code)]

use std::error::Error;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::device::file::{FileDevice, FileOptions};
use crypt_core::device::{Device, DeviceOp, QueueConfig};
use crypt_core::request::{Flags, Op};
use rustix::event::{EventfdFlags, eventfd};

const DEPTH: u32 = 32;
const BLOCK_BYTES: u64 = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: file_iops PATH [direct|buffered] [SECONDS]")?;
    let direct = arguments.next().is_none_or(|mode| mode == "direct");
    let seconds = arguments.next().map_or(Ok(5), |seconds| seconds.parse())?;
    let options = FileOptions {
        direct,
        read_only: true,
        ..FileOptions::default()
    };
    let device = FileDevice::open(path, options)?;
    let (count, elapsed) = run(&device, Duration::from_secs(seconds))?;
    println!("{:.0}", count as f64 / elapsed.as_secs_f64());
    Ok(())
}

fn run(device: &FileDevice, runtime: Duration) -> Result<(u64, Duration), Box<dyn Error>> {
    let blocks = device.info().size_bytes / BLOCK_BYTES;
    let mut slots = SlotBuffer::allocate(DEPTH, BLOCK_BYTES as usize)?;
    let mut queue = device.open_queue(&QueueConfig {
        depth: DEPTH,
        polled: false,
        slots: &slots,
    })?;
    eprintln!("{:?}", queue.facts());
    let wake = eventfd(0, EventfdFlags::CLOEXEC)?;
    let mut done = Vec::with_capacity(DEPTH as usize);
    let mut random = fastrand::Rng::with_seed(1);
    let (mut count, start) = (0, Instant::now());
    while start.elapsed() < runtime {
        while let Some(buffer) = slots.pop() {
            let pushed = queue.push(DeviceOp {
                token: 0,
                op: Op::Read,
                flags: Flags::empty(),
                offset_bytes: random.u64(..blocks) * BLOCK_BYTES,
                len_bytes: BLOCK_BYTES,
                buffer: Some(buffer),
                area: Area::Data,
                area_offset_bytes: 0,
            });
            pushed.map_err(|_| "the queue is full below its depth")?;
        }
        queue.submit();
        queue.reap(&mut done);
        if done.is_empty() {
            queue.wait(wake.as_fd(), None)?;
            queue.reap(&mut done);
        }
        for completion in done.drain(..) {
            completion.result?;
            slots.extend(completion.buffer);
            count += 1;
        }
    }
    Ok((count, start.elapsed()))
}
