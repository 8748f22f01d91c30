//! Plays streams that end: the threads of a job file, each with its own delay, warm-up, limit of time
//! and pace.
//!
//! All threads start from one instant. A thread counts requests submitted between the end of its
//! warm-up and the end of its time, whenever they complete; it submits nothing after its end, waits for
//! what is in flight and leaves. A request that fails ends its thread, unless it is told to bear that.
//! Nothing is allocated between start and end, but for the new recorders of a latency target's last window.

#![forbid(unsafe_code)]

mod conduct;
mod figures;
mod gate;
mod pace;
mod readback;
mod steady;
mod thread;
mod turns;
mod watch;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crypt_core::Volume;
use crypt_core::clock::Clock;
use crypt_core::device::QueueFacts;
use crypt_core::error::Errno;
use crypt_core::request::Request;

use crate::generate::{Filler, Stream};
use crate::host::ThreadUse;
use crate::judge::StorageEvidence;
use crate::log::{Log, LogRule};
use crate::record::{DirectionRecorder, Times, Window};
use crate::trace::Changes;

pub use conduct::{Conduct, Tolerance};
pub use gate::{Batches, Target};
pub use pace::Rates;
pub use readback::{Verification, Verified, When};
pub use steady::{Figure, Steadiness, SteadyRule};
pub use watch::Watch;

use steady::Progress;
use watch::Desk;

/// A trace that a thread plays.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its file.
    pub path: String,
    /// How it is changed.
    pub changes: Changes,
    /// Percent of its speed; `None` for as fast as possible, in order.
    pub speed_percent: Option<u64>,
    /// Where its files begin on the device, by their numbers; 0 for those that are not in it.
    pub starts_bytes: Vec<u64>,
}

/// One thread of a job.
#[derive(Clone, Debug)]
pub struct Player {
    /// Where to.
    pub volume: Volume,
    /// What is known about where its data lives.
    pub storage: StorageEvidence,
    /// Which requests.
    pub stream: Stream,
    /// A trace to play instead of that; read line by line, by its thread.
    pub trace: Option<Trace>,
    /// How fast.
    pub rates: Rates,
    /// Longest request in bytes.
    pub max_request_bytes: u32,
    /// Requests in flight.
    pub depth: u32,
    /// Requests that io_uring gets at once, at least 1.
    pub batch: u32,
    /// Completions that are taken from io_uring before new requests are made, at least 1. The others wait
    /// meanwhile, which is part of their latency.
    pub reap: u32,
    /// Poll for completions.
    pub polled: bool,
    /// CPUs to run on; any where empty.
    pub cpus: Vec<u32>,
    /// Seed of the random data that is written, made once; `None` for threads that only read and those
    /// with a `filler`.
    pub data_seed: Option<u64>,
    /// What is written instead of that.
    pub filler: Option<Filler>,
    /// What is written and read is compared.
    pub verification: Option<Verification>,
    /// Its requests are written down.
    pub log: Option<LogRule>,
    /// When it waits, what it bears, when it has enough.
    pub conduct: Conduct,
    /// A flush at the end, which counts as the others do.
    pub end_flush: bool,
    /// Time until it starts.
    pub delay: Duration,
    /// Warm-up.
    pub ramp: Duration,
    /// Longest time after the warm-up; `None` for no limit.
    pub runtime: Option<Duration>,
}

/// What one thread saw.
#[derive(Debug)]
pub struct Played {
    /// From the end of its warm-up to its last completion.
    pub window: Window,
    /// Reads.
    pub read: DirectionRecorder,
    /// Writes.
    pub write: DirectionRecorder,
    /// Flushes.
    pub flush: DirectionRecorder,
    /// Reads and writes of a paced thread again, as seen from their intended start.
    pub intended: Option<[DirectionRecorder; 2]>,
    /// How long after their intended start the reads and writes of a trace were submitted.
    pub lateness: Option<Times>,
    /// Requests that failed, in the warm-up too.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<(Request, Errno)>,
    /// What came out of comparing blocks.
    pub verified: Option<Verified>,
    /// Reads and writes that were recorded, over time, once it has ended.
    pub log: Option<Log>,
    /// A failure ended it.
    pub failed: bool,
    /// The depth at its end: that of the search where there was a latency target.
    pub depth: u32,
    /// How the search for a steady state of its group ended; at the first thread of the group.
    pub steadiness: Option<Steadiness>,
    /// What is known about where the data lives.
    pub storage: StorageEvidence,
    /// How the device queue worked.
    pub facts: QueueFacts,
    /// Whether it ran on the CPUs it was to run on.
    pub pinned: bool,
    /// Processor time of the thread, once it has ended.
    pub usage: Option<ThreadUse>,
}

/// Plays all threads to their end, or until `stop` becomes true.
///
/// # Errors
/// Where a thread can't open its queue, or its queue breaks; in words.
pub fn play(players: Vec<Player>, stop: &AtomicBool) -> Result<Vec<Played>, String> {
    play_watched(players, stop, None)
}

/// Plays all threads to their end, or until `stop` becomes true, while somebody looks at them.
///
/// # Errors
/// As [`play`].
pub fn play_watched(
    players: Vec<Player>,
    stop: &AtomicBool,
    watch: Option<&mut Watch<'_>>,
) -> Result<Vec<Played>, String> {
    let desks: Vec<Desk> = players.iter().map(|_| Desk::default()).collect();
    let rules: Vec<_> = players.iter().map(|player| player.conduct.steady).collect();
    let shared = Shared {
        ready: Barrier::new(players.len() + 1),
        go: Barrier::new(players.len() + 1),
        start_ns: AtomicU64::new(0),
        abandoned: AtomicBool::new(false),
        progress: players.iter().map(|_| Progress::default()).collect(),
        stop,
        clock: Clock::monotonic(),
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = players
            .into_iter()
            .zip(&desks)
            .enumerate()
            .map(|(index, (player, desk))| {
                let desk = watch.is_some().then_some(desk);
                let shared = &shared;
                scope.spawn(move || thread::run(player, index, shared, desk))
            })
            .collect();
        shared.ready.wait();
        shared
            .start_ns
            .store(shared.clock.now_ns(), Ordering::Release);
        shared.go.wait();
        let progress = &shared.progress;
        let steady = rules.iter().any(Option::is_some);
        let judge = steady.then(|| scope.spawn(|| steady::watch(progress, &rules)));
        let seen = watch.map(|watch| watch::watch(&desks, watch));
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        let played: Result<Vec<Played>, String> = joined
            .map(|played| played.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        let outcomes = judge.map(std::thread::ScopedJoinHandle::join);
        let mut played = match seen {
            Some(seen) => joined_with(seen, played?),
            None => played?,
        };
        let outcomes = outcomes.into_iter().flatten().flatten();
        for (played, steadiness) in played.iter_mut().zip(outcomes) {
            played.steadiness = steadiness;
        }
        Ok(played)
    })
}

/// What threads handed over, and then what they had left at their end.
fn joined_with(seen: Vec<Option<Played>>, rest: Vec<Played>) -> Vec<Played> {
    let pairs = seen.into_iter().zip(rest);
    pairs
        .map(|(seen, rest)| match seen {
            Some(mut seen) => {
                seen.absorb(&rest);
                seen.log = rest.log;
                seen
            }
            None => rest,
        })
        .collect()
}

/// What the threads have in common.
struct Shared<'a> {
    ready: Barrier,
    go: Barrier,
    start_ns: AtomicU64,
    /// A thread could not start, so none does.
    abandoned: AtomicBool,
    /// What each thread lets others see.
    progress: Vec<Progress>,
    stop: &'a AtomicBool,
    clock: Clock,
}

impl Shared<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.abandoned.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod stall_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Lengths, Script};
    use crate::result::Rw;
    use crypt_core::device::faulty::{FaultPlan, FaultyDevice};
    use crypt_core::device::null::NullDevice;
    use std::sync::Arc;

    pub(super) fn script(rw: Rw) -> Script {
        Script {
            lengths: [Lengths::Fixed(4096), Lengths::Fixed(8192)],
            ..crate::testing::script(rw)
        }
    }

    pub(super) fn player(script: Script) -> Player {
        Player {
            volume: Volume::builder(Arc::new(NullDevice::new(1 << 20)))
                .build()
                .unwrap(),
            storage: StorageEvidence::default(),
            stream: Stream::new(script, 1),
            trace: None,
            rates: Rates::default(),
            max_request_bytes: 8192,
            depth: 4,
            batch: 1,
            reap: 1,
            polled: false,
            cpus: Vec::new(),
            data_seed: Some(1),
            filler: None,
            verification: None,
            log: None,
            conduct: Conduct::default(),
            end_flush: false,
            delay: Duration::ZERO,
            ramp: Duration::ZERO,
            runtime: None,
        }
    }

    fn played(players: Vec<Player>) -> Vec<Played> {
        play(players, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn a_stream_is_played_to_its_end_exactly() {
        let reader = player(script(Rw::RandRead));
        let mut writer = player(Script {
            flush_every: 16,
            ..script(Rw::Write)
        });
        writer.end_flush = true;
        let outcome = played(vec![reader, writer]);
        assert_eq!(
            (outcome[0].read.ios(), outcome[0].read.bytes()),
            (256, 1 << 20)
        );
        assert_eq!(
            (outcome[1].write.ios(), outcome[1].write.bytes()),
            (128, 1 << 20)
        );
        assert_eq!((outcome[0].flush.ios(), outcome[1].flush.ios()), (0, 8 + 1));
        for one in &outcome {
            assert_eq!(one.errors, 0);
            assert!(one.window.length_ns() > 0 && one.intended.is_none());
        }
    }

    #[test]
    fn time_ends_an_endless_stream_and_a_warm_up_does_not_count() {
        let endless = Script {
            total_bytes: None,
            ..script(Rw::RandRead)
        };
        let mut timed = player(endless);
        timed.runtime = Some(Duration::from_millis(30));
        let mut ramped = player(script(Rw::RandRead));
        ramped.ramp = Duration::from_millis(20);
        let outcome = played(vec![timed, ramped]);
        assert!(outcome[0].window.length_ns() <= 30_000_000);
        assert_eq!(outcome[1].read.bytes(), 1 << 20);
    }

    #[test]
    fn a_paced_thread_is_never_ahead_of_its_pace() {
        let mut slow = player(Script {
            total_ios: Some(20),
            ..script(Rw::RandRead)
        });
        slow.rates.ios_per_s = [Some(1000), None];
        let outcome = played(vec![slow]).remove(0);
        // The 20th request is due 19 ms after the first.
        assert!(
            outcome.window.length_ns() >= 19_000_000,
            "{}",
            outcome.window.length_ns()
        );
        let [intended, _] = outcome.intended.unwrap();
        assert_eq!((outcome.read.ios(), intended.ios()), (20, 20));
    }

    #[test]
    fn thinking_takes_its_time() {
        let mut thinker = player(Script {
            total_ios: Some(9),
            ..script(Rw::RandRead)
        });
        thinker.rates.think_ns = 2_000_000;
        thinker.rates.think_every = 2;
        let outcome = played(vec![thinker]).remove(0);
        assert!(
            outcome.window.length_ns() >= 8_000_000,
            "{}",
            outcome.window.length_ns()
        );
        assert_eq!(outcome.read.ios(), 9);
    }

    #[test]
    fn a_failure_ends_its_thread_and_only_that() {
        let mut failing = player(script(Rw::Write));
        let device = NullDevice::new(1 << 20).read_only();
        failing.volume = Volume::builder(Arc::new(device)).build().unwrap();
        let outcome = played(vec![failing, player(script(Rw::RandRead))]);
        assert!(outcome[0].errors > 0 && outcome[0].first_error.is_some());
        assert_eq!(outcome[1].read.bytes(), 1 << 20);
    }

    #[test]
    fn failures_that_are_borne_are_counted_and_that_is_all() {
        let plan = FaultPlan {
            bad_sectors: vec![0..8, 8..24],
            ..FaultPlan::default()
        };
        let mut hardy = player(script(Rw::RandRead));
        let device = FaultyDevice::new(Arc::new(NullDevice::new(1 << 20)), plan);
        hardy.volume = Volume::builder(Arc::new(device)).build().unwrap();
        let mut strict = hardy.clone();
        hardy.conduct.tolerance.reads = true;
        strict.conduct.tolerance.writes = true;
        let outcome = played(vec![hardy]).remove(0);
        assert!(outcome.errors == 3 && !outcome.failed);
        assert_eq!(outcome.first_error.unwrap().1, Errno::EIO);
        assert_eq!(outcome.read.ios(), 253);
        let outcome = played(vec![strict]).remove(0);
        assert!(outcome.failed && outcome.read.ios() < 253);
    }

    #[test]
    fn a_thread_may_wait_for_another() {
        let mut slow = player(Script {
            total_ios: Some(20),
            ..script(Rw::RandRead)
        });
        slow.rates.ios_per_s = [Some(1000), None];
        let mut later = player(script(Rw::RandRead));
        later.conduct.after = vec![0];
        let outcome = played(vec![slow, later]);
        assert!(outcome[1].window.start_ns >= outcome[0].window.start_ns + 19_000_000);
        assert_eq!(outcome[1].read.ios(), 256);
    }

    #[test]
    fn stopping_and_failing_to_start_end_all() {
        let endless = Script {
            total_bytes: None,
            ..script(Rw::RandRead)
        };
        let stopped = play(vec![player(endless.clone())], &AtomicBool::new(true)).unwrap();
        assert_eq!(stopped[0].read.ios(), 0);
        let mut bad = player(endless.clone());
        bad.depth = 0;
        let message = play(vec![player(endless), bad], &AtomicBool::new(false)).unwrap_err();
        assert!(message.contains("depth 0"), "{message}");
    }
}
