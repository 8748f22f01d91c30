//! A device that stalls once under a thread with a rate: what it costs in response time and in service time.

#![forbid(unsafe_code)]

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crypt_core::Volume;
use crypt_core::device::null::NullDevice;
use crypt_core::device::{
    Device, DeviceCompletion, DeviceInfo, DeviceOp, DeviceQueue, Pushed, QueueConfig, QueueFacts,
};
use crypt_core::error::{Errno, Result as CoreResult};

use super::tests::{player, script};
use super::{Played, play};
use crate::generate::Script;
use crate::result::{Distribution, Rw};

const MS_NS: u64 = 1_000_000;
/// Requests of a run, and which of them the device stalls at.
const REQUESTS: u64 = 100;
const STALLED: u64 = 20;
/// Distance of two requests.
const APART_MS: u64 = 5;
/// How long it stalls; so many requests should start meanwhile.
const STALL_MS: u64 = 250;
const MISSED: u64 = STALL_MS / APART_MS;
/// Time that a loaded machine may add to all service times together.
const SLACK_NS: u64 = 2_000 * MS_NS;

/// The null device, which stalls in one operation.
#[derive(Debug)]
struct Stalling {
    inner: NullDevice,
    /// How long it really was, in nanoseconds.
    stalled_ns: Arc<AtomicU64>,
}

impl Device for Stalling {
    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }

    fn open_queue(&self, config: &QueueConfig<'_>) -> CoreResult<Box<dyn DeviceQueue>> {
        Ok(Box::new(StallingQueue {
            inner: self.inner.open_queue(config)?,
            stalled_ns: Arc::clone(&self.stalled_ns),
            pushed: 0,
        }))
    }
}

struct StallingQueue {
    inner: Box<dyn DeviceQueue>,
    stalled_ns: Arc<AtomicU64>,
    pushed: u64,
}

impl DeviceQueue for StallingQueue {
    fn push(&mut self, op: DeviceOp) -> Result<Pushed, DeviceOp> {
        if self.pushed == STALLED {
            let start = Instant::now();
            std::thread::sleep(Duration::from_millis(STALL_MS));
            let stalled_ns = start.elapsed().as_nanos() as u64;
            self.stalled_ns.store(stalled_ns, Ordering::Relaxed);
        }
        self.pushed += 1;
        self.inner.push(op)
    }

    fn submit(&mut self) {
        self.inner.submit();
    }

    fn reap(&mut self, done: &mut Vec<DeviceCompletion>) {
        self.inner.reap(done);
    }

    fn wait(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
        self.inner.wait(wake, timeout)
    }

    fn facts(&self) -> QueueFacts {
        self.inner.facts()
    }
}

/// Plays reads at a rate, or without one as they come; also how long the device stalled.
fn stalled(depth: u32, rated: bool) -> (Played, u64) {
    let device = Stalling {
        inner: NullDevice::new(1 << 20),
        stalled_ns: Arc::default(),
    };
    let stalled_ns = Arc::clone(&device.stalled_ns);
    let mut reader = player(Script {
        total_ios: Some(REQUESTS),
        ..script(Rw::RandRead)
    });
    reader.volume = Volume::builder(Arc::new(device)).build().unwrap();
    reader.depth = depth;
    reader.rates.ios_per_s[0] = rated.then_some(1000 / APART_MS);
    let mut played = play(vec![reader], &AtomicBool::new(false)).unwrap();
    let stalled_ns = stalled_ns.load(Ordering::Relaxed);
    assert!(stalled_ns >= STALL_MS * MS_NS);
    (played.remove(0), stalled_ns)
}

fn sum_ns(latency: &Distribution) -> f64 {
    assert_eq!(latency.samples, REQUESTS);
    latency.mean_ns * latency.samples as f64
}

#[test]
fn response_times_count_a_stall_for_each_request_that_should_have_started_in_it() {
    for depth in [1, 8] {
        let (played, stalled_ns) = stalled(depth, true);
        let service = played.read.stats(&played.window).unwrap().lat;
        let [reads, _] = played.intended.unwrap();
        let response = reads.stats(&played.window).unwrap().lat;

        // A request that was due so long after the stalled one could end only when the stall was over. That holds
        // however slow the machine is.
        let least_ns = |missed: u64| stalled_ns - missed * APART_MS * MS_NS;
        let missed_ns: u64 = (0..MISSED).map(least_ns).sum();
        assert!(sum_ns(&response) >= missed_ns as f64, "{response:?}");
        assert!(response.max_ns >= least_ns(0));
        // Of 100 requests the eleventh from above; histograms keep three digits.
        let p90_ns = response.p90_ns.unwrap();
        assert!(p90_ns as f64 >= 0.99 * least_ns(10) as f64, "{response:?}");

        // In service it was one request that stalled.
        assert!(service.max_ns >= STALL_MS * MS_NS);
        let most_ns = stalled_ns + SLACK_NS;
        assert!(missed_ns > most_ns, "the two can't be told apart");
        assert!(sum_ns(&service) < most_ns as f64, "{service:?}");
    }
}

#[test]
fn without_a_rate_a_stall_counts_once_and_nothing_else_is_said() {
    let (played, stalled_ns) = stalled(1, false);
    assert!(played.intended.is_none());
    let service = played.read.stats(&played.window).unwrap().lat;
    assert!(service.max_ns >= STALL_MS * MS_NS);
    assert!(sum_ns(&service) < (stalled_ns + SLACK_NS) as f64);
}
