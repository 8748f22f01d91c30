//! A matrix in virtual time: the pipeline and the policies of `crypt_core`, unchanged, on a modelled
//! machine with modelled devices.
//!
//! What is real: the state machine of each queue, the policy that it asks, the generators, the write
//! thread's order, the drives' service-time models. What is modelled, by a [`Machine`]'s figures: the
//! time that cipher, copies, requests and hand-offs take, the worker pool's rules (the same as the real
//! pool's, on plain numbers), and a scheduler that gives an idle CPU to whoever needs one. What is left
//! out: caches but for one cost per byte that another CPU wrote, memory bandwidth that CPUs share,
//! interrupts, and frequency changes.
//!
//! The same cell, machine and seed give the same result, to the nanosecond.

#![forbid(unsafe_code)]

mod agenda;
mod cores;
mod costs;
mod device;
mod issuer;
pub mod machine;
mod outsiders;
mod pool;
mod post;
pub mod record;
mod scene;
mod worker;
mod world;

use std::sync::atomic::AtomicBool;

use crypt_core::pipeline::PipelineConfig;
use crypt_core::policy::{Costs, Explanation, PolicySpec, WriteRoute};
use crypt_core::request::Flags;

use self::cores::{Cores, Thread};
use self::device::Device;
use self::issuer::{Issuer, Load};
use self::machine::Cipher;
use self::outsiders::Outsiders;
use self::pool::Pool;
use self::scene::{Cast, Props, Scene};
use self::worker::{Worker, Writer};
use self::world::World;
use crate::account;
use crate::generate::{Blocks, Generator, Workload};
use crate::record::{DirectionRecorder, Window};
use crate::result::{CellParams, RAW_POLICY};

pub use machine::Machine;

/// What a simulated cell came to.
#[derive(Debug)]
pub struct Simulated {
    /// The time that counted.
    pub window: Window,
    /// Completed reads of the window.
    pub read: DirectionRecorder,
    /// Completed writes of the window.
    pub write: DirectionRecorder,
    /// What the policies decided within the window; `None` where they keep no account.
    pub decided: Option<Explanation>,
    /// Requests in flight per job, averaged over the window.
    pub depth_mean: f64,
    /// Processor time of all threads in the window.
    pub cpu_ns: u64,
    /// Threads of the worker pool.
    pub workers: u32,
}

/// Runs a cell once. `None` where `stop` became true before the end.
///
/// # Errors
/// What the machine or the simulation can't do, in words.
pub fn simulate(
    machine: &Machine,
    cell: &CellParams,
    repeat: u32,
    stop: &AtomicBool,
) -> Result<Option<Simulated>, String> {
    let machine = machine.with_cores(cell.cores);
    let plan = Plan::new(&machine, cell, repeat)?;
    let mut world = plan.world()?;
    if !world.run(stop) {
        return Ok(None);
    }
    let mut read = DirectionRecorder::new(&plan.window);
    let mut write = DirectionRecorder::new(&plan.window);
    let mut depth_sum = 0.0;
    let mut accounts = Vec::with_capacity(world.issuers.len());
    let issuers = world.issuers.len().max(1) as f64;
    for issuer in world.issuers {
        let outcome = issuer.into_outcome();
        read.absorb(&outcome.read);
        write.absorb(&outcome.write);
        depth_sum += outcome.depth_mean;
        accounts.push(outcome.account);
    }
    Ok(Some(Simulated {
        window: plan.window,
        read,
        write,
        decided: account::sum(&accounts),
        depth_mean: depth_sum / issuers,
        cpu_ns: world.scene.cpu_ns,
        workers: plan.workers,
    }))
}

/// Checks that a cell can be simulated, without running it.
///
/// # Errors
/// As [`simulate`].
pub fn check(machine: &Machine, cell: &CellParams) -> Result<(), String> {
    Plan::new(&machine.with_cores(cell.cores), cell, 1).map(drop)
}

/// A cell, understood.
struct Plan<'a> {
    machine: &'a Machine,
    cell: &'a CellParams,
    policy: PolicySpec,
    cipher: Cipher,
    window: Window,
    workers: u32,
    /// Whether a worker can bring what it has encrypted to the device.
    worker_writes: bool,
    seed: u64,
}

impl<'a> Plan<'a> {
    fn new(machine: &'a Machine, cell: &'a CellParams, repeat: u32) -> Result<Self, String> {
        let policy = match cell.policy.as_str() {
            RAW_POLICY => PolicySpec::Inline,
            text => text.parse().map_err(in_words)?,
        };
        let device = Device::open(&cell.device, cell.size_bytes, 0)?;
        let mut cipher = machine.cipher(&cell.cipher)?;
        if let Some(bytes_per_s) = cell.cipher_throttle_bytes_per_s {
            let slowest = 1e9 / bytes_per_s as f64;
            cipher.encrypt_ns_per_byte = cipher.encrypt_ns_per_byte.max(slowest);
            cipher.decrypt_ns_per_byte = cipher.decrypt_ns_per_byte.max(slowest);
        }
        let uses_workers = policy.needs_workers() && !cell.is_plain();
        if let Some(cpu) = cell.issuer_cpus.iter().find(|&&cpu| cpu >= machine.cpus()) {
            let cpus = machine.cpus();
            return Err(format!(
                "--issuers: CPU {cpu} is not one of the machine's {cpus} (0 to {})",
                cpus - 1
            ));
        }
        let (ramp_ns, runtime_ns) = (cell.ramp_ms * 1_000_000, cell.runtime_ms * 1_000_000);
        let window = match cell.slice_us {
            Some(slice_us) => Window::sliced(ramp_ns, runtime_ns, slice_us * 1_000),
            None => Window::new(ramp_ns, runtime_ns),
        };
        Ok(Self {
            machine,
            cell,
            policy,
            cipher,
            window,
            workers: if uses_workers { cell.workers } else { 0 },
            worker_writes: uses_workers
                && policy.rules().writes == WriteRoute::Worker
                && device.is_immediate(),
            seed: cell.seed.wrapping_add(u64::from(repeat) << 32),
        })
    }

    fn world(&self) -> Result<World<'a>, String> {
        let (cell, rules) = (self.cell, self.policy.rules());
        let writes = self.workers > 0 && rules.writes == WriteRoute::WriteThread;
        let cast = Cast {
            issuers: (cell.jobs * cell.devices) as usize,
            workers: self.workers as usize,
            writers: if writes { cell.devices as usize } else { 0 },
            depth: cell.depth as usize,
        };
        let devices = (0..cell.devices).map(|volume| {
            let seed = self.seed.wrapping_add(u64::from(volume) << 48);
            Device::open(&cell.device, cell.size_bytes, seed)
        });
        let threads = self.threads(&cast);
        let outsiders = threads[..cast.issuers].iter().map(|thread| thread.pinned);
        let outsiders = Outsiders::new(self.machine.cpus(), outsiders);
        let encrypt_ns = self.cipher.encrypt_ns_per_byte;
        let props = Props {
            machine: self.machine,
            cipher: self.cipher,
            window: self.window,
            pool: Pool::new(self.machine, self.workers, outsiders, rules, encrypt_ns),
            rules,
            cores: Cores::new(self.machine, threads),
            devices: devices.collect::<Result<_, _>>()?,
            seed: self.seed,
        };
        let issuers = (0..cast.issuers).map(|issuer| self.issuer(issuer));
        Ok(World {
            issuers: issuers.collect::<Result<_, _>>()?,
            workers: (0..cast.workers)
                .map(|worker| {
                    let spin_ns = self.machine.hand_off.spin_ns as u64;
                    Worker::new(cast.issuers + worker, worker, spin_ns)
                })
                .collect(),
            writers: (0..cast.writers)
                .map(|volume| {
                    let actor = cast.issuers + cast.workers + volume;
                    Writer::new(actor, volume, self.machine.hand_off.writes_at_device)
                })
                .collect(),
            scene: Scene::new(cast, props),
            turns: 0,
        })
    }

    /// Where each thread may run, and where it begins.
    fn threads(&self, cast: &Cast) -> Vec<Thread> {
        let (rules, pins) = (self.policy.rules(), &self.cell.issuer_cpus);
        let cpus = self.machine.cpus() as usize;
        let issuers = (0..cast.issuers).map(|issuer| {
            let pinned = issuer.checked_rem(pins.len()).map(|pin| pins[pin] as usize);
            Thread::new(pinned, false, issuer % cpus)
        });
        let workers = (0..cast.workers).map(|worker| {
            let cpu = worker % cpus;
            Thread::new(rules.same_cpu.then_some(cpu), rules.high_priority, cpu)
        });
        let writers = (0..cast.writers).map(|volume| Thread::new(None, false, volume % cpus));
        issuers.chain(workers).chain(writers).collect()
    }

    fn issuer(&self, number: usize) -> Result<Issuer, String> {
        let cell = self.cell;
        let workload = Workload {
            rw: cell.rw,
            rwmixread_percent: cell.rwmixread_percent,
            blocks: Blocks::of_cell(cell)?,
            size_bytes: cell.size_bytes,
        };
        let (volume, job) = (number as u32 % cell.devices, number as u32 / cell.devices);
        let seed = self.seed.wrapping_add(u64::from(volume) << 48);
        let hipri = flag(cell.hipri, Flags::HIPRI);
        let load = Load {
            generator: Generator::new(&workload, seed, job, cell.jobs),
            read_flags: hipri | flag(cell.readahead, Flags::READAHEAD),
            write_flags: hipri,
            polled: cell.hipri,
        };
        let policy = (self.policy.build(), self.costs());
        let (config, window) = (self.config(), &self.window);
        Issuer::new(number, volume as usize, load, config, policy, window).map_err(in_words)
    }

    fn config(&self) -> PipelineConfig {
        let cell = self.cell;
        let crypto_sector_bytes = if cell.is_plain() {
            0
        } else {
            cell.sector_size_bytes
        };
        let block_bytes = crypto_sector_bytes.max(512);
        PipelineConfig {
            depth: cell.depth,
            slot_bytes: (cell.block_size_bytes as u32).next_multiple_of(block_bytes),
            volume_bytes: cell.size_bytes,
            data_offset_bytes: 0,
            block_bytes,
            device_block_bytes: 512,
            crypto_sector_bytes,
            allow_discards: false,
            read_only: false,
            worker_writes: self.worker_writes,
        }
    }

    /// What a real volume would have measured at start.
    fn costs(&self) -> Costs {
        if self.workers == 0 {
            return Costs::default();
        }
        let hand_off = &self.machine.hand_off;
        Costs {
            encrypt_ns_per_byte: self.cipher.encrypt_ns_per_byte as f32,
            decrypt_ns_per_byte: self.cipher.decrypt_ns_per_byte as f32,
            handoff_awake_ns: hand_off.awake_ns as f32,
            handoff_asleep_ns: hand_off.asleep_ns_mean() as f32,
            handoff_self_ns: hand_off.self_ns as f32,
            wake_self_ns: hand_off.wake_self_ns as f32,
            ..Costs::default()
        }
    }
}

fn flag(wanted: bool, flag: Flags) -> Flags {
    if wanted { flag } else { Flags::empty() }
}

#[expect(clippy::needless_pass_by_value, reason = "used with map_err")]
fn in_words(error: crypt_core::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
