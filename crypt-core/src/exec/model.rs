//! Models of the hand-off, run by loom through every order of events with a bounded number of preemptions:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p crypt-core --lib exec::model`.
//!
//! What is modelled is the real code: the pool's queue and idle workers, task cells, records, mailboxes and their
//! wake-ups, with one queue or two and one worker or two. What is left out: crossbeam's queue (`sync.rs` has a stub that
//! promises less), spinning, counts of threads that need a core, which only steer, and the eventfd itself, by whose
//! counter a model looks whether it was written. A wake-up that is lost ends a model as a deadlock, or as a
//! wait without an end.
#![forbid(unsafe_code)]

use std::num::{NonZeroU8, NonZeroUsize};
use std::sync::Arc;

use loom::thread::{self, JoinHandle};

use super::mailbox::Mailbox;
use super::pool::WorkerConfig;
use super::record::{PartEnd, Record};
use super::shared::PoolShared;
use super::sync::{AtomicU32, Ordering};
use super::task::{TaskContext, TaskOwner};
use super::wake::{WakeAccount, WakeFd};
use super::work::{Done, DoneKind, Route, Work};
use crate::buffer::{Area, SlotBuffer};
use crate::cipher::SectorCipher;
use crate::clock::Clock;
use crate::error::Errno;
use crate::exec::span::Source;
use crate::policy::Direction;
use crate::units::{SectorIndex, SectorSize};

const SECTORS: usize = 4;
const OK: DoneKind = DoneKind::Crypt(Ok(()));

/// Runs a model with at most so many preemptions, which is what grows the number of orders.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(model);
}

/// Counts how often it ran over each sector. The counts are relaxed: a thread sees those of another only where
/// the hand-off lets it.
#[derive(Debug)]
struct Tally {
    runs: [AtomicU32; SECTORS],
    /// The sector whose cipher panics.
    bad: Option<usize>,
}

impl Tally {
    fn new(bad: Option<usize>) -> Arc<Self> {
        let runs = std::array::from_fn(|_| AtomicU32::new(0));
        Arc::new(Self { runs, bad })
    }

    fn runs(&self) -> [u32; SECTORS] {
        std::array::from_fn(|sector| self.runs[sector].load(Ordering::Relaxed))
    }

    fn run(&self, first: SectorIndex, len: usize) {
        let first = first.get() as usize;
        for sector in first..first + len / 512 {
            self.runs[sector].fetch_add(1, Ordering::Relaxed);
            if self.bad == Some(sector) {
                // As `panic!`, but without the message on standard error.
                std::panic::resume_unwind(Box::new("bad sector"));
            }
        }
    }
}

impl SectorCipher for Tally {
    fn encrypt_sectors(&self, first: SectorIndex, src: &[u8], _dst: &mut [u8]) {
        self.run(first, src.len());
    }

    fn encrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        self.run(first, buf.len());
    }

    fn decrypt_sectors(&self, first: SectorIndex, src: &[u8], _dst: &mut [u8]) {
        self.run(first, src.len());
    }

    fn decrypt_in_place(&self, first: SectorIndex, buf: &mut [u8]) {
        self.run(first, buf.len());
    }

    fn sector_size(&self) -> SectorSize {
        SectorSize::B512
    }

    fn backend(&self) -> &'static str {
        "tally"
    }
}

/// A pool whose workers are threads of the model.
fn pool(workers: usize, queue_parts: usize) -> (Arc<PoolShared>, Vec<JoinHandle<()>>) {
    let config = WorkerConfig {
        spin_ns: 0,
        queue_parts: NonZeroUsize::new(queue_parts).unwrap(),
        ..WorkerConfig::default()
    };
    let shared = Arc::new(PoolShared::new(&config, &vec![None; workers], 2));
    let live = |worker| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            shared.register(worker);
            shared.work(worker);
        })
    };
    let threads = (0..workers).map(live).collect();
    (shared, threads)
}

fn end(pool: &PoolShared, threads: Vec<JoinHandle<()>>) {
    pool.stop();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// A queue: what a lane has, without what needs threads of the system.
struct Queue {
    tasks: TaskOwner,
    wakes: WakeAccount,
}

impl Queue {
    fn new(cipher: &Arc<Tally>, cells: u32) -> Self {
        let context = TaskContext {
            cipher: Arc::clone(cipher) as Arc<dyn SectorCipher>,
            mailbox: Mailbox::new(cells as usize).unwrap(),
            writes: None,
            device: None,
            clock: Clock::monotonic(),
        };
        Self {
            tasks: TaskOwner::new(cells, context),
            wakes: WakeAccount::default(),
        }
    }

    /// Hands off sectors from `first`, in as many parts; the work comes back where there is no cell for it.
    fn hand_off(&mut self, pool: &PoolShared, first: u64, parts: u8) -> Result<(), Work> {
        let work = Work {
            token: first,
            direction: Direction::Encrypt,
            first: SectorIndex::new(first),
            len_bytes: 512 * u32::from(parts),
            source: Source::Area(Area::Data),
            target: Area::Data,
            buffer: SlotBuffer::allocate(1, 4096).unwrap().remove(0),
            parts: NonZeroU8::new(parts).unwrap(),
            same_cpu: false,
            wake_each: false,
            route: Route::Return,
        };
        let summons = work.summons();
        pool.submit(self.tasks.start(work)?, summons);
        Ok(())
    }

    /// The next result, slept for as a queue's thread does.
    fn wait(&mut self) -> Done {
        loop {
            if let Some(done) = self.tasks.collect() {
                return done;
            }
            let mailbox = &self.tasks.context().mailbox;
            if mailbox.wake.arm(&mut self.wakes, || !mailbox.is_empty()) {
                sleep(&mailbox.wake);
                mailbox.wake.disarm(&mut self.wakes);
            }
        }
    }
}

/// Waits for the eventfd, whose counter stays as it is.
fn sleep(wake: &WakeFd) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let is_written = || {
        let mut fds = [PollFd::from_borrowed_fd(wake.fd(), PollFlags::IN)];
        poll(&mut fds, Some(&at_once)).unwrap() > 0
    };
    while !is_written() {
        thread::yield_now();
    }
}

#[test]
fn every_hand_off_comes_back_to_a_queue_that_sleeps_from_a_worker_that_sleeps() {
    check(3, || {
        let cipher = Tally::new(None);
        let (pool, threads) = pool(1, 2);
        let mut queue = Queue::new(&cipher, 2);
        for first in 0..2 {
            queue.hand_off(&pool, first, 1).unwrap();
            let done = queue.wait();
            assert_eq!((done.token, done.result), (first, OK));
            assert_eq!(cipher.runs()[first as usize], 1);
        }
        end(&pool, threads);
        assert_eq!(cipher.runs(), [1, 1, 0, 0]);
    });
}

#[test]
fn parts_run_once_each_and_the_last_one_posts_what_all_have_done() {
    check(1, || {
        let cipher = Tally::new(None);
        let (pool, threads) = pool(2, 2);
        let mut queue = Queue::new(&cipher, 1);
        queue.hand_off(&pool, 0, 2).unwrap();
        assert_eq!(queue.wait().result, OK);
        assert_eq!(cipher.runs(), [1, 1, 0, 0]);
        end(&pool, threads);
        assert_eq!(cipher.runs(), [1, 1, 0, 0]);
    });
}

#[test]
fn two_works_in_flight_are_run_whoever_is_awake() {
    check(1, || {
        let cipher = Tally::new(None);
        let (pool, threads) = pool(2, 2);
        let mut queue = Queue::new(&cipher, 2);
        queue.hand_off(&pool, 0, 1).unwrap();
        queue.hand_off(&pool, 1, 1).unwrap();
        assert_eq!((queue.wait().result, queue.wait().result), (OK, OK));
        assert_eq!(cipher.runs(), [1, 1, 0, 0]);
        end(&pool, threads);
    });
}

#[test]
fn a_cell_is_used_again_only_after_its_worker_has_left_it() {
    check(2, || {
        let cipher = Tally::new(None);
        let (pool, threads) = pool(1, 2);
        let mut queue = Queue::new(&cipher, 1);
        queue.hand_off(&pool, 0, 1).unwrap();
        assert_eq!(queue.wait().result, OK);
        // Either the worker has left the cell, or the work comes back to be run inline.
        match queue.hand_off(&pool, 1, 1) {
            Ok(()) => assert_eq!((queue.wait().result, cipher.runs()[1]), (OK, 1)),
            Err(work) => assert_eq!((work.token, cipher.runs()[1]), (1, 0)),
        }
        drop(queue);
        end(&pool, threads);
    });
}

#[test]
fn a_shutdown_runs_what_is_handed_off_before_and_meanwhile() {
    check(2, || {
        let cipher = Tally::new(None);
        let (pool, threads) = pool(1, 2);
        let mut queue = Queue::new(&cipher, 2);
        queue.hand_off(&pool, 0, 1).unwrap();
        let stopping = Arc::clone(&pool);
        let stopper = thread::spawn(move || stopping.stop());
        queue.hand_off(&pool, 1, 1).unwrap();
        assert_eq!((queue.wait().result, queue.wait().result), (OK, OK));
        stopper.join().unwrap();
        end(&pool, threads);
        assert_eq!(cipher.runs(), [1, 1, 0, 0]);
    });
}

#[test]
fn a_hand_off_that_races_with_the_shutdown_comes_back() {
    check(3, || {
        let cipher = Tally::new(None);
        let (pool, threads) = pool(1, 1);
        let stopping = Arc::clone(&pool);
        let stopper = thread::spawn(move || stopping.stop());
        let mut queue = Queue::new(&cipher, 1);
        queue.hand_off(&pool, 0, 1).unwrap();
        assert_eq!(queue.wait().result, OK);
        stopper.join().unwrap();
        end(&pool, threads);
        assert_eq!(cipher.runs(), [1, 0, 0, 0]);
    });
}

#[test]
fn a_full_queue_makes_the_giver_run_the_rest_and_nobody_waits() {
    check(2, || {
        let cipher = Tally::new(None);
        let (pool, threads) = pool(1, 1);
        let other = {
            let (cipher, pool) = (Arc::clone(&cipher), Arc::clone(&pool));
            thread::spawn(move || {
                let mut queue = Queue::new(&cipher, 1);
                queue.hand_off(&pool, 2, 1).unwrap();
                queue
            })
        };
        let mut queue = Queue::new(&cipher, 1);
        queue.hand_off(&pool, 0, 2).unwrap();
        // Two threads that wait for an eventfd could keep the worker from running for ever: loom is not fair.
        let mut other = other.join().unwrap();
        assert_eq!((queue.wait().result, other.wait().result), (OK, OK));
        end(&pool, threads);
        assert_eq!(cipher.runs(), [1, 1, 1, 0]);
    });
}

#[test]
fn a_panic_in_a_part_is_the_error_of_its_work_and_the_worker_lives_on() {
    check(2, || {
        let cipher = Tally::new(Some(1));
        let (pool, threads) = pool(1, 2);
        let mut queue = Queue::new(&cipher, 2);
        queue.hand_off(&pool, 0, 2).unwrap();
        assert_eq!(queue.wait().result, DoneKind::Crypt(Err(Errno::EIO)));
        queue.hand_off(&pool, 2, 1).unwrap();
        assert_eq!(queue.wait().result, OK);
        end(&pool, threads);
        assert_eq!(cipher.runs(), [1, 1, 1, 0]);
    });
}

#[test]
fn exactly_one_part_is_the_last_and_its_sums_are_whole() {
    check(3, || {
        let record = Arc::new(Record::new());
        record.reset(3, 1536);
        let part = |started_ns| PartEnd {
            started_ns,
            cipher_ns: 10,
            result: if started_ns == 5 {
                Err(Errno::EIO)
            } else {
                Ok(())
            },
            write: None,
        };
        let sums = |record: &Record| (record.cipher_ns(), record.wait_ns(0), record.result());
        let enter = move |record: &Record, started_ns| {
            let was_last = record.enter(part(started_ns));
            assert!(!was_last || sums(record) == (30, 5, Err(Errno::EIO)));
            u32::from(was_last)
        };
        let others = [5, 6].map(|started_ns| {
            let record = Arc::clone(&record);
            thread::spawn(move || enter(&record, started_ns))
        });
        let own = enter(&record, 7);
        let last: u32 = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(own + last, 1);
    });
}
