//! The real driver of the pipeline: one submitter thread's queue on a volume.
//!
//! A queue owns its slots' memory, its device queue and its lane to the workers. Nothing happens
//! behind the caller's back: work is done inside [`Queue::poll`] and [`Queue::wait`], on the thread
//! that calls them, and on the volume's workers if it has any. After [`crate::Volume::queue`] the
//! data path does not allocate.
//!
//! A [`Ticket`] is the right to one slot: claim it, fill [`Queue::data_mut`], submit it, and get it
//! back in the [`Completion`], to read [`Queue::data`] and then submit it again or release it.
//!
//! Dropping a queue cancels what was not yet handed over, and waits for workers and device.

#![forbid(unsafe_code)]

mod act;
mod idle;

use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::buffer::{Area, SlotBuffer};
use crate::cipher::SectorCipher;
use crate::clock::Clock;
use crate::device::{DeviceCompletion, DeviceQueue, QueueFacts};
use crate::error::{Errno, Error, Result};
use crate::exec::{Done, DoneKind, Lane};
use crate::pipeline::{Action, ActionBuffer, Counters, Event, Pipeline, Timing, Token};
use crate::policy::{Costs, Policy};
use crate::request::Request;
use act::Hands;
use idle::Workers;

/// Most rounds of one [`Queue::poll`], so that a long request on a device that completes at once
/// can't keep the caller.
const MAX_ROUNDS: u32 = 64;

/// The right to one slot of the queue that gave it. Dropping it leaves the slot unused until the
/// queue is dropped.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a dropped ticket takes its slot out of use"]
pub struct Ticket(Token);

impl Ticket {
    /// Index of the slot, below the queue's depth: a key for the caller's own table.
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.index()
    }
}

/// The end of one request.
#[derive(Debug)]
pub struct Completion {
    /// The slot, given back; a read's data is in it.
    pub ticket: Ticket,
    /// The request as submitted.
    pub request: Request,
    /// Bytes done (the whole length), or why it failed.
    pub result: Result<u64, Errno>,
    /// Where its time went.
    pub timing: Timing,
}

/// One submitter thread's access to a volume. See the module documentation.
pub struct Queue {
    pipeline: Pipeline,
    actions: ActionBuffer,
    hands: Hands,
    polled: bool,
    reaped: Vec<DeviceCompletion>,
    collected: Vec<Done>,
}

/// What a volume puts together for a new queue.
pub(crate) struct Parts {
    pub(crate) pipeline: Pipeline,
    pub(crate) cipher: Option<Arc<dyn SectorCipher>>,
    pub(crate) lane: Option<Lane>,
    pub(crate) device: Box<dyn DeviceQueue>,
    pub(crate) buffers: Vec<SlotBuffer>,
    pub(crate) polled: bool,
}

impl Queue {
    pub(crate) fn new(parts: Parts) -> Result<Self> {
        let depth = parts.pipeline.config().depth;
        let room = depth as usize;
        let workers = match parts.lane {
            Some(lane) => Workers::Lane(lane),
            None => Workers::None {
                wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                    .map_err(|errno| Error::io("create an eventfd for the queue", errno))?,
            },
        };
        Ok(Self {
            hands: Hands {
                events: Vec::with_capacity(room),
                now_ns: 0,
                fresh: false,
                weighs_writes: parts.pipeline.config().worker_writes,
                at_device: 0,
                cipher: parts.cipher,
                rules: parts.pipeline.policy().offload_rules(),
                clock: Clock::monotonic(),
                workers,
                device: parts.device,
                buffers: parts.buffers.into_iter().map(Some).collect(),
            },
            pipeline: parts.pipeline,
            actions: ActionBuffer::for_depth(depth),
            polled: parts.polled,
            reaped: Vec::with_capacity(room),
            collected: Vec::with_capacity(room),
        })
    }

    /// Takes a free slot; `None` when all are in use.
    #[inline]
    pub fn claim(&mut self) -> Option<Ticket> {
        self.pipeline.claim().map(Ticket)
    }

    /// Gives a slot back without submitting it.
    // By value: a released ticket must not be used again.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "consumes the right to the slot"
    )]
    #[inline]
    pub fn release(&mut self, ticket: Ticket) {
        self.pipeline.release(ticket.0);
    }

    /// The slot's data area, to fill before a write.
    #[must_use]
    pub fn data_mut(&mut self, ticket: &Ticket) -> &mut [u8] {
        match self.hands.buffers.get_mut(ticket.index()) {
            Some(Some(buffer)) => buffer.area_mut(Area::Data),
            _ => &mut [],
        }
    }

    /// The slot's data area, to read after a completed read.
    #[must_use]
    pub fn data(&self, ticket: &Ticket) -> &[u8] {
        match self.hands.buffers.get(ticket.index()) {
            Some(Some(buffer)) => buffer.area(Area::Data),
            _ => &[],
        }
    }

    /// Submits a request; it starts with the next [`Queue::poll`] or [`Queue::wait`], together with
    /// others submitted since. A write leaves the plaintext in the data area unchanged.
    ///
    /// Every failure comes back as a completion.
    #[inline]
    pub fn submit(&mut self, ticket: Ticket, request: Request) {
        self.submit_event(ticket, request, false);
    }

    /// As [`Queue::submit`], but a write may overwrite its plaintext with the ciphertext, which
    /// saves touching a second area.
    #[inline]
    pub fn submit_in_place(&mut self, ticket: Ticket, request: Request) {
        self.submit_event(ticket, request, true);
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "consumes the right to the slot"
    )]
    #[inline]
    fn submit_event(&mut self, ticket: Ticket, request: Request, in_place: bool) {
        let now_ns = self.hands.stamp();
        let event = Event::Submit {
            token: ticket.0,
            request,
            submitted_ns: now_ns,
            in_place,
        };
        self.pipeline.feed(now_ns, &event, &mut self.actions);
    }

    /// Starts what was submitted and appends what has completed to `done`, without waiting.
    ///
    /// `done` grows only where its capacity is below the queue's depth. Returns how many were added.
    pub fn poll(&mut self, done: &mut Vec<Completion>) -> usize {
        let before = done.len();
        // The caller's own code ran since.
        self.hands.fresh = false;
        for round in 0..MAX_ROUNDS {
            let fed = self.feed_events();
            // Requests that end at once may follow each other for ever: what device and workers have is looked for
            // each time, and between rounds only where nothing else is to do.
            if round == 0 || !fed {
                self.gather();
            }
            if !self.round(done) || done.len() > before {
                break;
            }
        }
        done.len() - before
    }

    /// As [`Queue::poll`], but waits for at least one completion, unless nothing is in flight or
    /// `timeout` passes first.
    ///
    /// # Errors
    /// Where the system's wait call fails; the requests stay in flight.
    pub fn wait(&mut self, done: &mut Vec<Completion>, timeout: Option<Duration>) -> Result<usize> {
        let limit_ns = timeout.map(|timeout| timeout.as_nanos() as u64);
        let start_ns = limit_ns.map(|_| self.hands.clock.now_ns());
        loop {
            let completed = self.poll(done);
            if completed > 0 || self.idle() {
                return Ok(completed);
            }
            let left = match (limit_ns, start_ns) {
                (Some(limit_ns), Some(start_ns)) => {
                    let passed_ns = self.hands.clock.now_ns().saturating_sub(start_ns);
                    if passed_ns >= limit_ns {
                        return Ok(0);
                    }
                    Some(Duration::from_nanos(limit_ns - passed_ns))
                }
                _ => None,
            };
            // What has ended already is work for the next round, not to be waited for.
            if self.hands.events.is_empty() {
                self.idle_turn(left)?;
            }
        }
    }

    /// Waits until nothing is in flight, appending every completion to `done`.
    ///
    /// # Errors
    /// As [`Queue::wait`].
    pub fn drain(&mut self, done: &mut Vec<Completion>) -> Result<()> {
        while !self.idle() {
            self.wait(done, None)?;
        }
        Ok(())
    }

    /// Requests submitted and not yet completed.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        let actions = self.actions.actions().iter();
        let refused = actions.filter(|action| matches!(action, Action::Complete { .. }));
        self.pipeline.in_flight() + refused.count() as u32
    }

    /// How the device queue really works.
    #[must_use]
    pub fn facts(&self) -> QueueFacts {
        self.hands.device.facts()
    }

    /// How often which placement was used, retries, and the like.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.pipeline.counters()
    }

    /// Costs as measured so far; those at start where there are no workers to choose.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.pipeline.costs()
    }

    /// The policy that places this queue's cipher work.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        self.pipeline.policy()
    }

    /// Slots: most requests in flight.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.pipeline.config().depth
    }

    /// Most bytes of one read or write.
    #[must_use]
    pub fn max_request_bytes(&self) -> usize {
        self.pipeline.config().slot_bytes as usize
    }

    fn idle(&self) -> bool {
        self.pipeline.in_flight() == 0 && self.actions.actions().is_empty()
    }

    /// One turn of the state machine; false where there was nothing to do.
    #[inline]
    fn round(&mut self, done: &mut Vec<Completion>) -> bool {
        let Self {
            pipeline,
            actions,
            hands,
            ..
        } = self;
        pipeline.place(hands.now_ns, || hands.load(), actions);
        if actions.actions().is_empty() {
            return false;
        }
        hands.resume();
        hands.execute(pipeline, actions, done);
        actions.clear();
        if pipeline.in_flight() == 0 {
            hands.pause();
        }
        true
    }

    /// Tells the state machine what ended in the last round; false where nothing did.
    #[inline]
    fn feed_events(&mut self) -> bool {
        if self.hands.events.is_empty() {
            return false;
        }
        let now_ns = self.hands.now_ns;
        for event in &self.hands.events {
            self.pipeline.feed(now_ns, event, &mut self.actions);
        }
        self.hands.events.clear();
        true
    }

    /// Tells the state machine what the device and the workers have ended.
    #[inline]
    fn gather(&mut self) {
        let hands = &mut self.hands;
        if hands.at_device > 0 {
            hands.device.reap(&mut self.reaped);
        }
        if let Workers::Lane(lane) = &mut hands.workers
            && self.pipeline.outstanding().1 > 0
        {
            lane.collect(&mut self.collected);
        }
        if !self.reaped.is_empty() || !self.collected.is_empty() {
            self.feed_gathered();
        }
    }

    fn feed_gathered(&mut self) {
        let (hands, actions) = (&mut self.hands, &mut self.actions);
        let now_ns = hands.stamp();
        hands.at_device = hands.at_device.saturating_sub(self.reaped.len());
        // Taking the buffers out and then clearing is a third of the cost of draining.
        for completion in &mut self.reaped {
            let token = Token::from_bits(completion.token);
            hands.put_back(token, completion.buffer.take());
            let result = completion.result;
            let event = Event::DeviceDone { token, result };
            self.pipeline.feed(now_ns, &event, actions);
        }
        self.reaped.clear();
        for done in &mut self.collected {
            let token = Token::from_bits(done.token);
            hands.put_back(token, done.buffer.take());
            let (cipher_ns, wait_ns) = (done.cipher_ns, done.wait_ns);
            let event = match done.result {
                DoneKind::Crypt(result) => Event::CryptDone {
                    token,
                    result,
                    cipher_ns,
                    wait_ns,
                },
                DoneKind::Device(result) => Event::Written {
                    token,
                    result,
                    cipher_ns,
                    wait_ns,
                    device_ns: done.device_ns,
                },
            };
            self.pipeline.feed(now_ns, &event, actions);
        }
        self.collected.clear();
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("in_flight", &self.in_flight())
            .field("policy", &self.pipeline.policy().name())
            .finish_non_exhaustive()
    }
}
