//! The worker pool's books: parts that wait, who is idle, and whom to wake. The same rules as
//! `crypt_core::exec` has for its threads, on plain numbers.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

use crypt_core::exec::{Before, Latency, PoolLoad, WorkerConfig};
use crypt_core::policy::OffloadRules;

use super::machine::Machine;
use super::outsiders::Outsiders;

/// A part of handed-off work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Whose work it is: an issuer, and its slot.
    pub(super) issuer: usize,
    pub(super) slot: usize,
    pub(super) len_bytes: u32,
    pub(super) encrypts: bool,
    /// What bringing it to the device costs whoever has encrypted it; nothing where that is not its part.
    pub(super) write_ns: f64,
    /// The CPU that wrote the data last; `None` where no CPU did.
    pub(super) written_on: Option<usize>,
    /// When it was handed off.
    pub(super) since_ns: u64,
}

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Work,
    /// Idle and awake, or on its way to be.
    Look,
    Sleep,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Pool {
    parts: VecDeque<Part>,
    /// Parts for one worker only, where work stays on its CPU.
    own: Box<[VecDeque<Part>]>,
    capacity: usize,
    queued_bytes: u64,
    workers: Box<[Doing]>,
    awake: u32,
    asleep: u32,
    /// Threads other than workers that need a CPU now.
    pub(super) outsiders: Outsiders,
    /// What workers have seen of hand-offs.
    pub(super) latency: Latency,
    cpus: u32,
    /// Queued bytes that one more wake-up is worth.
    wake_bytes: u64,
}

impl Pool {
    /// A pool of `workers` sleepers, of which calibration knows what the machine says. `outsiders` issue requests.
    pub(super) fn new(
        machine: &Machine,
        workers: u32,
        outsiders: Outsiders,
        rules: OffloadRules,
        encrypt_ns_per_byte: f64,
    ) -> Self {
        let hand_off = &machine.hand_off;
        let own = if rules.same_cpu { workers as usize } else { 0 };
        let latency = Latency::default();
        latency.learn(Before::Awake, hand_off.awake_ns as u64, 0);
        latency.learn(Before::Asleep, hand_off.asleep_ns_mean() as u64, 0);
        let worth = hand_off.asleep_ns_mean() / encrypt_ns_per_byte.max(f64::MIN_POSITIVE);
        Self {
            parts: VecDeque::new(),
            own: vec![VecDeque::new(); own].into(),
            capacity: WorkerConfig::default().queue_parts.get(),
            queued_bytes: 0,
            workers: vec![Doing::Sleep; workers as usize].into(),
            awake: 0,
            asleep: workers,
            outsiders,
            latency,
            cpus: machine.cpus(),
            wake_bytes: (worth as u64).max(1),
        }
    }

    /// Whether so many more parts fit.
    pub(super) fn has_room(&self, parts: usize) -> bool {
        self.parts.len() + parts <= self.capacity
    }

    /// Takes in a part for anybody, or for one worker.
    pub(super) fn push(&mut self, part: Part, worker: Option<usize>) {
        self.queued_bytes += u64::from(part.len_bytes);
        match worker.and_then(|worker| self.own.get_mut(worker)) {
            Some(own) => own.push_back(part),
            None => self.parts.push_back(part),
        }
    }

    /// The next part for a worker.
    pub(super) fn take(&mut self, worker: usize) -> Option<Part> {
        let own = self.own.get_mut(worker).and_then(VecDeque::pop_front);
        let part = own.or_else(|| self.parts.pop_front())?;
        self.queued_bytes -= u64::from(part.len_bytes);
        Some(part)
    }

    /// The next part for a thread that is no worker.
    pub(super) fn take_any(&mut self) -> Option<Part> {
        let part = self.parts.pop_front()?;
        self.queued_bytes -= u64::from(part.len_bytes);
        Some(part)
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.parts.is_empty()
    }

    /// How many sleepers what is queued is worth waking.
    pub(super) fn wake_ups_worth(&self) -> usize {
        let worth = (self.queued_bytes / self.wake_bytes).max(1);
        if self.asleep == 0 || u64::from(self.awake) >= worth {
            return 0;
        }
        let busy = self.busy();
        let free = u64::from(self.cpus.saturating_sub(busy + self.outsiders.count()));
        let limit = free.max(u64::from(busy == 0));
        let wanted = worth.min(self.parts.len() as u64).min(limit);
        wanted.saturating_sub(u64::from(self.awake)) as usize
    }

    /// Some sleeper, the lowest number first, or this one if it sleeps. It counts as awake from now on.
    pub(super) fn rouse(&mut self, worker: Option<usize>) -> Option<usize> {
        let sleeps = |worker: &usize| self.workers[*worker] == Doing::Sleep;
        let found = match worker {
            Some(worker) => Some(worker).filter(sleeps),
            None if self.asleep == 0 => None,
            None => (0..self.workers.len()).find(sleeps),
        }?;
        self.workers[found] = Doing::Look;
        self.asleep -= 1;
        self.awake += 1;
        Some(found)
    }

    /// A worker has found something to do; whether it was idle before.
    pub(super) fn works(&mut self, worker: usize) -> bool {
        let was_idle = self.workers[worker] == Doing::Look;
        self.awake -= u32::from(was_idle);
        self.workers[worker] = Doing::Work;
        was_idle
    }

    /// A worker has nothing to do.
    pub(super) fn looks(&mut self, worker: usize) {
        if self.workers[worker] == Doing::Work {
            self.workers[worker] = Doing::Look;
            self.awake += 1;
        }
    }

    /// An idle worker goes to sleep.
    pub(super) fn sleeps(&mut self, worker: usize) {
        self.workers[worker] = Doing::Sleep;
        self.awake -= 1;
        self.asleep += 1;
    }

    /// Whether a thread that is awake may look for work without taking a CPU from another.
    pub(super) fn may_spin(&self) -> bool {
        self.workers.len() as u32 - self.asleep + self.outsiders.count() <= self.cpus
    }

    /// How busy the pool is.
    pub(super) fn load(&self, now_ns: u64, saturated: bool) -> PoolLoad {
        let cores = self.cpus.saturating_sub(self.outsiders.count());
        let workers = self.workers.len() as u32;
        let idle = (self.awake + self.asleep).min(cores.saturating_sub(self.busy()));
        PoolLoad {
            workers,
            usable_workers: workers.min(cores),
            idle_workers: idle,
            awake_workers: self.awake.min(idle),
            queued_bytes: self.queued_bytes,
            saturated,
            handoff_awake_ns: self.latency.awake_ns(now_ns),
            handoff_asleep_ns: self.latency.asleep_ns(),
        }
    }

    fn busy(&self) -> u32 {
        self.workers.len() as u32 - self.awake - self.asleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::machine::PRESETS;

    fn pool(cpus: u32, workers: u32) -> Pool {
        let mut machine = Machine::parse(PRESETS[0].1).unwrap();
        (machine.cpu.cores, machine.cpu.threads_per_core) = (cpus, 1);
        machine.hand_off.asleep_ns = vec![10_000.0];
        Pool::new(
            &machine,
            workers,
            Outsiders::new(cpus, [None]),
            OffloadRules::default(),
            1.0,
        )
    }

    const PART: Part = Part {
        issuer: 0,
        slot: 0,
        len_bytes: 10_000,
        encrypts: true,
        write_ns: 0.0,
        written_on: None,
        since_ns: 0,
    };

    #[test]
    fn as_many_wake_as_what_is_queued_is_worth_and_cpus_are_free() {
        let mut pool = pool(4, 8);
        pool.push(PART, None);
        assert_eq!(pool.wake_ups_worth(), 1);
        (0..9).for_each(|_| pool.push(PART, None));
        assert_eq!(pool.wake_ups_worth(), 3, "one of four CPUs is the issuer's");
        assert_eq!(pool.rouse(None), Some(0));
        assert_eq!(pool.wake_ups_worth(), 2);
        assert!(pool.works(0) && pool.take(0).is_some());
        assert_eq!(pool.load(0, true).usable_workers, 3);
        assert_eq!(pool.load(0, true).idle_workers, 2);
        assert_eq!(pool.load(0, true).queued_bytes, 90_000);
    }

    #[test]
    fn a_worker_is_counted_once_whatever_it_does() {
        let mut pool = pool(2, 2);
        assert_eq!(pool.rouse(Some(1)), Some(1));
        assert_eq!(pool.rouse(Some(1)), None);
        assert!(pool.works(1) && !pool.works(1));
        pool.looks(1);
        pool.looks(1);
        assert!(pool.may_spin());
        pool.outsiders.runs(None);
        assert!(!pool.may_spin());
        pool.outsiders.sleeps(None);
        pool.sleeps(1);
        assert_eq!((pool.awake, pool.asleep, pool.busy()), (0, 2, 0));
    }
}
