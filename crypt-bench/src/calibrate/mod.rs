//! This machine as a [`Machine`]: what the simulator needs to know of it, measured.
//!
//! Ciphers, copies and requests are measured by running the real pipeline inline for a moment and looking at
//! its stages, so that what is measured is what a matrix meets: slots that take turns, a device that copies,
//! every request recorded. Two lengths give a fixed cost and one per byte. Hand-offs are measured by handing
//! off (`hand_off`).

#![forbid(unsafe_code)]

mod hand_off;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crypt_core::Volume;
use crypt_core::cipher::SectorCipher;
use crypt_core::device::Device;
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::null::NullDevice;
use crypt_core::key::Key;
use crypt_core::request::Flags;
use crypt_core::spec::CipherSpec;
use crypt_core::units::SectorSize;

use crate::drive::{self, Job, Schedule};
use crate::generate::{Blocks, Generator, Random, Workload};
use crate::host;
use crate::result::{DirectionStats, Rw, Stages};
use crate::simulate::machine::{
    Cipher, Cpu, DevicePath, HandOff, Machine, Memory, Request, Scheduler, WakesBy,
};

/// The ciphers that are measured, each with its key's length.
const CIPHERS: [(&str, usize); 3] = [
    ("aes-xts-plain64", 64),
    ("aes-cbc-essiv:sha256", 32),
    ("cipher_null-ecb", 0),
];
const SECTOR_BYTES: u64 = 4096;
const SMALL_BYTES: u32 = 4 << 10;
const LARGE_BYTES: u32 = 1 << 20;
const DEVICE_BYTES: u64 = 128 << 20;
const DEPTH: u32 = 4;
/// Turns of each measurement, of which the median counts.
const TURNS: usize = 5;
const SCHEDULE: Schedule = Schedule {
    ramp: Duration::from_millis(5),
    runtime: Duration::from_millis(25),
    slice: None,
};
/// From one thread to another on the same CPU, and the time slice of Linux's scheduler: not measured.
const SCHEDULER: Scheduler = Scheduler {
    switch_ns: 1_000.0,
    slice_ns: 3_000_000.0,
};

/// Measures this machine; takes some seconds, and wants it quiet.
///
/// # Errors
/// Where memory, threads or keys can't be had, in words.
pub fn measure() -> Result<Machine, String> {
    let null: Arc<dyn Device> = Arc::new(NullDevice::new(DEVICE_BYTES));
    let memory: Arc<dyn Device> = Arc::new(MemoryDevice::new(DEVICE_BYTES).map_err(in_words)?);
    let mut ciphers = BTreeMap::new();
    for (name, key_bytes) in CIPHERS {
        let cipher = build(name, key_bytes)?;
        ciphers.insert(name.to_owned(), measure_cipher(&null, &cipher)?);
    }
    let request_ns = 1e9 / run(&null, None, Rw::RandRead, SMALL_BYTES, 1)?.iops;
    let copy = copy(&memory)?;
    let hand_off = hand_off::measure(&build(CIPHERS[0].0, CIPHERS[0].1)?)?;
    let environment = host::environment();
    Ok(Machine {
        name: environment.host,
        description: format!(
            "{}; measured by crypt-bench calibrate",
            environment.cpu_model
        ),
        cpu: Cpu {
            cores: environment.cpus,
            threads_per_core: 1,
            smt_share: 1.0,
            nodes: 1,
        },
        cipher: ciphers,
        request: Request {
            submit_ns: request_ns / 2.0,
            complete_ns: request_ns / 2.0,
        },
        memory: Memory {
            reach_ns: copy.fixed_ns,
            copy_ns_per_byte: copy.ns_per_byte,
            fetch_ns_per_byte: hand_off.fetch_ns_per_byte,
            node_factor: 1.0,
        },
        device: drive_path(request_ns)?,
        hand_off: HandOff {
            self_ns: hand_off.self_ns,
            wake_self_ns: hand_off.wake_self_ns,
            wake_asleep_self_ns: hand_off.wake_asleep_self_ns,
            awake_ns: hand_off.awake_ns,
            doze_ns: hand_off.doze_ns,
            dozing_ns: hand_off.dozing_ns,
            asleep_ns: hand_off.asleep_ns,
            spin_ns: hand_off.spin_ns,
            // Writes that wait stand in one list that is sorted at once, which is little beside the device.
            sort_ns: 0.0,
            writes_at_device: 128,
        },
        scheduler: SCHEDULER,
    })
}

fn build(name: &str, key_bytes: usize) -> Result<Arc<dyn SectorCipher>, String> {
    let spec: CipherSpec = name.parse().map_err(in_words)?;
    let sector = SectorSize::from_bytes(SECTOR_BYTES).unwrap_or_default();
    let mut key = vec![0; key_bytes];
    Random::new(key_bytes as u64).fill(&mut key);
    let key = Key::from_bytes(&key).map_err(in_words)?;
    spec.with_sector_size(sector)
        .build(&key, None)
        .map_err(in_words)
}

fn measure_cipher(
    null: &Arc<dyn Device>,
    cipher: &Arc<dyn SectorCipher>,
) -> Result<Cipher, String> {
    let cost = |rw, bytes| {
        let stats = run(null, Some(cipher), rw, bytes, DEPTH)?;
        stages(&stats).map(|stages| stages.cipher_ns_mean)
    };
    let line = |rw| {
        Ok::<Line, String>(Line::through(
            cost(rw, SMALL_BYTES)?,
            cost(rw, LARGE_BYTES)?,
        ))
    };
    let (encrypt, decrypt) = (line(Rw::RandWrite)?, line(Rw::RandRead)?);
    Ok(Cipher {
        encrypt_ns_per_byte: encrypt.ns_per_byte,
        decrypt_ns_per_byte: decrypt.ns_per_byte,
        call_ns: f64::midpoint(encrypt.fixed_ns, decrypt.fixed_ns),
    })
}

/// A fixed cost, and one per byte.
struct Line {
    fixed_ns: f64,
    ns_per_byte: f64,
}

impl Line {
    /// The line through the costs of a small and of a large request.
    fn through(small_ns: f64, large_ns: f64) -> Self {
        let ns_per_byte = (large_ns - small_ns) / f64::from(LARGE_BYTES - SMALL_BYTES);
        let ns_per_byte = ns_per_byte.max(0.0);
        let fixed_ns = small_ns - ns_per_byte * f64::from(SMALL_BYTES);
        Self {
            fixed_ns: fixed_ns.max(0.0),
            ns_per_byte,
        }
    }
}

fn copy(memory: &Arc<dyn Device>) -> Result<Line, String> {
    // Memory that was never touched is made while it is written.
    run(memory, None, Rw::Write, LARGE_BYTES, DEPTH)?;
    // One at a time: the others of a batch would wait for the first one's copy.
    let cost = |bytes| {
        let stats = run(memory, None, Rw::RandWrite, bytes, 1)?;
        stages(&stats).map(|stages| stages.device_ns_mean)
    };
    Ok(Line::through(cost(SMALL_BYTES)?, cost(LARGE_BYTES)?))
}

/// What a modelled drive costs on top of a request: the processor time per request of a queue that is never
/// idle. The halves are not told apart.
fn drive_path(request_ns: f64) -> Result<DevicePath, String> {
    let drive = crypt_core::device::service::ServiceModel::named("nvme", DEVICE_BYTES, 1)
        .map_err(in_words)?;
    let inner = Arc::new(NullDevice::new(DEVICE_BYTES));
    let drive: Arc<dyn Device> =
        Arc::new(crypt_core::device::model::ModelDevice::new(inner, drive));
    let slat_ns = run(&drive, None, Rw::RandRead, SMALL_BYTES, 1)?
        .slat
        .mean_ns;
    let push_ns = (slat_ns - request_ns / 2.0).max(0.0);
    Ok(DevicePath {
        push_ns,
        reap_ns: push_ns / 2.0,
        copies: true,
        wakes_by: WakesBy::Timer,
    })
}

fn stages(stats: &DirectionStats) -> Result<Stages, String> {
    let stages = stats.stages;
    stages.ok_or_else(|| "a measurement has no stages".to_owned())
}

/// The median of some turns by throughput.
fn run(
    device: &Arc<dyn Device>,
    cipher: Option<&Arc<dyn SectorCipher>>,
    rw: Rw,
    block_size_bytes: u32,
    depth: u32,
) -> Result<DirectionStats, String> {
    let mut builder = Volume::builder(Arc::clone(device));
    if let Some(cipher) = cipher {
        builder = builder.cipher(Arc::clone(cipher));
    }
    let volume = builder.build().map_err(in_words)?;
    let workload = Workload {
        rw,
        rwmixread_percent: 0,
        blocks: Blocks::fixed(block_size_bytes.into()),
        size_bytes: DEVICE_BYTES,
    };
    let job = Job {
        volume,
        generator: Generator::new(&workload, 1, 0, 1),
        max_request_bytes: block_size_bytes,
        depth,
        polled: false,
        read_flags: Flags::empty(),
        write_flags: Flags::empty(),
        cpu: None,
        data_seed: Some(1),
    };
    let turns: Result<Vec<DirectionStats>, String> = (0..TURNS).map(|_| turn(&job, rw)).collect();
    let mut turns = turns?;
    turns.sort_by(|left, right| left.iops.total_cmp(&right.iops));
    Ok(turns.swap_remove(TURNS / 2))
}

fn turn(job: &Job, rw: Rw) -> Result<DirectionStats, String> {
    let never = AtomicBool::new(false);
    let measured = drive::measure(vec![job.clone()], SCHEDULE, &never, || ())?;
    let stats = measured.and_then(|measured| {
        let outcome = measured.jobs.first()?;
        let recorder = if rw.writes() {
            &outcome.write
        } else {
            &outcome.read
        };
        recorder.stats(&measured.window)
    });
    stats.ok_or_else(|| {
        "nothing was completed while calibrating: this machine is too busy".to_owned()
    })
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn in_words(error: crypt_core::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lengths_give_a_fixed_cost_and_one_per_byte() {
        let line = Line::through(100.0 + 4096.0 * 0.5, 100.0 + 1_048_576.0 * 0.5);
        assert!((line.fixed_ns - 100.0).abs() < 1e-6 && (line.ns_per_byte - 0.5).abs() < 1e-9);
        let noise = Line::through(50.0, 40.0);
        assert_eq!((noise.fixed_ns, noise.ns_per_byte), (50.0, 0.0));
    }

    #[test]
    fn this_machine_is_one_that_can_be_simulated() {
        match measure() {
            Ok(machine) => assert_eq!(Machine::parse(&machine.to_toml()), Ok(machine)),
            Err(reason) => println!("skipped: {reason}"),
        }
    }
}
