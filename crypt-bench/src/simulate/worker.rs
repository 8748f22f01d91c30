//! The threads that issuers hand work to: workers, and write threads.

#![forbid(unsafe_code)]

use crypt_core::exec::{Before, SortedWrites, SpinBudget};

use super::agenda::Actor;
use super::issuer::start;
use super::pool::Part;
use super::post::Posted;
use super::scene::{Scene, Turn};

/// A worker of the pool.
#[derive(Debug)]
pub(super) struct Worker {
    actor: Actor,
    worker: usize,
    working: Option<(Part, u64)>,
    /// Until when it looks for work before it sleeps; `None` where it does not look.
    looks_until_ns: Option<u64>,
    /// Since when it has nothing to do.
    idle_since_ns: Option<u64>,
    /// Whether it slept since, and has not looked for work after that.
    slept: bool,
    budget: SpinBudget,
}

impl Worker {
    /// `spin_ns` is how long it looks for work at most.
    pub(super) fn new(actor: Actor, worker: usize, spin_ns: u64) -> Self {
        Self {
            actor,
            worker,
            working: None,
            looks_until_ns: None,
            idle_since_ns: None,
            slept: false,
            budget: SpinBudget::new(spin_ns),
        }
    }

    /// Goes on, at a time when it has a CPU.
    pub(super) fn turn(&mut self, scene: &mut Scene<'_>) -> Turn {
        if let Some((part, start_ns)) = self.working.take() {
            let wake_ns = scene.end(self.actor, &part, scene.now_ns - start_ns);
            if wake_ns > 0.0 {
                return Turn::Busy(wake_ns);
            }
        }
        if let Some(part) = scene.pool.take(self.worker) {
            return self.begin(part, scene);
        }
        scene.pool.looks(self.worker);
        self.idle_since_ns.get_or_insert(scene.now_ns);
        let until_ns = scene.now_ns + self.budget.ns();
        let until_ns = *self.looks_until_ns.get_or_insert(until_ns);
        if scene.now_ns < until_ns && scene.may_spin(self.actor) {
            self.slept = false;
            return Turn::Spin((until_ns - scene.now_ns) as f64);
        }
        self.looks_until_ns = None;
        self.slept = true;
        scene.pool.sleeps(self.worker);
        Turn::Sleep
    }

    fn begin(&mut self, part: Part, scene: &mut Scene<'_>) -> Turn {
        self.looks_until_ns = None;
        self.learn(&part, scene);
        scene.begin(&part);
        self.working = Some((part, scene.now_ns));
        let mut ns = scene.part_ns(self.actor, &part);
        if scene.pool.works(self.worker) {
            ns += scene.wake_for_queued();
        }
        Turn::Busy(ns)
    }

    /// What its time without work says about hand-offs, and about how long to look for the next one.
    fn learn(&mut self, part: &Part, scene: &Scene<'_>) {
        let Some(since_ns) = self.idle_since_ns.take() else {
            return;
        };
        let before = match std::mem::take(&mut self.slept) {
            true => Before::Asleep,
            false => Before::Awake,
        };
        let wait_ns = scene.now_ns - part.since_ns;
        scene.pool.latency.learn(before, wait_ns, scene.now_ns);
        self.budget.learn(part.since_ns.saturating_sub(since_ns));
    }
}

/// Most writes that wait for it.
const WRITES_WAITING: usize = 1 << 20;

/// The write thread of a volume.
#[derive(Debug)]
pub(super) struct Writer {
    actor: Actor,
    volume: usize,
    sorted: SortedWrites<Posted>,
    /// Writes at the device; the index is the operation's token.
    at_device: Vec<Option<Posted>>,
    free: Vec<usize>,
    pushing: Option<usize>,
    asleep: bool,
}

impl Writer {
    pub(super) fn new(actor: Actor, volume: usize, at_device: u32) -> Self {
        let at_device = at_device as usize;
        Self {
            actor,
            volume,
            sorted: SortedWrites::new(WRITES_WAITING),
            at_device: vec![None; at_device],
            free: (0..at_device).rev().collect(),
            pushing: None,
            asleep: true,
        }
    }

    /// Goes on, at a time when it has a CPU.
    pub(super) fn turn(&mut self, scene: &mut Scene<'_>) -> Turn {
        if std::mem::take(&mut self.asleep) {
            scene.outsider_runs(self.actor);
        }
        let mut ns = self.pushed(scene);
        let reaped = std::mem::take(&mut scene.reaped[self.actor]);
        for &token in &reaped {
            ns += self.finish(token as usize, scene);
        }
        ns += reaped.len() as f64 * scene.machine.device.reap_ns;
        while let Some(posted) = scene.posted[self.volume].pop_front() {
            let inserted = self.sorted.insert(posted.transfer.offset_bytes, posted);
            debug_assert!(
                inserted.is_ok(),
                "it has room for more writes than there can be slots"
            );
        }
        if let Some(push_ns) = self.push(scene) {
            return Turn::Busy(ns + push_ns);
        }
        if ns > 0.0 {
            return Turn::Busy(ns);
        }
        self.asleep = true;
        scene.outsider_sleeps(self.actor);
        if scene.pool.has_queued() {
            scene.wake_for_queued();
        }
        Turn::Sleep
    }

    /// The device has the write that was being handed to it; what waking somebody by that costs.
    fn pushed(&mut self, scene: &mut Scene<'_>) -> f64 {
        let Some(token) = self.pushing.take() else {
            return 0.0;
        };
        let Some(posted) = self.at_device[token] else {
            return 0.0;
        };
        let is_over = start(
            scene,
            self.actor,
            self.volume,
            token as u64,
            &posted.transfer,
        );
        if is_over {
            return self.finish(token, scene);
        }
        0.0
    }

    fn finish(&mut self, token: usize, scene: &mut Scene<'_>) -> f64 {
        let Some(posted) = self.at_device[token].take() else {
            return 0.0;
        };
        self.free.push(token);
        scene.written(&posted)
    }

    /// Begins to hand the next write to the device; how long that takes.
    fn push(&mut self, scene: &Scene<'_>) -> Option<f64> {
        let token = *self.free.last()?;
        let posted = self.sorted.next_write()?;
        self.free.pop();
        self.at_device[token] = Some(posted);
        self.pushing = Some(token);
        let written_on = Some(posted.written_on);
        let push_ns = scene.push_ns(self.actor, self.volume, &posted.transfer, written_on);
        Some(scene.machine.hand_off.sort_ns + push_ns)
    }
}
