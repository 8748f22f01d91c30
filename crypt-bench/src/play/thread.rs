//! One thread at work: submits what is due, waits, accounts.

#![forbid(unsafe_code)]

mod end;
mod verify;

use std::sync::atomic::Ordering;
use std::time::Duration;

use crypt_core::clock::Clock;
use crypt_core::error::Errno;
use crypt_core::pipeline::Timing;
use crypt_core::request::{Flags, Op, Request};
use crypt_core::units::{ByteLength, SECTOR_BYTES, SectorIndex};
use crypt_core::{Completion, Queue, QueueOptions, Ticket};

use super::figures::{Figures, Slot};
use super::pace::{Due, Pace};
use super::readback::{Verifier, When};
use super::turns::Turns;
use super::watch::Desk;
use super::{Played, Player, Shared};
use crate::generate::{Each, Step, Stream};
use crate::host::ThreadUse;
use crate::issuer;
use crate::record::Window;

/// How often a thread that waits looks whether it should stop.
const LOOK_NS: u64 = 50_000_000;
/// Waits below this are spent looking at the clock: sleeping takes longer.
const SPIN_NS: u64 = 100_000;
/// Length of a window without a limit: 100 days.
const NO_LIMIT: Duration = Duration::from_secs(100 * 86_400);

/// Runs a thread to its end. Where somebody watches it, there is a desk to hand over at.
pub(super) fn run(
    mut player: Player,
    shared: &Shared<'_>,
    desk: Option<&Desk>,
) -> Result<Played, String> {
    let _closing = desk.map(Desk::closing);
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
    if opened.is_err() {
        shared.abandoned.store(true, Ordering::Relaxed);
    }
    shared.ready.wait();
    shared.go.wait();
    let start_ns = shared.start_ns.load(Ordering::Acquire) + nanos(player.delay);
    let mut worker = Worker::new(player, opened?, start_ns, shared.clock);
    if let Some(desk) = desk {
        desk.open(worker.empty(pinned));
    }
    worker.wait_until(start_ns, shared);
    let before = ThreadUse::now();
    worker.run(shared, desk)?;
    Ok(worker.into_played(pinned, ThreadUse::now().since(&before)))
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
}

/// What stands in the way of the next request.
enum Wait {
    /// A completion, or this much time.
    For(u64),
    /// Everything in flight, and then this much time.
    Think(u64),
    /// The end of what is in flight.
    End,
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
        let paced = player.rates.are_limited() || player.rates.think_ns > 0;
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
            played: Figures::new(&window, player.rates.are_limited()),
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
            player,
            queue,
            idle,
            clock,
            window,
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

    fn run(&mut self, shared: &Shared<'_>, desk: Option<&Desk>) -> Result<(), String> {
        self.pace.restart(self.clock.now_ns());
        let mut asked = 0;
        self.ended = self.only_verifies();
        loop {
            self.ended |= shared.stopped();
            if let Some(desk) = desk.filter(|desk| desk.asked() != asked) {
                asked = desk.asked();
                self.hand_over(desk);
            }
            match self.submit_due() {
                Wait::End if self.in_flight == 0 => break,
                Wait::End => self.complete(LOOK_NS)?,
                Wait::For(wait_ns) if self.in_flight > 0 => self.complete(wait_ns)?,
                Wait::For(wait_ns) => self.pause(wait_ns),
                Wait::Think(_) if self.in_flight > 0 => self.complete(LOOK_NS)?,
                Wait::Think(wait_ns) => {
                    self.wait_until(self.clock.now_ns() + wait_ns, shared);
                    self.pace.thought();
                }
            }
        }
        let goes_on = self.played.errors == 0 && !shared.stopped();
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
        while let Some(ticket) = self.idle.pop() {
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
            match self.pace.due(&step, now_ns) {
                Due::At(due_ns) if due_ns <= now_ns => self.submit(ticket, &step, due_ns),
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
        Wait::For(LOOK_NS)
    }

    fn next_step(&mut self, now_ns: u64) -> Option<Step> {
        if self.ramping && now_ns >= self.window.start_ns {
            self.ramping = false;
            self.player.stream.restart_count();
        }
        self.ended |= now_ns >= self.window.end_ns;
        if self.ended {
            return None;
        }
        match self.pending.take() {
            Some(step) => Some(step),
            None => match self.player.stream.next_step() {
                // In a warm-up the stream starts again; only time ends that.
                None if self.ramping => {
                    self.player.stream.restart_count();
                    self.player.stream.next_step()
                }
                step => step,
            },
        }
    }

    #[inline]
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
        self.pace.submitted(step);
        self.in_flight += 1;
        self.queue.submit(ticket, request.with_flags(flags));
        if self.turns.submitted() {
            self.queue.poll(&mut self.done);
        }
    }

    fn flags(&self, op: Op) -> Flags {
        let hipri = self.player.polled && op != Op::Flush;
        if hipri { Flags::HIPRI } else { Flags::empty() }
    }

    /// Waits for completions and accounts for them.
    fn complete(&mut self, wait_ns: u64) -> Result<(), String> {
        // Waiting with a limit costs looks at the clock, polling does not.
        self.turns.handed_over();
        if self.done.is_empty() && !self.turns.has_ready() && self.queue.poll(&mut self.done) == 0 {
            let wait = Duration::from_nanos(wait_ns.min(LOOK_NS));
            self.queue
                .wait(&mut self.done, Some(wait))
                .map_err(|error| error.to_string())?;
        }
        if !self.turns.are_unlimited() {
            self.take_turns();
            return Ok(());
        }
        if self.done.is_empty() {
            self.seen_ns = self.clock.now_ns();
        }
        let mut done = std::mem::take(&mut self.done);
        for completion in done.drain(..) {
            self.finish(completion);
        }
        self.done = done;
        Ok(())
    }

    /// Accounts for the completions whose turn it is.
    fn take_turns(&mut self) {
        self.seen_ns = self.clock.now_ns();
        self.turns.line_up(&mut self.done);
        let mut turns = std::mem::take(&mut self.turns);
        for completion in turns.take(self.seen_ns) {
            self.finish(completion);
        }
        self.turns = turns;
    }

    fn finish(&mut self, completion: Completion) {
        self.in_flight -= 1;
        self.account(&completion);
        self.idle.push(completion.ticket);
    }

    #[inline]
    fn account(&mut self, completion: &Completion) {
        let bytes = match completion.result {
            Ok(bytes) => bytes,
            Err(errno) => return self.failed(completion.request, errno),
        };
        if self.compares && completion.request.op == Op::Read {
            self.ended |= !self.compare(completion, bytes);
        }
        let mut timing = self.timing_of(completion);
        self.seen_ns = self.seen_ns.max(timing.completed_ns);
        let slot = self.slots.get(completion.ticket.index());
        let Some(slot) = slot.copied().filter(|slot| slot.counted) else {
            return;
        };
        // The end is seen a moment late; what was submitted then belongs to the last slice.
        let last = self.window.slices().saturating_sub(1);
        let slice = self.window.slice_of(timing.submitted_ns).unwrap_or(last);
        self.last_ns = self.last_ns.max(timing.completed_ns);
        let direction = usize::from(completion.request.op == Op::Write);
        match completion.request.op {
            Op::Read => self.played.read.record(&timing, bytes, slice),
            Op::Write => self.played.write.record(&timing, bytes, slice),
            _ => return self.played.flush.record(&timing, bytes, slice),
        }
        if let Some(intended) = &mut self.played.intended {
            timing.submitted_ns = slot.due_ns;
            intended[direction].record(&timing, bytes, slice);
        }
    }

    fn failed(&mut self, request: Request, errno: Errno) {
        self.ended = true;
        self.played.errors += 1;
        self.played.first_error.get_or_insert((request, errno));
    }

    /// Where the time of a request went.
    #[inline]
    fn timing_of(&self, completion: &Completion) -> Timing {
        let mut timing = completion.timing;
        if self.synchronous {
            // The call itself is the transfer: as in fio, there is no submission apart from it.
            timing.issued_ns = timing.submitted_ns;
        }
        timing
    }

    /// Passes time with nothing in flight.
    fn pause(&self, wait_ns: u64) {
        if wait_ns > SPIN_NS {
            std::thread::sleep(Duration::from_nanos((wait_ns - SPIN_NS).min(LOOK_NS)));
        } else {
            std::hint::spin_loop();
        }
    }

    fn wait_until(&self, time_ns: u64, shared: &Shared<'_>) {
        loop {
            let now_ns = self.clock.now_ns();
            if now_ns >= time_ns || shared.stopped() {
                return;
            }
            self.pause(time_ns - now_ns);
        }
    }
}
