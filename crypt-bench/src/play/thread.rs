//! One thread at work: submits what is due, waits, accounts.

#![forbid(unsafe_code)]

mod end;
mod reap;
mod trace;
mod verify;
mod wait;

use std::sync::atomic::Ordering;
use std::time::Duration;

use crypt_core::clock::Clock;
use crypt_core::pipeline::Timing;
use crypt_core::request::{Flags, Op, Request};
use crypt_core::units::{ByteLength, SECTOR_BYTES, SectorIndex};
use crypt_core::{Completion, Queue, QueueOptions, Ticket};

use super::figures::{Figures, Slot};
use super::gate::Gate;
use super::pace::{Due, Pace};
use super::readback::{Verifier, When};
use super::turns::Turns;
use super::watch::Desk;
use super::{Played, Player, Shared};
use crate::generate::{Each, Step, Stream};
use crate::host::ThreadUse;
use crate::issuer;
use crate::log::Log;
use crate::record::Window;
use trace::Tape;
use wait::Wait;

/// How often a thread that waits looks whether it should stop.
const LOOK_NS: u64 = 50_000_000;
/// A wait that only a completion ends: for a limit the kernel would arm and disarm a timer for each request.
const ANY_NS: u64 = u64::MAX;
/// Waits below this are spent looking at the clock: sleeping takes longer.
const SPIN_NS: u64 = 100_000;
/// How often a thread that waits for others looks whether they have ended.
const WAIT: Duration = Duration::from_millis(1);
/// Length of a window without a limit: 100 days.
const NO_LIMIT: Duration = Duration::from_secs(100 * 86_400);

/// Runs a thread to its end. Where somebody watches it, there is a desk to hand over at.
pub(super) fn run(
    mut player: Player,
    index: usize,
    shared: &Shared<'_>,
    desk: Option<&Desk>,
) -> Result<Played, String> {
    let _closing = desk.map(Desk::closing);
    let _ending = shared.progress[index].ending();
    let pinned = issuer::pin(&player.cpus);
    let options = QueueOptions {
        depth: player.depth,
        max_request_bytes: player.max_request_bytes,
        polled: player.polled,
    };
    let mut opened = issuer::open(&player.volume, &options, player.data_seed);
    if let (Ok((queue, idle)), Some(filler)) = (&mut opened, &mut player.filler) {
        for ticket in idle {
            filler.fill(queue.data_mut(ticket), 0);
        }
        player
            .filler
            .take_if(|filler| filler.each() == Each::Nothing);
    }
    // Made before anybody starts: its room is touched.
    let mut log = player.log.map(Log::new);
    let tape = player.trace.as_ref().map(Tape::open).transpose();
    if opened.is_err() || tape.is_err() {
        shared.abandoned.store(true, Ordering::Relaxed);
    }
    shared.ready.wait();
    shared.go.wait();
    let start_ns = started_ns(&player, shared) + nanos(player.delay);
    let mut worker = Worker::new(player, opened?, start_ns, shared.clock);
    worker.tape = tape?;
    if let Some(log) = &mut log {
        log.begin(worker.window.start_ns);
    }
    worker.log = log;
    if let Some(desk) = desk {
        desk.open(worker.empty(pinned));
    }
    worker.wait_until(start_ns, shared);
    let before = ThreadUse::now();
    worker.run(index, shared, desk)?;
    Ok(worker.into_played(pinned, ThreadUse::now().since(&before)))
}

/// When its delay begins: with all others, or once the threads that it waits for have ended.
fn started_ns(player: &Player, shared: &Shared<'_>) -> u64 {
    let awaited = &player.conduct.after;
    if awaited.is_empty() {
        return shared.start_ns.load(Ordering::Acquire);
    }
    let ended = |&index: &usize| shared.progress[index].ended.load(Ordering::Acquire);
    while !awaited.iter().all(ended) && !shared.stopped() {
        std::thread::sleep(WAIT);
    }
    shared.clock.now_ns()
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

struct Worker {
    player: Player,
    queue: Queue,
    idle: Vec<Ticket>,
    done: Vec<Completion>,
    /// What is known of the request in each slot.
    slots: Vec<Slot>,
    clock: Clock,
    window: Window,
    pace: Pace,
    gate: Gate,
    /// Latencies are looked at one by one.
    judges: bool,
    /// Reads, writes and their bytes, where somebody looks at them.
    tally: Option<(u64, u64)>,
    /// A trace instead of the stream.
    tape: Option<Tape>,
    /// Why it can't be read on.
    broken: Option<String>,
    /// Drawn and not yet due.
    pending: Option<Step>,
    in_flight: u32,
    ramping: bool,
    ended: bool,
    last_ns: u64,
    /// The latest time that was seen; threads without a pace need no finer clock than completions.
    seen_ns: u64,
    paced: bool,
    turns: Turns,
    /// Requests are whole system calls.
    synchronous: bool,
    /// Writes take along what is made for each of them.
    dresses: bool,
    /// Reads are compared as they come.
    compares: bool,
    verifier: Option<Box<Verifier>>,
    /// The stream as it began, to read back what was written.
    origin: Option<Stream>,
    /// Requests that were submitted.
    submitted: u64,
    played: Figures,
    log: Option<Log>,
}

impl Worker {
    fn new(
        player: Player,
        (queue, idle): (Queue, Vec<Ticket>),
        start_ns: u64,
        clock: Clock,
    ) -> Self {
        let runtime = player.runtime.unwrap_or(NO_LIMIT);
        let engine = queue.facts().engine;
        let synchronous = engine == "sync";
        let turns = Turns::new(player.batch, player.reap, engine, idle.len());
        let timed = player
            .trace
            .as_ref()
            .is_some_and(|trace| trace.speed_percent.is_some());
        let intended = player.rates.are_limited() || timed;
        let paced = intended || player.rates.think_ns > 0;
        let window = Window::new(start_ns + nanos(player.ramp), nanos(runtime));
        let when = player
            .verification
            .as_ref()
            .map(|verification| verification.when);
        let slots = idle
            .iter()
            .map(Ticket::index)
            .max()
            .map_or(0, |last| last + 1);
        Self {
            done: Vec::with_capacity(idle.len()),
            slots: vec![Slot::default(); slots],
            played: Figures::new(&window, intended, timed),
            log: None,
            ramping: !player.ramp.is_zero(),
            pace: Pace::start(player.rates.clone(), start_ns),
            dresses: player.filler.is_some() || when.is_some_and(|when| when != When::Reading),
            compares: when == Some(When::Reading),
            origin: matches!(when, Some(When::After | When::Only)).then(|| player.stream.clone()),
            verifier: player
                .verification
                .clone()
                .map(|verification| Box::new(Verifier::new(verification))),
            submitted: 0,
            gate: Gate::new(player.depth, player.conduct.batches, player.conduct.target),
            judges: player.conduct.judges(),
            tally: player.conduct.steady.map(|_| (0, 0)),
            player,
            queue,
            idle,
            clock,
            window,
            tape: None,
            broken: None,
            pending: None,
            in_flight: 0,
            ended: false,
            last_ns: window.start_ns,
            seen_ns: start_ns,
            paced,
            turns,
            synchronous,
        }
    }

    fn run(
        &mut self,
        index: usize,
        shared: &Shared<'_>,
        desk: Option<&Desk>,
    ) -> Result<(), String> {
        let progress = &shared.progress[index];
        self.pace.restart(self.clock.now_ns());
        let mut asked = 0;
        self.ended = self.only_verifies();
        loop {
            self.ended |= shared.stopped() || progress.stop.load(Ordering::Relaxed);
            if let Some((ios, bytes)) = self.tally {
                progress.ios.store(ios, Ordering::Relaxed);
                progress.bytes.store(bytes, Ordering::Relaxed);
            }
            if self.judges {
                self.look_at_gate();
            }
            if let Some(desk) = desk.filter(|desk| desk.asked() != asked) {
                asked = desk.asked();
                self.hand_over(desk);
            }
            let wait = self.submit_due();
            if self.in_flight > 0 {
                self.complete(wait.for_completions_ns())?;
                continue;
            }
            match wait {
                Wait::End => break,
                Wait::For(wait_ns) => self.pause(wait_ns),
                Wait::Think(wait_ns) => {
                    self.wait_until(self.clock.now_ns() + wait_ns, shared);
                    self.pace.thought();
                }
            }
        }
        if let Some(message) = self.broken.take() {
            return Err(message);
        }
        let goes_on = !self.played.failed && !shared.stopped();
        if self.player.end_flush && goes_on {
            self.flush()?;
        }
        if goes_on {
            self.read_back(shared)
        } else {
            Ok(())
        }
    }

    /// Submits what is due now, as far as slots are free.
    fn submit_due(&mut self) -> Wait {
        if !self.gate.opens(self.in_flight) {
            return Wait::For(ANY_NS);
        }
        while self.in_flight < self.gate.limit()
            && let Some(ticket) = self.idle.pop()
        {
            let now_ns = match self.paced {
                true => self.clock.now_ns(),
                false => self.seen_ns,
            };
            let step = match self.next_step(now_ns) {
                Some(step) => step,
                None => {
                    self.idle.push(ticket);
                    return Wait::End;
                }
            };
            let due = match self.paced {
                true => self.pace.due(&step, now_ns),
                false => Due::At(now_ns),
            };
            match due {
                Due::At(due_ns) if due_ns <= now_ns => {
                    self.submit(ticket, &step, due_ns);
                    if self.gate.is_eager() {
                        return Wait::For(0);
                    }
                }
                due => {
                    self.pending = Some(step);
                    self.idle.push(ticket);
                    return match due {
                        Due::At(due_ns) => Wait::For(due_ns - now_ns),
                        Due::Think(think_ns) => Wait::Think(think_ns),
                    };
                }
            }
        }
        self.gate.filled();
        Wait::For(ANY_NS)
    }

    #[inline(always)]
    fn next_step(&mut self, now_ns: u64) -> Option<Step> {
        if self.ramping && now_ns >= self.window.start_ns {
            self.ramping = false;
            self.player.stream.restart_count();
        }
        self.ended |= now_ns >= self.window.end_ns;
        if self.ended {
            return None;
        }
        if self.paced
            && let Some(step) = self.pending.take()
        {
            return Some(step);
        }
        if self.tape.is_some() {
            return self.next_of_trace();
        }
        match self.player.stream.next_step() {
            // In a warm-up the stream starts again; only time ends that.
            None if self.ramping => {
                self.player.stream.restart_count();
                self.player.stream.next_step()
            }
            step => step,
        }
    }

    #[inline(always)]
    fn submit(&mut self, ticket: Ticket, step: &Step, due_ns: u64) {
        let request = match step.op {
            Op::Flush => Request::flush(),
            op => Request::new(
                op,
                SectorIndex::new(step.offset_bytes / SECTOR_BYTES),
                ByteLength::new(step.len_bytes),
            ),
        };
        let flags = self.flags(step.op);
        if let Some(slot) = self.slots.get_mut(ticket.index()) {
            *slot = Slot {
                due_ns,
                counted: !self.ramping,
            };
        }
        if self.dresses && step.op == Op::Write {
            self.dress(&ticket, step);
        }
        self.submitted += 1;
        if self.paced {
            self.pace.submitted(step);
        }
        self.in_flight += 1;
        self.queue.submit(ticket, request.with_flags(flags));
        if self.turns.submitted() {
            self.queue.poll(&mut self.done);
        }
    }

    fn flags(&self, op: Op) -> Flags {
        let mut flags = self.player.conduct.flags(op);
        flags.set(Flags::HIPRI, self.player.polled && op != Op::Flush);
        flags
    }

    /// Where the time of a request went, as fio has it.
    #[inline]
    fn correct(&self, timing: &mut Timing) {
        if self.synchronous {
            // The call itself is the transfer: there is no submission apart from it.
            timing.issued_ns = timing.submitted_ns;
        }
    }
}
