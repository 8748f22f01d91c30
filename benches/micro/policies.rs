//! The policies against each other on the memory device: one queue, closed loop, interleaved.
//!
//! `cargo bench -p crypt-core --bench policies [-- PART_OF_A_CELL_NAME]`
//!
//! Each cell runs every policy in turn, many times over; the throughput is the median of the turns,
//! `best` their 90th percentile (what a busy machine disturbs least), the ratio to `inline` the median
//! of the paired ratios. Latencies are those of all turns together.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use crypt_core::clock::Clock;
use crypt_core::device::memory::MemoryDevice;
use crypt_core::exec::{WorkerConfig, WorkerPool};
use crypt_core::key::Key;
use crypt_core::policy::PolicySpec;
use crypt_core::request::{Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::{ByteLength, SectorIndex};
use crypt_core::{Queue, QueueOptions, Result, Volume};

const DEVICE_BYTES: u64 = 64 << 20;
const TURN_NS: u64 = 4_000_000;
/// A turn is at least this many times the bytes in flight, at this rate.
const MIN_ROUNDS: u64 = 4;
const BYTES_PER_NS: u64 = 4;
/// Between turns, so that the queue of the last one no longer counts as running.
const REST: Duration = Duration::from_micros(300);
const TURNS: usize = 75;

struct Cell {
    op: Op,
    block: u64,
    depth: u32,
}

/// One policy in one cell.
struct Runner {
    spec: PolicySpec,
    queue: Queue,
    next_block: u64,
    mb_per_s: Vec<f64>,
    latencies_ns: Vec<u64>,
}

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let full = arguments.iter().any(|arg| arg == "--bench");
    let wanted = arguments.iter().find(|arg| !arg.starts_with("--"));
    let turns = if full { TURNS } else { 1 };
    let pool = WorkerPool::start(&WorkerConfig::default())?;
    println!(
        "{:<22}{:<12}{:>10}{:>10}{:>8}{:>12}{:>12}",
        "cell", "policy", "MB/s", "best", "ratio", "p50 us", "p99 us"
    );
    for cell in cells() {
        let name = format!(
            "{:?} {} KiB x {}",
            cell.op,
            cell.block as f64 / 1024.0,
            cell.depth
        );
        if wanted.is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let before = pool.stats();
        let mut runners = PolicySpec::ALL
            .into_iter()
            .map(|spec| Runner::new(spec, &cell, &pool))
            .collect::<Result<Vec<_>>>()?;
        for turn in 0..=turns {
            for runner in &mut runners {
                runner.turn(&cell, turn > 0)?;
            }
        }
        report(&name, &mut runners);
        if arguments.iter().any(|arg| arg == "--verbose") {
            println!(
                "{:?}\n{before:?}\n{:?}",
                runners[2].queue.counters(),
                pool.stats()
            );
            println!("{:?}", runners[2].queue.costs());
        }
    }
    Ok(())
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for op in [Op::Read, Op::Write] {
        for block in [4096, 65_536, 1 << 20] {
            for depth in [1, 4, 32] {
                cells.push(Cell { op, block, depth });
            }
        }
    }
    cells
}

impl Runner {
    fn new(spec: PolicySpec, cell: &Cell, pool: &Arc<WorkerPool>) -> Result<Self> {
        let key = Key::from_bytes(&(0..64).collect::<Vec<u8>>())?;
        let cipher = "aes-xts-plain64".parse::<CipherSpec>()?.build(&key, None)?;
        let volume = Volume::builder(Arc::new(MemoryDevice::new(DEVICE_BYTES)?))
            .cipher(cipher)
            .policy(spec)
            .workers(Arc::clone(pool))
            .build()?;
        Ok(Self {
            spec,
            queue: volume.queue(&QueueOptions {
                depth: cell.depth,
                max_request_bytes: cell.block as u32,
                polled: false,
            })?,
            next_block: 0,
            mb_per_s: Vec::new(),
            latencies_ns: Vec::new(),
        })
    }

    /// Runs for one turn, and drains.
    fn turn(&mut self, cell: &Cell, counts: bool) -> Result<()> {
        std::thread::sleep(REST);
        let clock = Clock::monotonic();
        let mut done = Vec::with_capacity(cell.depth as usize);
        let mut issued_ns = vec![0; cell.depth as usize];
        let (start_ns, mut bytes) = (clock.now_ns(), 0);
        let in_flight_bytes = u64::from(cell.depth) * cell.block;
        let end_ns = start_ns + TURN_NS.max(MIN_ROUNDS * in_flight_bytes / BYTES_PER_NS);
        loop {
            let now_ns = clock.now_ns();
            while now_ns < end_ns
                && let Some(ticket) = self.queue.claim()
            {
                let offset = self.next_block * cell.block % DEVICE_BYTES;
                // A stride that is odd visits every block.
                self.next_block += 7;
                let sector = SectorIndex::new(offset / 512);
                issued_ns[ticket.index()] = clock.now_ns();
                let request = Request::new(cell.op, sector, ByteLength::new(cell.block));
                self.queue.submit(ticket, request);
            }
            if self.queue.wait(&mut done, None)? == 0 {
                break;
            }
            for completion in done.drain(..) {
                bytes += completion.result.unwrap_or(0);
                if counts {
                    let index = completion.ticket.index();
                    self.latencies_ns.push(clock.now_ns() - issued_ns[index]);
                }
                self.queue.release(completion.ticket);
            }
        }
        if counts {
            let elapsed_ns = clock.now_ns() - start_ns;
            self.mb_per_s.push(bytes as f64 * 1e3 / elapsed_ns as f64);
        }
        Ok(())
    }
}

fn report(name: &str, runners: &mut [Runner]) {
    let inline = runners[0].mb_per_s.clone();
    for runner in runners {
        let ratios = runner
            .mb_per_s
            .iter()
            .zip(&inline)
            .map(|(own, inline)| own / inline);
        let ratio = quantile(ratios.collect(), 0.5);
        runner.latencies_ns.sort_unstable();
        let at = |share: f64| {
            let index = (runner.latencies_ns.len() as f64 * share) as usize;
            runner
                .latencies_ns
                .get(index)
                .map_or(0.0, |&ns| ns as f64 / 1e3)
        };
        println!(
            "{name:<22}{:<12}{:>10.0}{:>10.0}{ratio:>8.2}{:>12.1}{:>12.1}",
            runner.spec.to_string(),
            quantile(runner.mb_per_s.clone(), 0.5),
            quantile(runner.mb_per_s.clone(), 0.9),
            at(0.5),
            at(0.99)
        );
    }
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * share) as usize;
    values.get(index).copied().unwrap_or(0.0)
}
