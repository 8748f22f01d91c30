//! What handing work to another thread costs on this machine, by doing it.

#![forbid(unsafe_code)]

use std::num::{NonZeroU8, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::SectorCipher;
use crypt_core::clock::Clock;
use crypt_core::exec::{
    Done, Lane, Route, Source, Work, WorkerConfig, WorkerPool, Writes, calibrate, run_span,
};
use crypt_core::policy::Direction;
use crypt_core::units::SectorIndex;

use super::in_words;

/// Wake-ups whose quantiles are kept, and how many of these.
const WAKE_UPS: usize = 201;
const QUANTILES: usize = 10;
/// Works whose cipher time is compared, and their length: a slot that leaves one CPU's cache for another's.
const FETCHES: usize = 101;
const FETCH_BYTES: usize = 256 << 10;
const SMALL_BYTES: u32 = 4096;
/// How long sleepers are left alone, and how much longer a wake-up takes from a deeper sleep.
const RESTS_NS: [u64; 7] = [5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000];
const DEEPER: f64 = 2.5;

/// What hand-offs cost; see [`HandOff`](crate::simulate::machine::HandOff).
pub(super) struct HandOffCosts {
    pub(super) self_ns: f64,
    pub(super) wake_self_ns: f64,
    pub(super) wake_asleep_self_ns: f64,
    pub(super) awake_ns: f64,
    pub(super) asleep_ns: Vec<f64>,
    pub(super) doze_ns: f64,
    pub(super) dozing_ns: f64,
    pub(super) spin_ns: f64,
    pub(super) fetch_ns_per_byte: f64,
}

/// Measures hand-offs to one worker.
///
/// # Errors
/// Where threads or memory can't be had, in words.
pub(super) fn measure(cipher: &Arc<dyn SectorCipher>) -> Result<HandOffCosts, String> {
    let config = WorkerConfig {
        // With this thread no more than there are CPUs, where there are two.
        threads: NonZeroUsize::new(1),
        ..WorkerConfig::default()
    };
    let pool = WorkerPool::start(&config).map_err(in_words)?;
    let costs = calibrate(&pool, cipher);
    let mut hands = Hands::new(&pool, cipher)?;
    let awake_ns = hands.awake()?;
    let rest = Duration::from_nanos(2 * u64::from(config.spin_ns));
    let (asleep_ns, wake_asleep_self_ns) = hands.wake_ups(rest)?;
    let (doze_ns, dozing_ns) = doze(cipher)?;
    let fetch_ns_per_byte = hands.fetch(cipher)?;
    let known = |ns: f32, what: &str| match ns.is_finite() {
        true => Ok(f64::from(ns)),
        false => Err(format!(
            "{what} could not be measured: this machine is too busy"
        )),
    };
    Ok(HandOffCosts {
        self_ns: known(costs.handoff_self_ns, "a hand-off")?,
        wake_self_ns: known(costs.wake_self_ns, "a wake-up")?,
        wake_asleep_self_ns,
        awake_ns,
        asleep_ns,
        doze_ns,
        dozing_ns,
        spin_ns: config.spin_ns.into(),
        fetch_ns_per_byte,
    })
}

/// How long an idle CPU stays quick to wake, and what a wake-up takes until then: workers that never spin,
/// left alone for longer and longer.
fn doze(cipher: &Arc<dyn SectorCipher>) -> Result<(f64, f64), String> {
    let config = WorkerConfig {
        threads: NonZeroUsize::new(1),
        spin_ns: 0,
        ..WorkerConfig::default()
    };
    let pool = WorkerPool::start(&config).map_err(in_words)?;
    let mut hands = Hands::new(&pool, cipher)?;
    let dozing_ns = hands.woken_after(RESTS_NS[0])?;
    let mut doze_ns = RESTS_NS[0];
    for rest_ns in RESTS_NS {
        if hands.woken_after(rest_ns)? > DEEPER * dozing_ns {
            break;
        }
        doze_ns = rest_ns;
    }
    Ok((doze_ns as f64, dozing_ns))
}

struct Hands {
    lane: Lane,
    buffer: Option<SlotBuffer>,
    done: Vec<Done>,
    /// How long each hand-off took this thread.
    self_ns: Vec<u64>,
}

impl Hands {
    fn new(pool: &Arc<WorkerPool>, cipher: &Arc<dyn SectorCipher>) -> Result<Self, String> {
        let mut slots = SlotBuffer::allocate(1, FETCH_BYTES).map_err(in_words)?;
        Ok(Self {
            lane: Lane::open(pool, Arc::clone(cipher), 1, Writes::Return).map_err(in_words)?,
            buffer: slots.pop(),
            done: Vec::with_capacity(1),
            self_ns: Vec::with_capacity(WAKE_UPS),
        })
    }

    /// How long a worker takes to begin that is awake on a CPU of its own. Some hand-offs find it asleep, or
    /// behind this thread on the same CPU, which takes far longer: so a low quantile.
    fn awake(&mut self) -> Result<f64, String> {
        let waits_ns = self.waits(|| ())?;
        Ok(waits_ns[WAKE_UPS / QUANTILES] as f64)
    }

    /// Quantiles of the time that a worker takes to begin which sleeps, and has for `rest`; and the median of
    /// what it costs this thread to wake it.
    fn wake_ups(&mut self, rest: Duration) -> Result<(Vec<f64>, f64), String> {
        let waits_ns = self.waits(|| std::thread::sleep(rest))?;
        // The longest twentieth is the host's or another program's doing.
        let last = WAKE_UPS - 1 - WAKE_UPS / 20;
        let quantile = |step| waits_ns[last * step / QUANTILES] as f64;
        self.self_ns.sort_unstable();
        let self_ns = self.self_ns[WAKE_UPS / 2] as f64;
        Ok(((0..=QUANTILES).map(quantile).collect(), self_ns))
    }

    /// The median time until a worker begins that has slept while this thread was busy for `rest_ns`.
    fn woken_after(&mut self, rest_ns: u64) -> Result<f64, String> {
        let clock = Clock::monotonic();
        let waits_ns = self.waits(|| {
            let end_ns = clock.now_ns() + rest_ns;
            while clock.now_ns() < end_ns {
                std::hint::spin_loop();
            }
        })?;
        Ok(waits_ns[WAKE_UPS / 2] as f64)
    }

    /// How long workers took to begin, in rising order, with a `rest` before each hand-off.
    fn waits(&mut self, rest: impl Fn()) -> Result<Vec<u64>, String> {
        self.self_ns.clear();
        let wait = |_| {
            rest();
            Ok(self.hand_off(SMALL_BYTES)?.wait_ns)
        };
        let waits_ns: Result<Vec<u64>, String> = (0..WAKE_UPS).map(wait).collect();
        let mut waits_ns = waits_ns?;
        waits_ns.sort_unstable();
        Ok(waits_ns)
    }

    /// What a byte costs a worker that this thread has written, beyond what it costs this thread.
    fn fetch(&mut self, cipher: &Arc<dyn SectorCipher>) -> Result<f64, String> {
        let clock = Clock::monotonic();
        let (mut here_ns, mut there_ns) = (Vec::new(), Vec::new());
        for _ in 0..FETCHES {
            let mut work = self.work(FETCH_BYTES as u32)?;
            let span = work.span();
            for times in 0..2 {
                let start_ns = clock.now_ns();
                run_span(cipher.as_ref(), &span, &mut work.buffer)
                    .map_err(|errno| errno.to_string())?;
                // The first run fetches the slot back.
                if times == 1 {
                    here_ns.push(clock.now_ns() - start_ns);
                }
            }
            self.buffer = Some(work.buffer);
            there_ns.push(self.hand_off(FETCH_BYTES as u32)?.cipher_ns);
        }
        let median = |values: &mut Vec<u64>| {
            values.sort_unstable();
            values[values.len() / 2] as f64
        };
        let more_ns = median(&mut there_ns) - median(&mut here_ns);
        // In and out: the worker fetches what it reads and what it writes.
        Ok(more_ns.max(0.0) / FETCH_BYTES as f64)
    }

    fn work(&mut self, len_bytes: u32) -> Result<Work, String> {
        let buffer = self.buffer.take().ok_or("the slot was lost")?;
        Ok(Work {
            token: 0,
            direction: Direction::Encrypt,
            first: SectorIndex::new(0),
            len_bytes,
            source: Source::Area(Area::Data),
            target: Area::Bounce,
            buffer,
            parts: NonZeroU8::MIN,
            same_cpu: false,
            wake_each: true,
            route: Route::Return,
        })
    }

    fn hand_off(&mut self, len_bytes: u32) -> Result<Done, String> {
        let work = self.work(len_bytes)?;
        let clock = Clock::monotonic();
        let start_ns = clock.now_ns();
        if self.lane.hand_off(work).is_err() {
            return Err("the workers don't take work".to_owned());
        }
        self.self_ns.push(clock.now_ns() - start_ns);
        let mut done = loop {
            self.lane.collect(&mut self.done);
            match self.done.pop() {
                Some(done) => break done,
                None => std::hint::spin_loop(),
            }
        };
        self.buffer = done.buffer.take();
        Ok(done)
    }
}
