//! A thread that issues requests: the driver of a pipeline in virtual time.
//!
//! It does what `crypt_core::Queue` and the load of `matrix` do together, in the same order: submit,
//! gather what has ended, place, act, account, and when there is nothing to do help the workers, look
//! for news or sleep. Every step that takes time is one turn, so that what others do meanwhile is seen
//! when it happens.

#![forbid(unsafe_code)]

mod depth;
mod gather;
mod idle;

use crypt_core::error::Result;
use crypt_core::pipeline::{
    Action, ActionBuffer, Event, Pipeline, PipelineConfig, Timing, Token, Transfer,
};
use crypt_core::policy::{Costs, Policy};
use crypt_core::request::{Flags, Op, Request};
use crypt_core::units::{ByteLength, SECTOR_BYTES, SectorIndex};

use self::depth::DepthMean;
use super::agenda::Actor;
use super::pool::Part;
use super::scene::{Scene, Turn};
use crate::account::{self, Account};
use crate::generate::Generator;
use crate::record::{DirectionRecorder, Window};

/// What an issuer does.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) generator: Generator,
    pub(super) read_flags: Flags,
    pub(super) write_flags: Flags,
    /// Whether it never sleeps.
    pub(super) polled: bool,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Issuer {
    actor: Actor,
    volume: usize,
    load: Load,
    pipeline: Pipeline,
    actions: ActionBuffer,
    /// Results of device operations that were over with the call.
    events: Vec<Event>,
    /// Slots without a request.
    free: Vec<Token>,
    done: Vec<(Token, Request, Timing)>,
    /// Length of the operation of each slot that is at the device.
    at_device: Vec<u64>,
    /// The CPU that the work of each slot was last done on.
    written_on: Vec<Option<usize>>,
    phase: Phase,
    /// Whether it has had nothing else to do since it last asked for the load.
    rested: bool,
    read: DirectionRecorder,
    write: DirectionRecorder,
    account: Account,
    depth: DepthMean,
}

/// Where a turn begins.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Submit a request for each free slot.
    Submit,
    Submitted(Token),
    /// See what has ended.
    Gather,
    /// Do the action of this number, or end the round.
    Act(usize),
    Encrypted {
        action: usize,
        start_ns: u64,
    },
    Pushed {
        action: usize,
        start_ns: u64,
    },
    Accounted,
    Idle,
    Assisted {
        part: Part,
        start_ns: u64,
    },
    Spun,
    Woken,
}

impl Issuer {
    /// An issuer that begins when it first runs.
    ///
    /// # Errors
    /// As [`Pipeline::new`].
    pub(super) fn new(
        actor: Actor,
        volume: usize,
        load: Load,
        config: PipelineConfig,
        policy: (Box<dyn Policy>, Costs),
        window: &Window,
    ) -> Result<Self> {
        let depth = config.depth as usize;
        let mut pipeline = Pipeline::new(config, policy.0, policy.1)?;
        let free: Vec<Token> = std::iter::from_fn(|| pipeline.claim()).collect();
        Ok(Self {
            actor,
            volume,
            load,
            pipeline,
            actions: ActionBuffer::for_depth(config.depth),
            events: Vec::with_capacity(depth),
            free,
            done: Vec::with_capacity(depth),
            at_device: vec![0; depth],
            written_on: vec![None; depth],
            phase: Phase::Submit,
            rested: true,
            read: DirectionRecorder::new(window),
            write: DirectionRecorder::new(window),
            account: Account::new(window),
            depth: DepthMean::new(window),
        })
    }

    /// Goes on, at a time when it has a CPU.
    pub(super) fn turn(&mut self, scene: &mut Scene<'_>) -> Turn {
        loop {
            if let Some(turn) = self.step(scene) {
                return turn;
            }
        }
    }

    /// One step; `None` where it took no time.
    fn step(&mut self, scene: &mut Scene<'_>) -> Option<Turn> {
        match self.phase {
            Phase::Submit => {
                let Some(token) = self.free.pop() else {
                    self.phase = Phase::Gather;
                    return None;
                };
                self.phase = Phase::Submitted(token);
                Some(Turn::Busy(scene.machine.request.submit_ns))
            }
            Phase::Submitted(token) => {
                self.submit(token, scene);
                self.phase = Phase::Submit;
                None
            }
            Phase::Gather => self.gather(scene),
            Phase::Act(action) => self.act(action, scene),
            Phase::Encrypted { action, start_ns } => {
                let Action::Crypt { token, .. } = self.actions.actions()[action] else {
                    unreachable!("it was one before");
                };
                self.pipeline
                    .record_inline(token, scene.now_ns, scene.now_ns - start_ns);
                self.written_on[token.index()] = Some(scene.cores.cpu(self.actor));
                self.phase = Phase::Act(action + 1);
                None
            }
            Phase::Pushed { action, start_ns } => {
                self.pushed(action, start_ns, scene);
                self.phase = Phase::Act(action + 1);
                None
            }
            Phase::Accounted => {
                self.account(scene);
                self.phase = Phase::Submit;
                None
            }
            Phase::Idle => Some(self.idle(scene)),
            Phase::Assisted { part, start_ns } => {
                let wake_ns = scene.end(self.actor, &part, scene.now_ns - start_ns);
                self.phase = Phase::Gather;
                (wake_ns > 0.0).then_some(Turn::Busy(wake_ns))
            }
            Phase::Spun => {
                self.phase = Phase::Gather;
                if self.has_news(scene) || scene.pool.has_queued() {
                    return None;
                }
                Some(self.sleep(scene))
            }
            Phase::Woken => {
                scene.outsider_runs(self.actor);
                self.phase = Phase::Gather;
                None
            }
        }
    }

    fn submit(&mut self, token: Token, scene: &mut Scene<'_>) {
        let io = self.load.generator.next_io();
        let (op, flags) = if io.write {
            (Op::Write, self.load.write_flags)
        } else {
            (Op::Read, self.load.read_flags)
        };
        let sector = SectorIndex::new(io.offset_bytes / SECTOR_BYTES);
        let len = ByteLength::new(io.len_bytes);
        let now_ns = scene.now_ns;
        if scene.window.slice_of(now_ns).is_some() {
            scene.counted_left += 1;
        }
        // The harness fills a slot once, so what it writes again is in the cache of who used it last.
        self.written_on[token.index()] = Some(scene.cores.cpu(self.actor));
        let event = Event::Submit {
            token,
            request: Request::new(op, sector, len).with_flags(flags),
            submitted_ns: now_ns,
            in_place: false,
        };
        self.pipeline.feed(now_ns, &event, &mut self.actions);
    }

    /// Begins an action; the round is over where there is none of this number.
    fn act(&mut self, number: usize, scene: &mut Scene<'_>) -> Option<Turn> {
        let Some(&action) = self.actions.actions().get(number) else {
            self.pipeline.record_issued(&self.actions, scene.now_ns);
            self.actions.clear();
            self.phase = if self.done.is_empty() {
                Phase::Gather
            } else {
                Phase::Accounted
            };
            let completed = self.done.len() as f64;
            return (completed > 0.0)
                .then_some(Turn::Busy(completed * scene.machine.request.complete_ns));
        };
        self.phase = Phase::Act(number + 1);
        match action {
            Action::Crypt { ref span, .. } => {
                self.phase = Phase::Encrypted {
                    action: number,
                    start_ns: scene.now_ns,
                };
                let encrypts = span.direction == crypt_core::policy::Direction::Encrypt;
                Some(Turn::Busy(scene.cipher_ns(encrypts, span.len_bytes)))
            }
            Action::Device {
                token,
                ref transfer,
            } => {
                self.phase = Phase::Pushed {
                    action: number,
                    start_ns: scene.now_ns,
                };
                let written_on = self.written_on[token.index()];
                let written_on = written_on.filter(|_| transfer.op == Op::Write);
                Some(Turn::Busy(scene.push_ns(
                    self.actor,
                    self.volume,
                    transfer,
                    written_on,
                )))
            }
            Action::Offload {
                token,
                ref span,
                parts,
                route,
            } => {
                let parts = u32::from(parts.get());
                match scene.hand_off(self.actor, token, span, parts, route) {
                    Some(wake_ns) => {
                        let self_ns = scene.machine.hand_off.self_ns;
                        Some(Turn::Busy(self_ns * f64::from(parts) + wake_ns))
                    }
                    None => Some(self.refused(token, span.len_bytes, span.direction, scene)),
                }
            }
            Action::Complete { token, .. } => {
                if let Some((request, timing)) = self.pipeline.finish(token, scene.now_ns) {
                    self.done.push((token, request, timing));
                }
                None
            }
        }
    }

    /// The workers are full: the work is done here.
    fn refused(
        &mut self,
        token: Token,
        len_bytes: u32,
        direction: crypt_core::policy::Direction,
        scene: &Scene<'_>,
    ) -> Turn {
        self.pipeline.record_refused(token);
        let encrypts = direction == crypt_core::policy::Direction::Encrypt;
        let cipher_ns = scene.cipher_ns(encrypts, len_bytes);
        self.events.push(Event::CryptDone {
            token,
            result: Ok(()),
            cipher_ns: cipher_ns as u64,
            wait_ns: 0,
        });
        Turn::Busy(cipher_ns)
    }

    /// The device has an operation now.
    fn pushed(&mut self, number: usize, start_ns: u64, scene: &mut Scene<'_>) {
        let Action::Device { token, transfer } = self.actions.actions()[number] else {
            unreachable!("it was one before");
        };
        self.at_device[token.index()] = transfer.len_bytes;
        if start(scene, self.actor, self.volume, token.to_bits(), &transfer) {
            self.events.push(Event::DeviceDone {
                token,
                result: Ok(transfer.len_bytes),
            });
            if transfer.op == Op::Write && self.pipeline.config().worker_writes {
                self.pipeline.record_write(token, scene.now_ns - start_ns);
            }
        }
    }

    fn account(&mut self, scene: &mut Scene<'_>) {
        let policy = self.pipeline.policy();
        self.account.look(scene.now_ns, || account::of(policy));
        self.depth.look(
            scene.now_ns,
            self.pipeline.in_flight() + self.done.len() as u32,
        );
        for (token, request, timing) in self.done.drain(..) {
            self.free.push(token);
            let Some(slice) = scene.window.slice_of(timing.submitted_ns) else {
                continue;
            };
            scene.counted_left -= 1;
            let recorder = match request.op {
                Op::Read => &mut self.read,
                _ => &mut self.write,
            };
            recorder.record(&timing, request.len.get(), slice);
        }
    }

    /// What it saw.
    pub(super) fn into_outcome(self) -> IssuerOutcome {
        IssuerOutcome {
            read: self.read,
            write: self.write,
            account: self.account,
            depth_mean: self.depth.mean(),
        }
    }
}

/// What an issuer saw of the window.
#[derive(Debug)]
pub(super) struct IssuerOutcome {
    pub(super) read: DirectionRecorder,
    pub(super) write: DirectionRecorder,
    pub(super) account: Account,
    pub(super) depth_mean: f64,
}

/// Starts a device operation of a thread; whether it is over already.
pub(super) fn start(
    scene: &mut Scene<'_>,
    actor: Actor,
    volume: usize,
    token: u64,
    transfer: &Transfer,
) -> bool {
    let Some(end_ns) = scene.devices[volume].start(scene.now_ns, transfer) else {
        return true;
    };
    let event = super::agenda::Event::Device { actor, token };
    scene.agenda.add(end_ns, event);
    false
}
