//! The worker threads that several queues and volumes share, and the bounded queue in front of
//! them.
//!
//! Threads start with the pool and end with it: dropping the last `Arc`, or
//! [`WorkerPool::shutdown`], completes everything queued and joins them. No thread is ever started
//! for a request, and nothing is allocated after the start.
//!
//! An idle worker spins for a while before it sleeps, because waking it costs tens of microseconds
//! and both sides pay: for as long as lately it would have found work ([`SpinBudget`](super::SpinBudget)).
//! It spins only while a core would be idle otherwise: busy and spinning
//! workers, queues that are not asleep and write threads count as runnable, and with as many of
//! those as cores nobody spins.
//!
//! Any thread may run a queued part, so a queue may help out ([`Lane::assist`](super::Lane::assist)).
#![forbid(unsafe_code)]

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use super::shared::PoolShared;
use super::worker;
use crate::error::{Error, ErrorKind, Result};
use crate::policy::{Costs, OffloadRules};

/// How a pool is made. The default is one unpinned thread per CPU at normal priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Threads; `None` for one per CPU that this process may use.
    pub threads: Option<NonZeroUsize>,
    /// How long an idle worker looks for work before it sleeps at most, where a core is to spare.
    pub spin_ns: u32,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// Nice value of the threads, -20 (high priority) to 19. A value that the system refuses is
    /// noted in [`WorkerPool::notes`], not an error.
    pub nice: i32,
    /// Most parts that wait in the queue; more are given back to be run inline.
    pub queue_parts: NonZeroUsize,
}

impl WorkerConfig {
    /// dm-crypt's `high_priority`, the nice value of a kernel `WQ_HIGHPRI` workqueue.
    pub const HIGH_PRIORITY_NICE: i32 = -20;

    /// The default, with the pinning and the priority that a policy's rules ask for.
    #[must_use]
    pub fn for_rules(rules: &OffloadRules) -> Self {
        Self {
            pinning: if rules.same_cpu {
                Pinning::EachCpu
            } else {
                Pinning::None
            },
            nice: if rules.high_priority {
                Self::HIGH_PRIORITY_NICE
            } else {
                0
            },
            ..Self::default()
        }
    }
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            threads: None,
            spin_ns: 50_000,
            pinning: Pinning::None,
            nice: 0,
            queue_parts: NonZeroUsize::new(1024).unwrap_or(NonZeroUsize::MIN),
        }
    }
}

/// Which CPUs a pool's threads run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// Wherever the scheduler puts them.
    #[default]
    None,
    /// Each on one CPU of those this process may use, in turn. What `same_cpu` work needs.
    EachCpu,
    /// Each on one CPU of this list, in turn.
    Cpus(Vec<usize>),
}

/// How busy a pool is, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolLoad {
    /// Worker threads.
    pub workers: u32,
    /// Workers that have a core to run on: all, or fewer where the threads of queues need the cores.
    pub usable_workers: u32,
    /// Those of the usable workers that have nothing to do.
    pub idle_workers: u32,
    /// Those of the idle ones that are awake: they start at once.
    pub awake_workers: u32,
    /// Bytes of cipher work that nobody has taken yet, of all queues.
    pub queued_bytes: u64,
    /// Whether the queue that asks has not once waited, nor helped the workers, since it last did.
    pub saturated: bool,
    /// From a hand-off to the start of the work on a worker that is awake, as measured; 0 before
    /// the first time.
    pub handoff_awake_ns: u32,
    /// The same on a worker that sleeps.
    pub handoff_asleep_ns: u32,
}

impl PoolLoad {
    /// `costs` with the hand-off times that the pool has measured since.
    #[must_use]
    pub fn refine(&self, costs: Costs) -> Costs {
        let newer = |measured_ns: u32, known_ns: f32| match measured_ns {
            0 => known_ns,
            ns => ns as f32,
        };
        Costs {
            handoff_awake_ns: newer(self.handoff_awake_ns, costs.handoff_awake_ns),
            handoff_asleep_ns: newer(self.handoff_asleep_ns, costs.handoff_asleep_ns),
            ..costs
        }
    }
}

/// What a pool has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Parts run by workers.
    pub parts_run: u64,
    /// Parts run by the queues' own threads, helping out.
    pub parts_assisted: u64,
    /// Sleeping workers woken.
    pub wake_ups: u64,
    /// Times an idle worker spun.
    pub spins: u64,
    /// Those of the spins that found work.
    pub spins_won: u64,
    /// `same_cpu` work for which no worker is pinned to the CPU; it ran anywhere.
    pub same_cpu_missed: u64,
}

/// Worker threads over one bounded queue. Share it by `Arc`; see the module documentation.
#[derive(Debug)]
pub struct WorkerPool {
    shared: Arc<PoolShared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    notes: Vec<String>,
}

impl WorkerPool {
    /// Starts the threads, and returns when all of them run.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for an empty CPU list, a CPU that this process may not use, or a
    /// nice value out of range; the system's error where a thread can't be started.
    pub fn start(config: &WorkerConfig) -> Result<Arc<Self>> {
        if !(-20..=19).contains(&config.nice) {
            let context = format!("nice value {} for workers: use -20 to 19", config.nice);
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers = config.threads.map_or(cores, NonZeroUsize::get);
        let cpus = worker::assign_cpus(&config.pinning, workers)?;
        let shared = Arc::new(PoolShared::new(config, &cpus, cores));
        let (ready, settled) = mpsc::channel();
        let mut pool = Self {
            shared,
            threads: Mutex::new(Vec::with_capacity(workers)),
            notes: Vec::new(),
        };
        for (number, cpu) in cpus.into_iter().enumerate() {
            let ready = ready.clone();
            let thread = worker::spawn(&pool.shared, number, cpu, config.nice, ready)?;
            pool.lock_threads().push(thread);
        }
        drop(ready);
        for outcome in settled {
            if let Some(note) = outcome?
                && !pool.notes.contains(&note)
            {
                pool.notes.push(note);
            }
        }
        Ok(Arc::new(pool))
    }

    /// How busy the pool is. A few loads of shared counters.
    #[must_use]
    pub fn load(&self) -> PoolLoad {
        self.shared.load(self.shared.clock().now_ns())
    }

    /// What the pool has done since its start.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.shared.stats()
    }

    /// What was asked for and refused by the system, one sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How long an idle worker spins at most, in nanoseconds.
    #[must_use]
    pub fn spin_ns(&self) -> u64 {
        self.shared.spin_ns()
    }

    /// Sets how many bytes must wait, per idle worker that is awake, before a hand-off wakes one
    /// more: about the bytes whose cipher time equals a wake-up. [`calibrate`](super::calibrate)
    /// measures and sets it.
    pub fn wake_one_more_per(&self, bytes: u64) {
        self.shared.set_wake_bytes(bytes);
    }

    /// Completes everything queued and ends the threads. Lanes stay usable: every hand-off gives
    /// the work back from then on.
    pub fn shutdown(&self) {
        self.shared.stop();
        for thread in self.lock_threads().drain(..) {
            // A worker catches the panics of ciphers; if one panics all the same there is nothing
            // left to do for it, and its queue is run by the lanes.
            let _ = thread.join();
        }
    }

    pub(crate) fn shared(&self) -> &PoolShared {
        &self.shared
    }

    pub(crate) fn shared_arc(&self) -> Arc<PoolShared> {
        Arc::clone(&self.shared)
    }

    fn lock_threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shutdown();
    }
}
