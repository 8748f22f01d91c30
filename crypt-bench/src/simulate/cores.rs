//! Who runs on which logical CPU, and who waits for one.
//!
//! A simple scheduler, after what Linux does. A thread that becomes ready gets its last CPU where that is
//! idle, else another idle one, one of an idle core near by where there is. Where there is none it takes its
//! last CPU from the thread that runs there, which has had more of it lately. Who has lost its CPU waits in
//! one queue for all CPUs, from which a CPU that becomes idle helps itself. A thread that runs while others
//! wait gives way after its slice.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

use super::agenda::Actor;
use super::machine::Machine;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Cores {
    /// Who runs on each CPU. Siblings have neighbouring numbers.
    running: Vec<Option<Actor>>,
    /// Since when each CPU is idle, where it is.
    idle_since_ns: Vec<u64>,
    threads_per_core: usize,
    cpus_per_node: usize,
    smt_factor: f64,
    waiting: VecDeque<Actor>,
    threads: Vec<Thread>,
}

/// Where a thread would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On an idle CPU.
    Idle(usize),
    /// On a CPU that it takes from another thread.
    Taken(usize, Actor),
    Nowhere,
}

/// What became of a thread that wants to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Runs,
    RunsInsteadOf(Actor),
    Waits,
}

/// What is known of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thread {
    /// The CPU that it may run on; any where there is none.
    pub(super) pinned: Option<usize>,
    /// Whether it goes before the others.
    pub(super) first: bool,
    /// Where it runs, or ran last.
    cpu: usize,
    /// Since when it runs there.
    since_ns: u64,
}

impl Thread {
    pub(super) fn new(pinned: Option<usize>, first: bool, cpu: usize) -> Self {
        Self {
            pinned,
            first,
            cpu: pinned.unwrap_or(cpu),
            since_ns: 0,
        }
    }
}

impl Cores {
    pub(super) fn new(machine: &Machine, threads: Vec<Thread>) -> Self {
        let cpus = machine.cpus() as usize;
        Self {
            running: vec![None; cpus],
            idle_since_ns: vec![0; cpus],
            threads_per_core: machine.cpu.threads_per_core as usize,
            cpus_per_node: (cpus / machine.cpu.nodes as usize).max(1),
            smt_factor: 1.0 / machine.cpu.smt_share,
            waiting: VecDeque::with_capacity(threads.len()),
            threads,
        }
    }

    /// Puts a thread on a CPU where there is one for it; else it waits.
    pub(super) fn start(&mut self, actor: Actor, now_ns: u64) -> Start {
        match self.place(actor) {
            Place::Idle(cpu) => {
                self.put(actor, cpu, now_ns);
                Start::Runs
            }
            Place::Taken(cpu, victim) => {
                self.put(actor, cpu, now_ns);
                self.wait(victim);
                Start::RunsInsteadOf(victim)
            }
            Place::Nowhere => {
                self.wait(actor);
                Start::Waits
            }
        }
    }

    /// Where a thread would run that becomes ready now.
    pub(super) fn place(&self, actor: Actor) -> Place {
        let thread = &self.threads[actor];
        if let Some(cpu) = self.idle_cpu(thread) {
            return Place::Idle(cpu);
        }
        match self.running[thread.cpu] {
            Some(victim) if thread.first || !self.threads[victim].first => {
                Place::Taken(thread.cpu, victim)
            }
            _ => Place::Nowhere,
        }
    }

    /// Lets a thread wait for a CPU that has none and wants to go on.
    pub(super) fn wait(&mut self, actor: Actor) {
        if self.threads[actor].first {
            self.waiting.push_front(actor);
        } else {
            self.waiting.push_back(actor);
        }
    }

    /// Takes a running thread off its CPU; who runs there next.
    pub(super) fn stop(&mut self, actor: Actor, now_ns: u64) -> Option<Actor> {
        let cpu = self.threads[actor].cpu;
        self.running[cpu] = None;
        self.idle_since_ns[cpu] = now_ns;
        let fits = |&next: &Actor| self.threads[next].pinned.is_none_or(|pinned| pinned == cpu);
        let place = self.waiting.iter().position(fits)?;
        let next = self.waiting.remove(place)?;
        self.put(next, cpu, now_ns);
        Some(next)
    }

    /// For how long a CPU has been idle.
    pub(super) fn idle_ns(&self, cpu: usize, now_ns: u64) -> u64 {
        now_ns - self.idle_since_ns[cpu]
    }

    /// Whether a running thread has had its share and somebody waits for its CPU.
    #[inline]
    pub(super) fn gives_way(&self, actor: Actor, now_ns: u64, slice_ns: u64) -> bool {
        let thread = &self.threads[actor];
        let ran_ns = now_ns - thread.since_ns;
        self.waits_for(actor, |next| {
            ran_ns >= slice_ns || (next.first && !thread.first)
        })
    }

    /// Whether somebody waits for the CPU of a running thread.
    #[inline]
    pub(super) fn is_wanted(&self, actor: Actor) -> bool {
        self.waits_for(actor, |_| true)
    }

    fn waits_for(&self, actor: Actor, counts: impl Fn(&Thread) -> bool) -> bool {
        let cpu = self.threads[actor].cpu;
        self.waiting.iter().any(|&next| {
            let next = &self.threads[next];
            next.pinned.is_none_or(|pinned| pinned == cpu) && counts(next)
        })
    }

    /// How many times as long work takes for a running thread, whose sibling may be busy.
    #[inline]
    pub(super) fn slowness(&self, actor: Actor) -> f64 {
        if self.threads_per_core == 1 {
            return 1.0;
        }
        let core = self.threads[actor].cpu / self.threads_per_core;
        if self.busy(core) > 1 {
            self.smt_factor
        } else {
            1.0
        }
    }

    /// The CPU that a thread may run on; any where there is none.
    pub(super) fn pinned(&self, actor: Actor) -> Option<usize> {
        self.threads[actor].pinned
    }

    /// The CPU that a thread runs on, or ran on last.
    #[inline]
    pub(super) fn cpu(&self, actor: Actor) -> usize {
        self.threads[actor].cpu
    }

    /// Whether two CPUs are on one node.
    #[inline]
    pub(super) fn are_near(&self, left: usize, right: usize) -> bool {
        left / self.cpus_per_node == right / self.cpus_per_node
    }

    fn put(&mut self, actor: Actor, cpu: usize, now_ns: u64) {
        self.running[cpu] = Some(actor);
        let thread = &mut self.threads[actor];
        (thread.cpu, thread.since_ns) = (cpu, now_ns);
    }

    fn idle_cpu(&self, thread: &Thread) -> Option<usize> {
        let is_idle = |cpu: &usize| self.running[*cpu].is_none();
        if is_idle(&thread.cpu) {
            return Some(thread.cpu);
        }
        if thread.pinned.is_some() {
            return None;
        }
        let strangeness = |cpu: &usize| {
            let is_shared = self.busy(cpu / self.threads_per_core) > 0;
            (is_shared, !self.are_near(*cpu, thread.cpu))
        };
        (0..self.running.len())
            .filter(is_idle)
            .min_by_key(strangeness)
    }

    /// Busy CPUs of a core.
    fn busy(&self, core: usize) -> usize {
        let first = core * self.threads_per_core;
        let cpus = &self.running[first..first + self.threads_per_core];
        cpus.iter().filter(|cpu| cpu.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::machine::PRESETS;

    fn cores(cpus: u32, threads_per_core: u32, nodes: u32, threads: &[Thread]) -> Cores {
        let mut machine = Machine::parse(PRESETS[0].1).unwrap();
        machine.cpu.cores = cpus / threads_per_core;
        machine.cpu.threads_per_core = threads_per_core;
        (machine.cpu.nodes, machine.cpu.smt_share) = (nodes, 2.0 / 3.0);
        Cores::new(&machine, threads.to_vec())
    }

    const ANY: Thread = Thread {
        pinned: None,
        first: false,
        cpu: 0,
        since_ns: 0,
    };

    #[test]
    fn idle_cores_come_before_idle_siblings() {
        let mut cores = cores(4, 2, 1, &[ANY; 4]);
        for (actor, cpu, slowness) in [(0, 0, 1.0), (1, 2, 1.0), (2, 1, 1.5), (3, 3, 1.5)] {
            assert_eq!(cores.start(actor, 0), Start::Runs);
            assert_eq!(cores.cpu(actor), cpu);
            assert!((cores.slowness(actor) - slowness).abs() < 0.01);
        }
    }

    #[test]
    fn who_loses_its_cpu_waits_for_one_that_it_may_use() {
        let pinned = Thread::new(Some(1), false, 0);
        let mut cores = cores(2, 1, 2, &[ANY, pinned, ANY, pinned]);
        assert_eq!(
            (cores.start(0, 0), cores.start(1, 0)),
            (Start::Runs, Start::Runs)
        );
        assert_eq!(cores.start(2, 0), Start::RunsInsteadOf(0));
        assert_eq!(cores.start(3, 0), Start::RunsInsteadOf(1));
        assert!(cores.is_wanted(2) && cores.is_wanted(3));
        assert_eq!(cores.stop(2, 5), Some(0), "the pinned one can't run there");
        assert_eq!(cores.stop(0, 5), None);
        assert_eq!(cores.stop(3, 5), Some(1));
        assert!(!cores.are_near(0, 1));
    }

    #[test]
    fn a_thread_gives_way_after_its_slice_and_at_once_to_who_goes_first() {
        let first = Thread::new(None, true, 0);
        let mut cores = cores(1, 1, 1, &[ANY, ANY, first]);
        assert_eq!(cores.start(2, 0), Start::Runs);
        assert_eq!(cores.start(0, 0), Start::Waits, "it goes after the first");
        assert!(!cores.gives_way(2, 9, 10) && cores.gives_way(2, 10, 10));
        assert_eq!(cores.stop(2, 10), Some(0));
        assert!(!cores.gives_way(0, 50, 10), "nobody waits");
        cores.wait(2);
        assert!(cores.gives_way(0, 11, 10));
        assert_eq!(cores.stop(0, 11), Some(2));
    }
}
