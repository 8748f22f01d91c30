//! Runs the jobs of one measurement: one thread and one queue each, in a closed loop.
//!
//! All jobs warm up, measure over the same window of time, and keep the load up until the last
//! request that was submitted inside the window, on any job, has completed. So the requests that
//! count see the asked depth from their first to their last nanosecond, and none is cut off.
//! Nothing is allocated between the start of the ramp and the end.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};
use std::time::Duration;

use crypt_core::clock::Clock;
use crypt_core::device::QueueFacts;
use crypt_core::error::Errno;
use crypt_core::request::{Flags, Op, Request};
use crypt_core::units::{ByteLength, SectorIndex};
use crypt_core::{Completion, Queue, QueueOptions, Ticket, Volume};

use crate::account::{self, Account};
use crate::generate::Generator;
use crate::issuer;
use crate::record::{DirectionRecorder, Window};

/// How often a job that waits looks whether it should stop.
const LOOK: Duration = Duration::from_millis(50);

/// What one job does.
#[derive(Clone, Debug)]
pub struct Job {
    /// Where to.
    pub volume: Volume,
    /// Which requests.
    pub generator: Generator,
    /// Length of the longest request in bytes.
    pub max_request_bytes: u32,
    /// Requests in flight.
    pub depth: u32,
    /// Poll for completions.
    pub polled: bool,
    /// Flags of reads.
    pub read_flags: Flags,
    /// Flags of writes.
    pub write_flags: Flags,
    /// CPU to run on.
    pub cpu: Option<u32>,
    /// Seed of the data that is written: slot n of the job holds the little-endian stream of
    /// `Random::new(data_seed + n)`, until a read replaces it. `None` for jobs that only read.
    pub data_seed: Option<u64>,
}

/// When to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Warm-up.
    pub ramp: Duration,
    /// Measuring time.
    pub runtime: Duration,
    /// Length of the slices of throughput over time; `None` where the runtime decides.
    pub slice: Option<Duration>,
}

/// What one job saw.
#[derive(Debug)]
pub struct JobOutcome {
    /// Completed reads of the window.
    pub read: DirectionRecorder,
    /// Completed writes of the window.
    pub write: DirectionRecorder,
    /// Requests of the window that failed.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<(Request, Errno)>,
    /// Requests in flight whenever the job looked, averaged over the window.
    pub depth_mean: f64,
    /// What the policy decided within the window.
    pub account: Account,
    /// How the device queue worked.
    pub facts: QueueFacts,
    /// Whether the job ran on the CPU it was to run on; true where none was asked for.
    pub pinned: bool,
}

/// What all jobs saw.
#[derive(Debug)]
pub struct Measured {
    /// The time that counted.
    pub window: Window,
    /// One per job.
    pub jobs: Vec<JobOutcome>,
}

/// Shared by the jobs of one measurement.
struct Shared<'a> {
    ready: Barrier,
    start_ns: AtomicU64,
    go: Barrier,
    /// Jobs whose counted requests have all completed.
    finished: AtomicUsize,
    jobs: usize,
    /// A job could not start, so none does.
    abandoned: AtomicBool,
    stop: &'a AtomicBool,
    schedule: Schedule,
    clock: Clock,
}

/// Runs the jobs. `at_edges` is called on this thread at the start and at the end of the window.
///
/// Returns `None` where `stop` became true before the end.
///
/// # Errors
/// Where a job can't open its queue, or its queue breaks; in words.
pub fn measure(
    jobs: Vec<Job>,
    schedule: Schedule,
    stop: &AtomicBool,
    mut at_edges: impl FnMut(),
) -> Result<Option<Measured>, String> {
    let shared = Shared {
        ready: Barrier::new(jobs.len() + 1),
        start_ns: AtomicU64::new(0),
        go: Barrier::new(jobs.len() + 1),
        finished: AtomicUsize::new(0),
        jobs: jobs.len(),
        abandoned: AtomicBool::new(false),
        stop,
        schedule,
        clock: Clock::monotonic(),
    };
    std::thread::scope(|scope| {
        let (send, outcomes) = mpsc::channel();
        for job in jobs {
            let (send, shared) = (send.clone(), &shared);
            // The receiver outlives the threads; a closed channel means nobody listens any more.
            scope.spawn(move || drop(send.send(run_job(job, shared))));
        }
        drop(send);
        shared.ready.wait();
        let start_ns = shared.clock.now_ns();
        shared.start_ns.store(start_ns, Ordering::Release);
        shared.go.wait();
        let window = shared.window();
        shared.sleep_until(window.start_ns);
        at_edges();
        shared.sleep_until(window.end_ns);
        at_edges();
        let jobs: Result<Vec<JobOutcome>, String> = outcomes.iter().collect();
        let jobs = jobs?;
        Ok((!stop.load(Ordering::Relaxed)).then_some(Measured { window, jobs }))
    })
}

impl Shared<'_> {
    fn window(&self) -> Window {
        let start_ns = self.start_ns.load(Ordering::Acquire) + self.schedule.ramp.as_nanos() as u64;
        let runtime_ns = self.schedule.runtime.as_nanos() as u64;
        match self.schedule.slice {
            Some(slice) => Window::sliced(start_ns, runtime_ns, slice.as_nanos() as u64),
            None => Window::new(start_ns, runtime_ns),
        }
    }

    fn ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.abandoned.load(Ordering::Relaxed)
            || self.finished.load(Ordering::Relaxed) == self.jobs
    }

    fn sleep_until(&self, time_ns: u64) {
        while !self.ended() {
            let left_ns = time_ns.saturating_sub(self.clock.now_ns());
            if left_ns == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left_ns).min(LOOK));
        }
    }
}

fn run_job(job: Job, shared: &Shared<'_>) -> Result<JobOutcome, String> {
    let pinned = issuer::pin(job.cpu.as_slice());
    let options = QueueOptions {
        depth: job.depth,
        max_request_bytes: job.max_request_bytes,
        polled: job.polled,
    };
    let queue = issuer::open(&job.volume, &options, job.data_seed);
    if queue.is_err() {
        shared.abandoned.store(true, Ordering::Relaxed);
    }
    shared.ready.wait();
    shared.go.wait();
    let window = shared.window();
    let mut load = Load::new(job, queue?, window, shared.clock);
    load.run(shared).inspect_err(|_| {
        shared.abandoned.store(true, Ordering::Relaxed);
    })?;
    Ok(load.into_outcome(pinned))
}

/// A job at work.
struct Load {
    job: Job,
    queue: Queue,
    tickets: Vec<Ticket>,
    done: Vec<Completion>,
    clock: Clock,
    window: Window,
    in_flight: u32,
    read: DirectionRecorder,
    write: DirectionRecorder,
    account: Account,
    errors: u64,
    first_error: Option<(Request, Errno)>,
    looked_ns: u64,
    depth_ns: u128,
    tail: Option<Tail>,
}

/// After the window: requests submitted up to `mark_ns` that are still in flight.
struct Tail {
    mark_ns: u64,
    left: u32,
}

impl Load {
    fn new(job: Job, (queue, tickets): (Queue, Vec<Ticket>), window: Window, clock: Clock) -> Self {
        Self {
            done: Vec::with_capacity(tickets.len()),
            read: DirectionRecorder::new(&window),
            write: DirectionRecorder::new(&window),
            account: Account::new(&window),
            job,
            queue,
            tickets,
            clock,
            window,
            in_flight: 0,
            errors: 0,
            first_error: None,
            looked_ns: window.start_ns,
            depth_ns: 0,
            tail: None,
        }
    }

    fn run(&mut self, shared: &Shared<'_>) -> Result<(), String> {
        while let Some(ticket) = self.tickets.pop() {
            self.submit(ticket);
        }
        let mut counted = true;
        while !shared.ended() {
            self.turn()?;
            if counted && self.tail.as_ref().is_some_and(|tail| tail.left == 0) {
                counted = false;
                shared.finished.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.queue
            .drain(&mut self.done)
            .map_err(|error| error.to_string())
    }

    /// Waits for completions and answers each with a new request. There is always something in flight, and a limit of
    /// the wait would cost a timer for each request.
    fn turn(&mut self) -> Result<(), String> {
        self.queue
            .wait(&mut self.done, None)
            .map_err(|error| error.to_string())?;
        let now_ns = self.clock.now_ns();
        self.look(now_ns);
        let policy = self.queue.policy();
        self.account.look(now_ns, || account::of(policy));
        let mut done = std::mem::take(&mut self.done);
        for completion in done.drain(..) {
            self.in_flight -= 1;
            self.account(&completion);
            self.submit(completion.ticket);
        }
        self.done = done;
        if now_ns >= self.window.end_ns && self.tail.is_none() {
            self.tail = Some(Tail {
                mark_ns: self.clock.now_ns(),
                left: self.in_flight,
            });
        }
        Ok(())
    }

    #[inline]
    fn submit(&mut self, ticket: Ticket) {
        let io = self.job.generator.next_io();
        let (op, flags) = if io.write {
            (Op::Write, self.job.write_flags)
        } else {
            (Op::Read, self.job.read_flags)
        };
        // Offsets and lengths are multiples of 512.
        let sector = SectorIndex::new(io.offset_bytes / crypt_core::units::SECTOR_BYTES);
        let len = ByteLength::new(io.len_bytes);
        self.in_flight += 1;
        self.queue
            .submit(ticket, Request::new(op, sector, len).with_flags(flags));
    }

    #[inline]
    fn account(&mut self, completion: &Completion) {
        let timing = &completion.timing;
        if let Some(tail) = &mut self.tail
            && timing.submitted_ns <= tail.mark_ns
        {
            tail.left = tail.left.saturating_sub(1);
        }
        let Some(slice) = self.window.slice_of(timing.submitted_ns) else {
            return;
        };
        match completion.result {
            Ok(bytes) if completion.request.op == Op::Read => {
                self.read.record(timing, bytes, slice);
            }
            Ok(bytes) => self.write.record(timing, bytes, slice),
            Err(errno) => {
                self.errors += 1;
                self.first_error.get_or_insert((completion.request, errno));
            }
        }
    }

    /// Adds the requests in flight since the last look to the average, inside the window.
    #[inline]
    fn look(&mut self, now_ns: u64) {
        let until_ns = now_ns.min(self.window.end_ns);
        if until_ns > self.looked_ns {
            self.depth_ns += u128::from(until_ns - self.looked_ns) * u128::from(self.in_flight);
            self.looked_ns = until_ns;
        }
    }

    fn into_outcome(self, pinned: bool) -> JobOutcome {
        let length_ns = self.window.length_ns().max(1);
        JobOutcome {
            depth_mean: self.depth_ns as f64 / length_ns as f64,
            account: self.account,
            facts: self.queue.facts(),
            read: self.read,
            write: self.write,
            errors: self.errors,
            first_error: self.first_error,
            pinned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Blocks, Workload};
    use crate::result::Rw;
    use crypt_core::device::null::NullDevice;
    use std::sync::Arc;

    fn job(number: u32) -> Job {
        let workload = Workload {
            rw: Rw::RandRw,
            rwmixread_percent: 50,
            blocks: Blocks::fixed(4096),
            size_bytes: 1 << 20,
        };
        Job {
            volume: Volume::builder(Arc::new(NullDevice::new(1 << 20)))
                .build()
                .unwrap(),
            generator: Generator::new(&workload, 1, number, 2),
            max_request_bytes: 4096,
            depth: 8,
            polled: false,
            read_flags: Flags::empty(),
            write_flags: Flags::empty(),
            cpu: None,
            data_seed: Some(1),
        }
    }

    const SCHEDULE: Schedule = Schedule {
        ramp: Duration::from_millis(5),
        runtime: Duration::from_millis(30),
        slice: None,
    };

    /// Measures for longer and longer until enough was done, which is up to the machine's other work.
    fn measure_until(jobs: &[Job], enough: impl Fn(&JobOutcome) -> bool) -> Measured {
        let stop = AtomicBool::new(false);
        for factor in [1, 10, 100, 1000] {
            let schedule = Schedule {
                runtime: SCHEDULE.runtime * factor,
                ..SCHEDULE
            };
            let mut edges = 0;
            let measured = measure(jobs.to_vec(), schedule, &stop, || edges += 1);
            let measured = measured.unwrap().unwrap();
            assert_eq!(edges, 2);
            assert_eq!(measured.jobs.len(), jobs.len());
            let length_ns = u128::from(measured.window.length_ns());
            assert_eq!(length_ns, schedule.runtime.as_nanos());
            if measured.jobs.iter().all(&enough) {
                return measured;
            }
        }
        panic!("not enough done in half a minute");
    }

    #[test]
    fn jobs_measure_over_one_window_at_full_depth() {
        let both = |outcome: &JobOutcome| outcome.read.ios() > 0 && outcome.write.ios() > 0;
        for outcome in measure_until(&[job(0), job(1)], both).jobs {
            assert_eq!(outcome.errors, 0);
            assert!(outcome.depth_mean <= 8.0 && outcome.depth_mean > 0.0);
        }
    }

    #[test]
    fn a_stopped_measurement_has_no_result() {
        let stop = AtomicBool::new(true);
        let measured = measure(vec![job(0)], SCHEDULE, &stop, || ());
        assert!(measured.unwrap().is_none());
    }

    #[test]
    fn a_job_that_cannot_start_is_an_error_for_all() {
        let bad = Job { depth: 0, ..job(0) };
        let stop = AtomicBool::new(false);
        let message = measure(vec![job(0), bad], SCHEDULE, &stop, || ()).unwrap_err();
        assert!(message.contains("depth 0"), "{message}");
    }

    #[test]
    fn failing_requests_are_counted_and_the_first_is_kept() {
        let mut job = job(0);
        job.volume = Volume::builder(Arc::new(NullDevice::new(1 << 20).read_only()))
            .build()
            .unwrap();
        let both = |outcome: &JobOutcome| outcome.errors > 0 && outcome.read.ios() > 0;
        let measured = measure_until(&[job], both);
        let outcome = &measured.jobs[0];
        assert_eq!(outcome.write.ios(), 0);
        let (request, errno) = outcome.first_error.unwrap();
        assert_eq!((request.op, errno), (Op::Write, Errno::EROFS));
    }
}
