//! The step function: one for reads and writes, for every policy and every driver.
//!
//! Each event changes one slot, which says what comes next for it: the device, the cipher, or the
//! end. Cipher work is collected, placed by the policy in one batch, and becomes an inline run
//! followed by what comes after it, or a hand-off.
#![forbid(unsafe_code)]

use std::num::NonZeroU8;

use super::slots::{Next, Slot, State};
use super::{Action, ActionBuffer, Books, Event, Pipeline};
use crate::error::Errno;
use crate::exec::{PoolLoad, Route};
use crate::policy::{Direction, Glance, Load, Placement, WriteRoute};

/// Batches in a row that a policy may keep before the workers are looked at again, so that what it believes
/// of hand-offs does not grow old.
const GLANCES_PER_LOOK: u32 = 63;

impl Pipeline {
    /// Advances every slot that the events speak of, and fills `out` with what to do.
    ///
    /// `now_ns` must not go back between calls. `workers` says how busy the pool is; all zero where
    /// there is none.
    pub fn step(
        &mut self,
        now_ns: u64,
        events: &[Event],
        workers: &PoolLoad,
        out: &mut ActionBuffer,
    ) {
        out.clear();
        for event in events {
            self.feed(now_ns, event, out);
        }
        self.place(now_ns, || *workers, out);
    }

    /// One event of a [`Pipeline::step`], for a driver that has them one by one: advances the slot
    /// that it speaks of, and adds to `out` what to do. The step ends with [`Pipeline::place`].
    #[inline(always)]
    pub fn feed(&mut self, now_ns: u64, event: &Event, out: &mut ActionBuffer) {
        let Self { books, slots, .. } = self;
        let live = slots.live_mut(event.token());
        let Some(slot) = live.filter(|slot| slot.expects(event)) else {
            books.counters.stale_events += 1;
            return;
        };
        let next = match *event {
            Event::Submit {
                ref request,
                submitted_ns,
                in_place,
                ..
            } => {
                books.in_flight += 1;
                slot.submit(request, submitted_ns, in_place, &books.config)
            }
            Event::DeviceDone { result, .. } => {
                books.at_device -= 1;
                // A device that any thread may call takes no time but that of its caller.
                if self.chooses && !books.config.worker_writes {
                    self.costs
                        .observe_device(now_ns.saturating_sub(slot.device_since_ns));
                }
                slot.device_done(now_ns, result, &books.config, &mut books.counters)
            }
            Event::CryptDone {
                result,
                cipher_ns,
                wait_ns,
                ..
            } => {
                books.at_workers -= 1;
                let outcome = slot.crypt_done(now_ns, cipher_ns, wait_ns);
                self.costs.observe(&outcome);
                self.policy.observe(&outcome);
                match result {
                    Ok(()) => slot.after_crypt(),
                    Err(errno) => Next::Fail(errno),
                }
            }
            Event::Written {
                result,
                cipher_ns,
                wait_ns,
                device_ns,
                ..
            } => {
                books.at_workers -= 1;
                let outcome = slot.written(now_ns, cipher_ns, wait_ns, device_ns);
                self.costs.observe(&outcome);
                self.policy.observe(&outcome);
                slot.device_done(now_ns, result, &books.config, &mut books.counters)
            }
        };
        match next {
            Next::Crypt(direction) => {
                slot.state = State::Placing;
                slot.plan_job(direction, &books.config);
                self.jobs.push(event.token());
            }
            Next::Device => books.start_device(now_ns, slot, out),
            Next::Done => books.complete(slot, Ok(()), out),
            Next::Fail(errno) => books.complete(slot, Err(errno), out),
        }
    }

    /// Places the cipher work that the events since the last call led to. `workers` says how busy
    /// the pool is, and is only asked where there is work to place.
    #[inline]
    pub fn place(
        &mut self,
        now_ns: u64,
        workers: impl FnOnce() -> PoolLoad,
        out: &mut ActionBuffer,
    ) {
        if self.jobs.tokens().is_empty() {
            return;
        }
        if self.keeps_jobs() {
            self.run_inline(now_ns, out);
        } else {
            let workers = workers();
            self.chooses = workers.workers > 0;
            self.seen = workers;
            if self.chooses {
                self.place_jobs(now_ns, &workers, out);
            } else {
                self.run_inline(now_ns, out);
            }
        }
        self.jobs.clear();
    }

    /// Whether the policy keeps the batch inline without a look at the workers.
    #[inline]
    fn keeps_jobs(&mut self) -> bool {
        if !self.chooses || self.glances == GLANCES_PER_LOOK {
            self.glances = 0;
            return false;
        }
        let glance = Glance {
            in_flight: self.books.in_flight,
            costs: self.seen.refine(self.costs.costs()),
        };
        let keeps = self.policy.keeps(self.jobs.look_up(&self.slots), &glance);
        self.glances = if keeps { self.glances + 1 } else { 0 };
        keeps
    }

    #[inline]
    fn run_inline(&mut self, now_ns: u64, out: &mut ActionBuffer) {
        for &token in self.jobs.tokens() {
            self.books.run_inline(now_ns, self.slots.at_mut(token), out);
        }
    }

    fn place_jobs(&mut self, now_ns: u64, workers: &PoolLoad, out: &mut ActionBuffer) {
        let load = self.load(now_ns, workers);
        self.jobs.place(&self.slots, self.policy.as_mut(), &load);
        let rules = self.policy.offload_rules();
        for (token, placement) in self.jobs.placed() {
            let (books, slot) = (&mut self.books, self.slots.at_mut(token));
            match placement {
                Placement::Inline => books.run_inline(now_ns, slot, out),
                Placement::Offload => {
                    books.counters.offload += 1;
                    books.hand_off(now_ns, slot, NonZeroU8::MIN, rules.writes, out);
                }
                Placement::Split(parts) => {
                    books.counters.split += 1;
                    books.hand_off(now_ns, slot, parts, rules.writes, out);
                }
            }
            slot.timing.placement = Some(placement);
        }
    }

    fn load(&self, now_ns: u64, workers: &PoolLoad) -> Load {
        Load {
            now_ns,
            depth: self.books.config.depth,
            in_flight: self.books.in_flight,
            at_device: self.books.at_device,
            at_workers: self.books.at_workers,
            workers: workers.workers,
            usable_workers: workers.usable_workers,
            idle_workers: workers.idle_workers,
            awake_workers: workers.awake_workers,
            queued_bytes: workers.queued_bytes,
            saturated: workers.saturated,
            costs: workers.refine(self.costs.costs()),
        }
    }
}

impl Books {
    #[inline]
    fn start_device(&mut self, now_ns: u64, slot: &mut Slot, out: &mut ActionBuffer) {
        self.at_device += 1;
        slot.state = State::Device;
        slot.device_since_ns = now_ns;
        out.push(Action::Device {
            token: slot.token,
            transfer: slot.transfer(&self.config),
        });
    }

    #[inline]
    fn complete(&mut self, slot: &mut Slot, result: Result<(), Errno>, out: &mut ActionBuffer) {
        self.in_flight -= 1;
        slot.state = State::Done;
        let token = slot.token;
        out.push(Action::Complete { token, result });
    }

    /// The cipher here, and at once what comes after it.
    #[inline(always)]
    fn run_inline(&mut self, now_ns: u64, slot: &mut Slot, out: &mut ActionBuffer) {
        self.counters.inline += 1;
        slot.placed_ns = now_ns;
        slot.timing.placement = Some(Placement::Inline);
        out.push(Action::Crypt {
            token: slot.token,
            span: slot.span(&self.config),
        });
        match slot.job.direction {
            Direction::Encrypt => self.start_device(now_ns, slot, out),
            Direction::Decrypt => self.complete(slot, Ok(()), out),
        }
    }

    fn hand_off(
        &mut self,
        now_ns: u64,
        slot: &mut Slot,
        parts: NonZeroU8,
        writes: WriteRoute,
        out: &mut ActionBuffer,
    ) {
        let parts = parts.min(NonZeroU8::new(slot.job.max_parts).unwrap_or(NonZeroU8::MIN));
        slot.state = State::Worker;
        slot.placed_ns = now_ns;
        let route = self.route(slot, writes);
        slot.routed = route != Route::Return;
        self.at_workers += 1;
        out.push(Action::Offload {
            token: slot.token,
            span: slot.span(&self.config),
            parts,
            route,
        });
    }

    fn route(&self, slot: &Slot, writes: WriteRoute) -> Route {
        if slot.job.direction == Direction::Decrypt {
            return Route::Return;
        }
        let transfer = slot.transfer(&self.config);
        let (offset_bytes, flags) = (transfer.offset_bytes, transfer.flags);
        match writes {
            WriteRoute::Worker if self.config.worker_writes => Route::Worker {
                offset_bytes,
                flags,
            },
            WriteRoute::Queue | WriteRoute::Worker => Route::Return,
            WriteRoute::WriteThread => Route::WriteThread {
                offset_bytes,
                flags,
            },
        }
    }
}
