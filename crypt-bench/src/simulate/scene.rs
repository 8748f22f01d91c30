//! What the threads of a simulation share: time, CPUs, the pool, devices, and each other's mail.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

use crypt_core::policy::OffloadRules;

use super::agenda::{Actor, Agenda, Event};
use super::cores::{Cores, Place};
use super::device::Device;
use super::machine::{Cipher, Machine, WakesBy};
use super::pool::Pool;
use super::post::{Mail, Posted, Task};
use crate::generate::Random;
use crate::record::Window;

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Turn {
    /// Work for so many ns of an undisturbed CPU.
    Busy(f64),
    /// Look for news, for at most so many ns.
    Spin(f64),
    /// Sleep until somebody wakes it.
    Sleep,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Asleep,
    /// Somebody has woken it, and it does not run yet.
    Waking,
    Working,
    Spinning {
        since_ns: u64,
    },
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) machine: &'a Machine,
    pub(super) cipher: Cipher,
    pub(super) now_ns: u64,
    pub(super) window: Window,
    pub(super) pool: Pool,
    pub(super) rules: OffloadRules,
    pub(super) cores: Cores,
    /// One per volume.
    pub(super) devices: Vec<Device>,
    /// Results for each issuer.
    pub(super) mail: Vec<VecDeque<Mail>>,
    /// Tokens of finished device operations, for each thread.
    pub(super) reaped: Vec<Vec<u64>>,
    /// Writes for each write thread.
    pub(super) posted: Vec<VecDeque<Posted>>,
    /// Requests of the window that are not over.
    pub(super) counted_left: u64,
    /// Processor time inside the window.
    pub(super) cpu_ns: u64,
    pub(super) agenda: Agenda,
    /// The CPU of the thread whose turn it is; none where a device does something.
    pub(super) runs_on: Option<usize>,
    standing: Vec<Standing>,
    epochs: Vec<u32>,
    /// Until when each thread is planned to be busy, or to spin.
    until_ns: Vec<u64>,
    /// Work of each thread that was left when it lost its CPU.
    left_ns: Vec<u64>,
    pub(super) tasks: Vec<Vec<Option<Task>>>,
    /// Issuers are threads below this, workers those below `writers_from`, write threads the rest.
    pub(super) workers_from: Actor,
    pub(super) writers_from: Actor,
    random: Random,
}

/// How many threads of each kind there are, and slots of each issuer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cast {
    pub(super) issuers: usize,
    pub(super) workers: usize,
    pub(super) writers: usize,
    pub(super) depth: usize,
}

impl Cast {
    pub(super) fn threads(&self) -> usize {
        self.issuers + self.workers + self.writers
    }
}

/// What a scene is made of.
#[derive(Debug)]
pub(super) struct Props<'a> {
    pub(super) machine: &'a Machine,
    pub(super) cipher: Cipher,
    pub(super) window: Window,
    pub(super) pool: Pool,
    pub(super) rules: OffloadRules,
    pub(super) cores: Cores,
    pub(super) devices: Vec<Device>,
    pub(super) seed: u64,
}

impl<'a> Scene<'a> {
    pub(super) fn new(cast: Cast, props: Props<'a>) -> Self {
        let threads = cast.threads();
        Self {
            machine: props.machine,
            cipher: props.cipher,
            now_ns: 0,
            window: props.window,
            pool: props.pool,
            rules: props.rules,
            cores: props.cores,
            devices: props.devices,
            mail: vec![VecDeque::new(); cast.issuers],
            reaped: vec![Vec::new(); threads],
            posted: vec![VecDeque::new(); cast.writers],
            counted_left: 0,
            cpu_ns: 0,
            agenda: Agenda::default(),
            runs_on: None,
            standing: vec![Standing::Asleep; threads],
            epochs: vec![0; threads],
            until_ns: vec![0; threads],
            left_ns: vec![0; threads],
            tasks: vec![vec![None; cast.depth]; cast.issuers],
            workers_from: cast.issuers,
            writers_from: cast.issuers + cast.workers,
            random: Random::new(props.seed),
        }
    }

    /// The worker that a thread is, or none.
    pub(super) fn worker_of(&self, actor: Actor) -> Option<usize> {
        let worker = actor.checked_sub(self.workers_from)?;
        (actor < self.writers_from).then_some(worker)
    }

    /// The write thread that a thread is, or none.
    pub(super) fn writer_of(&self, actor: Actor) -> Option<usize> {
        actor.checked_sub(self.writers_from)
    }

    /// Tells a thread that there is something for it; what that costs the caller, in ns.
    pub(super) fn notify(&mut self, actor: Actor) -> f64 {
        match self.standing[actor] {
            Standing::Working | Standing::Waking => 0.0,
            Standing::Spinning { .. } => {
                self.rouse_spinner(actor);
                0.0
            }
            Standing::Asleep => {
                let (delay_ns, self_ns) = self.wake_up(actor);
                self.wake_after(actor, delay_ns);
                self_ns
            }
        }
    }

    /// How long a sleeper takes to begin that is woken now, and what that costs who wakes it.
    fn wake_up(&mut self, actor: Actor) -> (f64, f64) {
        let (machine, place) = (self.machine, self.cores.place(actor));
        let hand_off = &machine.hand_off;
        match place {
            Place::Taken(cpu, _) if self.runs_on.is_none_or(|here| here == cpu) => {
                (machine.scheduler.switch_ns, hand_off.wake_self_ns)
            }
            Place::Idle(cpu)
                if (self.cores.idle_ns(cpu, self.now_ns) as f64) >= hand_off.doze_ns =>
            {
                let share = self.random.next() as f64 / u64::MAX as f64;
                (hand_off.asleep_ns_at(share), hand_off.wake_asleep_self_ns)
            }
            Place::Idle(_) | Place::Taken(..) | Place::Nowhere => {
                (hand_off.dozing_ns, hand_off.wake_self_ns)
            }
        }
    }

    /// The device has finished an operation of a thread.
    pub(super) fn device_done(&mut self, actor: Actor, token: u64) {
        self.reaped[actor].push(token);
        if self.standing[actor] == Standing::Asleep
            && self.machine.device.wakes_by == WakesBy::Timer
        {
            self.wake_after(actor, 0.0);
        } else {
            self.notify(actor);
        }
    }

    fn wake_after(&mut self, actor: Actor, delay_ns: f64) {
        self.standing[actor] = Standing::Waking;
        let time_ns = self.now_ns + delay_ns as u64;
        self.agenda.add(time_ns, Event::Wake { actor });
    }

    /// Ends a spin as soon as the news arrives.
    fn rouse_spinner(&mut self, actor: Actor) {
        let arrival_ns = self.now_ns + self.machine.hand_off.awake_ns as u64;
        self.end_spin(actor, arrival_ns);
    }

    fn end_spin(&mut self, actor: Actor, time_ns: u64) {
        if let Standing::Spinning { since_ns } = self.standing[actor] {
            self.count_cpu(since_ns, time_ns);
            self.standing[actor] = Standing::Working;
            self.schedule(actor, time_ns);
        }
    }

    /// Threads wait for a CPU: who only looks for work should see that.
    pub(super) fn end_spins(&mut self) {
        for actor in 0..self.standing.len() {
            self.end_spin(actor, self.now_ns);
        }
    }

    /// A thread runs.
    pub(super) fn works(&mut self, actor: Actor) {
        if let Standing::Spinning { since_ns } = self.standing[actor] {
            self.count_cpu(since_ns, self.now_ns);
        }
        self.standing[actor] = Standing::Working;
    }

    pub(super) fn sleeps(&mut self, actor: Actor) {
        self.standing[actor] = Standing::Asleep;
    }

    pub(super) fn spins(&mut self, actor: Actor, limit_ns: f64) {
        let since_ns = self.now_ns;
        self.standing[actor] = Standing::Spinning { since_ns };
        self.schedule(actor, since_ns.saturating_add(limit_ns as u64));
    }

    /// The thread goes on at `time_ns`, and nothing that was planned for it before counts.
    pub(super) fn schedule(&mut self, actor: Actor, time_ns: u64) {
        self.epochs[actor] = self.epochs[actor].wrapping_add(1);
        let epoch = self.epochs[actor];
        self.until_ns[actor] = time_ns;
        self.agenda.add(time_ns, Event::Run { actor, epoch });
    }

    /// A running thread loses its CPU: what it was doing it goes on with when it has one again.
    pub(super) fn suspend(&mut self, actor: Actor) {
        let left_ns = self.until_ns[actor].saturating_sub(self.now_ns);
        self.left_ns[actor] = match self.standing[actor] {
            // It has looked for long enough.
            Standing::Spinning { .. } => 0,
            _ => left_ns,
        };
        self.works(actor);
        self.epochs[actor] = self.epochs[actor].wrapping_add(1);
    }

    /// A thread has a CPU that had none, and goes on after `delay_ns`.
    pub(super) fn resume(&mut self, actor: Actor, delay_ns: u64) {
        let left_ns = std::mem::take(&mut self.left_ns[actor]);
        self.works(actor);
        self.schedule(actor, self.now_ns + delay_ns + left_ns);
    }

    pub(super) fn is_current(&self, actor: Actor, epoch: u32) -> bool {
        self.epochs[actor] == epoch
    }

    /// Adds the part of a time of work that falls into the window.
    #[inline]
    pub(super) fn count_cpu(&mut self, from_ns: u64, to_ns: u64) {
        let from_ns = from_ns.max(self.window.start_ns);
        self.cpu_ns += to_ns.min(self.window.end_ns).saturating_sub(from_ns);
    }

    /// An issuer or a write thread begins to run.
    pub(super) fn outsider_runs(&mut self, actor: Actor) {
        self.pool.outsiders.runs(self.cores.pinned(actor));
    }

    /// One goes to sleep.
    pub(super) fn outsider_sleeps(&mut self, actor: Actor) {
        self.pool.outsiders.sleeps(self.cores.pinned(actor));
    }

    /// Whether another one that runs is bound to the same CPU.
    pub(super) fn is_crowded(&self, actor: Actor) -> bool {
        self.pool.outsiders.is_crowded(self.cores.pinned(actor))
    }

    /// Whether a thread may look for work without taking a CPU from another.
    pub(super) fn may_spin(&self, actor: Actor) -> bool {
        let spins = self.machine.hand_off.spin_ns > 0.0;
        spins && self.pool.may_spin() && !self.cores.is_wanted(actor)
    }

    /// Ends the spins of as many threads as there are parts for.
    pub(super) fn rouse_lookers(&mut self, parts: usize) {
        let mut left = parts;
        for actor in 0..self.writers_from {
            if left > 0 && matches!(self.standing[actor], Standing::Spinning { .. }) {
                self.rouse_spinner(actor);
                left -= 1;
            }
        }
    }

    /// Wakes as many sleepers as what is queued is worth; what that costs the caller.
    pub(super) fn wake_for_queued(&mut self) -> f64 {
        let worth = self.pool.wake_ups_worth();
        (0..worth).map(|_| self.wake_worker(None)).sum()
    }

    pub(super) fn wake_worker(&mut self, worker: Option<usize>) -> f64 {
        match self.pool.rouse(worker) {
            Some(worker) => {
                let self_ns = self.notify(self.workers_from + worker);
                if !self.pool.may_spin() {
                    self.end_spins();
                }
                self_ns
            }
            None => 0.0,
        }
    }
}
