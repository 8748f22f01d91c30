//! The life of a worker in its pool: take a part and run it; with none left look for a while, then sleep.
#![forbid(unsafe_code)]

use super::PoolShared;
use crate::exec::counters::bump;
use crate::exec::latency::Before;
use crate::exec::spin_budget::SpinBudget;
use crate::exec::spinner::Spinner;
use crate::exec::sync::LOOKS_BEFORE_IDLE;
use crate::exec::task::Part;

/// A part for a worker, and how the worker came by it.
struct Next {
    part: Part,
    before: Before,
    /// Since when it was idle; `None` where it did not get that far.
    idle_since_ns: Option<u64>,
}

impl PoolShared {
    /// The life of one worker: runs parts until the pool is stopped and nothing is queued.
    pub(crate) fn work(&self, worker: usize) {
        let counters = self.counters.of(worker);
        let mut budget = SpinBudget::new(self.spin_ns);
        while let Some(next) = self.next_part(worker, &budget) {
            // Counted before its result can be seen.
            bump(&counters.parts_run);
            let begun = next.part.run();
            let Some(begun) = begun.filter(|_| next.before != Before::Busy) else {
                continue;
            };
            let wait_ns = begun.at_ns.saturating_sub(begun.handed_off_ns);
            self.traffic
                .latency
                .learn(next.before, wait_ns, begun.at_ns);
            let since_ns = next.idle_since_ns.unwrap_or(begun.handed_off_ns);
            budget.learn(begun.handed_off_ns.saturating_sub(since_ns));
        }
    }

    pub(crate) fn register(&self, worker: usize) {
        self.idle.register(worker);
    }

    /// The next part for `worker`, waiting for it; `None` at the end.
    fn next_part(&self, worker: usize, budget: &SpinBudget) -> Option<Next> {
        if let Some(part) = self.take(worker) {
            return Some(Next {
                part,
                before: Before::Busy,
                idle_since_ns: None,
            });
        }
        // A queue that gets a result usually hands off again at once, so a worker looks a little
        // longer before it says that it is idle, which costs both sides a cache miss.
        for _ in 0..LOOKS_BEFORE_IDLE {
            std::hint::spin_loop();
            if self.has_work(worker)
                && let Some(part) = self.take(worker)
            {
                return Some(Next {
                    part,
                    before: Before::Awake,
                    idle_since_ns: None,
                });
            }
        }
        let since_ns = self.clock.now_ns();
        self.idle.enter();
        let found = self.wait_for_part(worker, budget);
        self.idle.leave();
        let (part, before) = found?;
        self.wake_for_queued();
        Some(Next {
            part,
            before,
            idle_since_ns: Some(since_ns),
        })
    }

    fn wait_for_part(&self, worker: usize, budget: &SpinBudget) -> Option<(Part, Before)> {
        let mut before = Before::Awake;
        loop {
            // Read before the queue: what was queued before the stop is still run.
            let stopped = self.is_stopped();
            let part = self.take(worker);
            if part.is_some() || stopped {
                return part.map(|part| (part, before));
            }
            if let Some(part) = self.spin(worker, budget) {
                return Some((part, Before::Awake));
            }
            let has_work = || self.has_work(worker) || self.is_stopped();
            before = if self.idle.sleep(worker, has_work) {
                Before::Asleep
            } else {
                Before::Awake
            };
        }
    }

    /// Looks for a part for a while, as long as the core would be idle otherwise.
    fn spin(&self, worker: usize, budget: &SpinBudget) -> Option<Part> {
        if budget.ns() == 0 || !self.may_spin(self.clock.now_ns()) {
            return None;
        }
        let counters = self.counters.of(worker);
        bump(&counters.spins);
        let mut spinner = Spinner::new(self.clock, budget.ns());
        while spinner.goes_on(|now_ns| self.may_spin(now_ns)) && !self.is_stopped() {
            if self.has_work(worker)
                && let Some(part) = self.take(worker)
            {
                bump(&counters.spins_won);
                return Some(part);
            }
        }
        None
    }

    fn has_work(&self, worker: usize) -> bool {
        let own = self.own_queues.get(worker);
        own.is_some_and(|queue| !queue.is_empty()) || !self.queue.is_empty()
    }

    fn take(&self, worker: usize) -> Option<Part> {
        let own = self.own_queues.get(worker).and_then(|queue| queue.pop());
        let part = own.or_else(|| self.queue.pop())?;
        self.taken(&part);
        Some(part)
    }
}
