//! The step function: one for reads and writes, for every policy and every driver.
//!
//! Each event changes one slot, which says what comes next for it: the device, the cipher, or the
//! end. Cipher work is collected, placed by the policy in one batch, and becomes an inline run
//! followed by what comes after it, or a hand-off.
#![forbid(unsafe_code)]

use std::num::NonZeroU8;

use super::slots::{Next, State};
use super::{Action, ActionBuffer, Event, Pipeline, Token};
use crate::error::Errno;
use crate::exec::PoolLoad;
use crate::policy::{Direction, Load, Placement};

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
        let token = event.token();
        let Some(slot) = self
            .slots
            .live_mut(token)
            .filter(|slot| slot.expects(event))
        else {
            self.counters.stale_events += 1;
            return;
        };
        let next = match *event {
            Event::Submit {
                ref request,
                submitted_ns,
                in_place,
                ..
            } => {
                self.in_flight += 1;
                slot.submit(request, submitted_ns, in_place, &self.config)
            }
            Event::DeviceDone { result, .. } => {
                match slot.state {
                    State::Worker => self.at_workers -= 1,
                    _ => self.at_device -= 1,
                }
                slot.device_done(now_ns, result, &self.config, &mut self.counters)
            }
            Event::CryptDone {
                result,
                cipher_ns,
                wait_ns,
                ..
            } => {
                self.at_workers -= 1;
                let outcome = slot.crypt_done(now_ns, cipher_ns, wait_ns);
                self.costs.observe(&outcome);
                self.policy.observe(&outcome);
                match result {
                    Ok(()) => slot.after_crypt(),
                    Err(errno) => Next::Fail(errno),
                }
            }
        };
        self.advance(now_ns, token, next, out);
    }

    /// Does what comes next for a slot that was live in this step.
    #[inline(always)]
    fn advance(&mut self, now_ns: u64, token: Token, next: Next, out: &mut ActionBuffer) {
        let slot = self.slots.at_mut(token);
        match next {
            Next::Device => {
                self.at_device += 1;
                slot.state = State::Device;
                slot.device_since_ns = now_ns;
                out.push(Action::Device {
                    token,
                    transfer: slot.transfer(&self.config),
                });
            }
            Next::Crypt(direction) => {
                slot.state = State::Placing;
                slot.plan_job(direction, &self.config);
                self.jobs.push(token);
            }
            Next::Done => self.complete(token, Ok(()), out),
            Next::Fail(errno) => self.complete(token, Err(errno), out),
        }
    }

    #[inline]
    fn complete(&mut self, token: Token, result: Result<(), Errno>, out: &mut ActionBuffer) {
        self.in_flight -= 1;
        self.slots.at_mut(token).state = State::Done;
        out.push(Action::Complete { token, result });
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
        if self.jobs.len() > 0 {
            self.place_jobs(now_ns, &workers(), out);
            self.jobs.clear();
        }
    }

    fn place_jobs(&mut self, now_ns: u64, workers: &PoolLoad, out: &mut ActionBuffer) {
        self.chooses = workers.workers > 0;
        if self.chooses {
            let load = self.load(now_ns, workers);
            self.jobs.place(&self.slots, self.policy.as_mut(), &load);
        }
        for index in 0..self.jobs.len() {
            let (token, placement) = self.jobs.placed(index);
            let slot = self.slots.at_mut(token);
            slot.placed_ns = now_ns;
            slot.timing.placement = Some(placement);
            match placement {
                Placement::Inline => {
                    self.counters.inline += 1;
                    let (span, next) = (slot.span(&self.config), slot.after_crypt());
                    out.push(Action::Crypt { token, span });
                    self.advance(now_ns, token, next, out);
                }
                Placement::Offload => {
                    self.counters.offload += 1;
                    self.hand_off(now_ns, token, NonZeroU8::MIN, out);
                }
                Placement::Split(parts) => {
                    self.counters.split += 1;
                    self.hand_off(now_ns, token, parts, out);
                }
            }
        }
    }

    fn hand_off(&mut self, now_ns: u64, token: Token, parts: NonZeroU8, out: &mut ActionBuffer) {
        let rules = self.policy.offload_rules();
        let slot = self.slots.at_mut(token);
        let parts = parts.min(NonZeroU8::new(slot.job.max_parts).unwrap_or(NonZeroU8::MIN));
        slot.state = State::Worker;
        slot.routed = slot.job.direction == Direction::Encrypt && rules.write_thread;
        slot.device_since_ns = now_ns;
        let write_thread = slot.routed.then(|| slot.transfer(&self.config));
        self.at_workers += 1;
        out.push(Action::Offload {
            token,
            span: slot.span(&self.config),
            parts,
            write_thread,
        });
    }

    fn load(&self, now_ns: u64, workers: &PoolLoad) -> Load {
        Load {
            now_ns,
            depth: self.config.depth,
            in_flight: self.in_flight,
            at_device: self.at_device,
            at_workers: self.at_workers,
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
