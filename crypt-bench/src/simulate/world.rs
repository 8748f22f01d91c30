//! A simulation from its first to its last event.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use super::agenda::{Actor, Event};
use super::cores::Start;
use super::issuer::Issuer;
use super::scene::{Scene, Turn};
use super::worker::{Worker, Writer};

/// Turns between two looks whether to stop.
const TURNS_PER_LOOK: u64 = 1 << 16;

/// Everybody, and what they share.
#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) issuers: Vec<Issuer>,
    pub(super) workers: Vec<Worker>,
    pub(super) writers: Vec<Writer>,
    pub(super) turns: u64,
}

impl World<'_> {
    /// Lets everything happen until every request of the window is over. `false` where `stop` became
    /// true before.
    pub(super) fn run(&mut self, stop: &AtomicBool) -> bool {
        for actor in 0..self.issuers.len() {
            self.scene.agenda.add(0, Event::Wake { actor });
        }
        let mut next_look = TURNS_PER_LOOK;
        while !self.is_over()
            && let Some((time_ns, event)) = self.scene.agenda.next()
        {
            self.scene.now_ns = time_ns;
            self.happen(event);
            if self.turns >= next_look {
                next_look = self.turns + TURNS_PER_LOOK;
                if stop.load(Ordering::Relaxed) {
                    return false;
                }
            }
        }
        true
    }

    fn is_over(&self) -> bool {
        self.scene.now_ns >= self.scene.window.end_ns && self.scene.counted_left == 0
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Device { actor, token } => {
                self.scene.runs_on = None;
                self.scene.device_done(actor, token);
            }
            Event::Wake { actor } => match self.scene.cores.start(actor, self.scene.now_ns) {
                Start::Runs => self.let_run(actor),
                Start::RunsInsteadOf(other) => {
                    self.scene.suspend(other);
                    self.scene.end_spins();
                    self.let_run(actor);
                }
                Start::Waits => self.scene.end_spins(),
            },
            Event::Run { actor, epoch } => {
                if self.scene.is_current(actor, epoch) {
                    self.let_run(actor);
                }
            }
        }
    }

    /// Lets a thread that has a CPU go on until something else happens first.
    fn let_run(&mut self, actor: Actor) {
        loop {
            let now_ns = self.scene.now_ns;
            self.scene.works(actor);
            let slice_ns = self.scene.machine.scheduler.slice_ns as u64;
            if self.scene.cores.gives_way(actor, now_ns, slice_ns) {
                self.leave_cpu(actor);
                self.scene.cores.wait(actor);
                return;
            }
            self.scene.runs_on = Some(self.scene.cores.cpu(actor));
            match self.turn(actor) {
                Turn::Busy(ns) => {
                    let until_ns = now_ns + (ns * self.scene.cores.slowness(actor)) as u64;
                    self.scene.count_cpu(now_ns, until_ns);
                    self.turns += 1;
                    let is_long = self.turns.is_multiple_of(TURNS_PER_LOOK);
                    if is_long || self.is_over() || !self.scene.agenda.is_free_until(until_ns) {
                        self.scene.schedule(actor, until_ns);
                        return;
                    }
                    self.scene.now_ns = until_ns;
                }
                Turn::Spin(limit_ns) => {
                    self.turns += 1;
                    self.scene.spins(actor, limit_ns);
                    return;
                }
                Turn::Sleep => {
                    self.scene.sleeps(actor);
                    self.leave_cpu(actor);
                    return;
                }
            }
        }
    }

    fn turn(&mut self, actor: Actor) -> Turn {
        let scene = &mut self.scene;
        if let Some(writer) = scene.writer_of(actor) {
            return self.writers[writer].turn(scene);
        }
        match scene.worker_of(actor) {
            Some(worker) => self.workers[worker].turn(scene),
            None => self.issuers[actor].turn(scene),
        }
    }

    /// Takes a thread off its CPU and lets the next one run there.
    fn leave_cpu(&mut self, actor: Actor) {
        let scene = &mut self.scene;
        if let Some(next) = scene.cores.stop(actor, scene.now_ns) {
            let switch_ns = scene.machine.scheduler.switch_ns as u64;
            scene.resume(next, switch_ns);
        }
    }
}
