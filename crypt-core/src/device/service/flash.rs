//! Drives without moving parts: a serial front end (command handling and the link) before many
//! independent units (dies or channels), with a write cache in between or none.
//!
//! A unit serves one thing at a time, so operations that meet on a unit queue; that is what bends
//! the curve of throughput over depth. Service times are log-normal around their median, and a few
//! are many times longer.

#![forbid(unsafe_code)]

use std::f64::consts::TAU;

use crate::device::service::cache::WriteCache;
use crate::device::service::{ServiceOp, transfer_ns};
use crate::request::{Flags, Op};

/// Bytes that a unit serves in one service time, a flash page.
const PAGE_BYTES: u64 = 16 << 10;
/// Bytes after which the next unit begins.
const INTERLEAVE_BYTES: u64 = 4096;

/// Figures of a drive. Times are medians.
#[derive(Clone, Debug)]
struct Figures {
    /// Independent units.
    units: u16,
    /// Handling of one command, one after the other.
    command_ns: f64,
    /// Speed of the link and the controller.
    read_bytes_per_s: f64,
    write_bytes_per_s: f64,
    read_ns: f64,
    /// Into the cache; into a unit where there is no cache.
    write_ns: f64,
    /// Standard deviation of the logarithm of a service time.
    spread: f64,
    /// Share of service times that are `tail_factor` times as long.
    tail_share: f64,
    tail_factor: f64,
    cache: Option<CacheFigures>,
    flush_ns: f64,
}

/// Figures of a write cache.
#[derive(Clone, Debug)]
struct CacheFigures {
    capacity_bytes: u64,
    /// What the medium takes of a random write besides its bytes.
    random_write_ns: f64,
    /// Whether a flush has to wait for the medium; not so with capacitors.
    volatile: bool,
}

/// A drive with its state.
#[derive(Clone, Debug)]
pub(super) struct FlashModel {
    figures: Figures,
    front_free_ns: u64,
    unit_free_ns: Box<[u64]>,
    cache: Option<WriteCache>,
    last_write_end_bytes: u64,
}

impl FlashModel {
    /// A SATA SSD as the Samsung 850 EVO 1 TB: its data sheet has 540 and 520 MB/s, 10,000 and
    /// 40,000 IOPS at depth 1, 98,000 and 90,000 at depth 32 (4 KiB, read and write). The write
    /// figures are those within its fast region. Estimates of ours: units, buffer, flush, tail.
    pub(super) fn sata_ssd() -> Self {
        Self::new(Figures {
            units: 16,
            command_ns: 2_700.0,
            read_bytes_per_s: 540e6,
            write_bytes_per_s: 520e6,
            read_ns: 89_000.0,
            write_ns: 14_000.0,
            spread: 0.12,
            tail_share: 1e-4,
            tail_factor: 20.0,
            cache: Some(CacheFigures {
                capacity_bytes: 16 << 20,
                random_write_ns: 3_200.0,
                volatile: true,
            }),
            flush_ns: 1_000_000.0,
        })
    }

    /// An Intel Optane SSD DC P4800X: its product brief has under 10 us typical, 550,000 read and
    /// 500,000 write IOPS at depth 16, 2400 and 2000 MB/s. AnandTech (April 2017) measured reads at
    /// depth one: 8.9 us mean, 9 median, 10 at 99 %, 37 at 99.999 %. It has no volatile cache.
    /// Estimates of ours: units, flush.
    pub(super) fn optane() -> Self {
        Self::new(Figures {
            units: 28,
            command_ns: 50.0,
            read_bytes_per_s: 2_400e6,
            write_bytes_per_s: 2_000e6,
            read_ns: 7_100.0,
            write_ns: 7_500.0,
            spread: 0.045,
            tail_share: 2e-5,
            tail_factor: 4.0,
            cache: None,
            flush_ns: 8_000.0,
        })
    }

    /// A data-centre NVMe drive with TLC flash and capacitors as the Intel D7-P5500: announced with
    /// 7000 and 4300 MB/s, 1,000,000 read and 130,000 write IOPS (4 KiB). Latency as in the data
    /// sheet of the P4500 before it, 85 us for a read and 20 us for a write; spread and tail as
    /// AnandTech measured on a P3700 (April 2017): 76 us median, 96 at 99 %, 2768 at 99.999 %.
    /// Estimates of ours: units, buffer, flush.
    pub(super) fn nvme() -> Self {
        Self::new(Figures {
            units: 128,
            command_ns: 400.0,
            read_bytes_per_s: 7_000e6,
            write_bytes_per_s: 4_300e6,
            read_ns: 83_500.0,
            write_ns: 18_500.0,
            spread: 0.10,
            tail_share: 2e-5,
            tail_factor: 33.0,
            cache: Some(CacheFigures {
                capacity_bytes: 32 << 20,
                random_write_ns: 6_700.0,
                volatile: false,
            }),
            flush_ns: 20_000.0,
        })
    }

    fn new(figures: Figures) -> Self {
        let cache = figures.cache.as_ref();
        Self {
            front_free_ns: 0,
            unit_free_ns: vec![0; usize::from(figures.units)].into(),
            cache: cache.map(|cache| WriteCache::new(cache.capacity_bytes)),
            last_write_end_bytes: 0,
            figures,
        }
    }

    /// When the operation completes.
    pub(super) fn admit(&mut self, now_ns: u64, op: ServiceOp, random: &mut fastrand::Rng) -> u64 {
        match op.op {
            Op::Read => {
                let speed = self.figures.read_bytes_per_s;
                let start_ns = self.front_end(now_ns, op.len_bytes, speed);
                self.occupy_units(start_ns, op, self.figures.read_ns, random)
            }
            Op::Write => {
                let speed = self.figures.write_bytes_per_s;
                let start_ns = self.front_end(now_ns, op.len_bytes, speed);
                self.write(start_ns, op, random)
            }
            Op::Flush => {
                let start_ns = self.front_end(now_ns, 0, 1.0);
                self.durable_ns(start_ns)
            }
            // Commands without data, answered when the tables are updated.
            Op::Discard | Op::WriteZeroes | Op::Allocate => {
                let start_ns = self.front_end(now_ns, 0, 1.0);
                start_ns.saturating_add(self.sample(self.figures.write_ns, random))
            }
        }
    }

    /// Passes the front end; the time at which the operation leaves it.
    fn front_end(&mut self, now_ns: u64, len_bytes: u64, bytes_per_s: f64) -> u64 {
        let cost_ns = self.figures.command_ns + transfer_ns(len_bytes, bytes_per_s);
        let start_ns = self.front_free_ns.max(now_ns);
        self.front_free_ns = start_ns.saturating_add(cost_ns as u64);
        self.front_free_ns
    }

    /// Occupies one unit per page from the operation's address on; the end of the last.
    fn occupy_units(
        &mut self,
        start_ns: u64,
        op: ServiceOp,
        median_ns: f64,
        random: &mut fastrand::Rng,
    ) -> u64 {
        let count = self.unit_free_ns.len() as u64;
        let first = op.offset_bytes / INTERLEAVE_BYTES;
        // More pages than units are served in rounds; the front end limits such an operation anyway.
        let pages = op.len_bytes.div_ceil(PAGE_BYTES).clamp(1, count);
        let mut last_ns = start_ns;
        for page in 0..pages {
            let service_ns = self.sample(median_ns, random);
            let unit = (first.wrapping_add(page) % count) as usize;
            let free_ns = &mut self.unit_free_ns[unit];
            *free_ns = (*free_ns).max(start_ns).saturating_add(service_ns);
            last_ns = last_ns.max(*free_ns);
        }
        last_ns
    }

    fn write(&mut self, start_ns: u64, op: ServiceOp, random: &mut fastrand::Rng) -> u64 {
        let sequential = op.offset_bytes == self.last_write_end_bytes;
        self.last_write_end_bytes = op.offset_bytes.saturating_add(op.len_bytes);
        let service_ns = self.sample(self.figures.write_ns, random);
        let (Some(cache), Some(figures)) = (&mut self.cache, &self.figures.cache) else {
            return self.occupy_units(start_ns, op, self.figures.write_ns, random);
        };
        let mut drain_ns = transfer_ns(op.len_bytes, self.figures.write_bytes_per_s);
        if !sequential {
            drain_ns += figures.random_write_ns;
        }
        let room_ns = cache.add(start_ns, op.len_bytes, drain_ns);
        let end_ns = room_ns.saturating_add(service_ns);
        if op.flags.contains(Flags::FUA) && figures.volatile {
            return self.durable_ns(end_ns);
        }
        end_ns
    }

    /// When what is written so far is durable, asked at `now_ns`.
    fn durable_ns(&self, now_ns: u64) -> u64 {
        let volatile = self
            .figures
            .cache
            .as_ref()
            .is_some_and(|cache| cache.volatile);
        let drained_ns = match &self.cache {
            Some(cache) if volatile => cache.drained_ns(),
            _ => 0,
        };
        now_ns
            .max(drained_ns)
            .saturating_add(self.figures.flush_ns as u64)
    }

    /// A service time around a median.
    fn sample(&self, median_ns: f64, random: &mut fastrand::Rng) -> u64 {
        // Box and Muller's normal deviate; the shift keeps the logarithm finite.
        let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
        let normal = radius * (TAU * random.f64()).cos();
        let factor = if random.f64() < self.figures.tail_share {
            self.figures.tail_factor
        } else {
            1.0
        };
        (median_ns * (self.figures.spread * normal).exp() * factor) as u64
    }
}
