//! What holds after every kind of run: each job file of the tests is played on a device that counts.

#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crypt_core::Volume;
use crypt_core::device::null::NullDevice;
use crypt_core::device::{
    Device, DeviceCompletion, DeviceInfo, DeviceOp, DeviceQueue, Pushed, QueueConfig, QueueFacts,
};
use crypt_core::error::{Errno, Result as CoreResult};
use crypt_core::exec::{WorkerConfig, WorkerPool};
use crypt_core::key::Key;
use crypt_core::request::Op;

use super::outcome::{self, Report};
use super::setup::Setup;
use crate::jobfile::job::{Access, Crypt, Job};
use crate::jobfile::place::Plan;
use crate::jobfile::{self, Surroundings};
use crate::log::Point;
use crate::play::{self, Played, Player};
use crate::result::{DirectionStats, Distribution};
use crate::target::Permissions;

/// Bytes that a device was asked for.
#[derive(Debug, Default)]
struct Counted {
    read: AtomicU64,
    written: AtomicU64,
}

/// The null device, counting what completes.
#[derive(Debug)]
struct Counting(NullDevice, Arc<Counted>);

impl Device for Counting {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn open_queue(&self, config: &QueueConfig<'_>) -> CoreResult<Box<dyn DeviceQueue>> {
        let inner = self.0.open_queue(config)?;
        Ok(Box::new(CountingQueue(inner, Arc::clone(&self.1))))
    }
}

struct CountingQueue(Box<dyn DeviceQueue>, Arc<Counted>);

impl DeviceQueue for CountingQueue {
    fn push(&mut self, op: DeviceOp) -> Result<Pushed, DeviceOp> {
        let kind = op.op;
        let pushed = self.0.push(op)?;
        // The null device is done at once.
        if let Pushed::Done(DeviceCompletion {
            result: Ok(bytes), ..
        }) = &pushed
        {
            match kind {
                Op::Read => self.1.read.fetch_add(*bytes, Ordering::Relaxed),
                Op::Write => self.1.written.fetch_add(*bytes, Ordering::Relaxed),
                _ => 0,
            };
        }
        Ok(pushed)
    }

    fn submit(&mut self) {
        self.0.submit();
    }

    fn reap(&mut self, done: &mut Vec<DeviceCompletion>) {
        self.0.reap(done);
    }

    fn wait(&mut self, wake: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
        self.0.wait(wake, timeout)
    }

    fn facts(&self) -> QueueFacts {
        self.0.facts()
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/jobs")
}

/// The folder of the job files, with the variables that they use.
struct Folder;

impl Surroundings for Folder {
    fn read(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(folder().join(path)).map_err(|error| error.to_string())
    }

    fn lines(&self, path: &str) -> Result<Box<dyn BufRead>, String> {
        let file = std::fs::File::open(folder().join(path)).map_err(|error| error.to_string())?;
        Ok(Box::new(BufReader::new(file)))
    }

    fn variable(&self, name: &str) -> Option<String> {
        [("JOB_SIZE", "1m"), ("JOB_BLOCK", "8")]
            .into_iter()
            .find_map(|(known, value)| (known == name).then(|| value.to_owned()))
    }

    fn keyword(&self, name: &str) -> Option<u64> {
        Some(if name == "pagesize" { 4096 } else { 2 })
    }
}

/// A job that ends soon, needs no file, and counts all that it does: no warm-up, no search for a depth.
fn quick(mut job: Job) -> Job {
    job.access = Access::Null;
    job.hipri = false;
    job.replay = None;
    job.verify = None;
    job.ramp_us = 0;
    job.delay_us = (0, 0);
    job.numjobs = job.numjobs.min(2);
    job.conduct.target = None;
    job.conduct.steady = None;
    job.runtime_us = Some(job.runtime_us.unwrap_or(u64::MAX).min(10_000));
    if let Some(crypt) = &mut job.crypt {
        crypt.key_file = None;
    }
    job
}

/// A volume as `player` has it, over a device that counts.
fn counted(player: &Player, crypt: Option<&Crypt>) -> (Volume, Arc<Counted>) {
    let counts = Arc::new(Counted::default());
    let size_bytes = player.volume.size_bytes();
    let device = Counting(NullDevice::new(size_bytes), Arc::clone(&counts));
    let mut builder = Volume::builder(Arc::new(device)).size_bytes(size_bytes);
    if let Some(crypt) = crypt {
        let bytes: Vec<u8> = (0..64).collect();
        let cipher = [64, 32, 16].into_iter().find_map(|len| {
            crypt
                .cipher
                .build(&Key::from_bytes(&bytes[..len]).ok()?, None)
                .ok()
        });
        builder = builder.cipher(cipher.unwrap()).policy(crypt.policy);
        if crypt.policy.needs_workers() {
            let pool = WorkerPool::start(&WorkerConfig::for_rules(&crypt.policy.rules()));
            builder = builder.workers(pool.unwrap());
        }
    }
    (builder.build().unwrap(), counts)
}

/// Plays a file; `None` where this machine or a device without a file can't.
fn played(name: &str) -> Option<(Plan, Vec<Played>, Vec<Arc<Counted>>)> {
    let jobs = jobfile::load(&[name.to_owned()], &[], &Folder).unwrap();
    let jobs = jobs.into_iter().map(quick).collect();
    let plan = Plan::new(jobs, &|_| Ok(Some(64 << 20)));
    let plan = plan
        .map_err(|refusal| println!("skipped: {refusal}"))
        .ok()?;
    let stop = AtomicBool::new(false);
    let permissions = Permissions {
        destroy_data_on: Vec::new(),
        create: false,
        created: Vec::new(),
    };
    let setup = Setup::prepare(&plan, &permissions, &stop);
    let mut setup = setup
        .map_err(|failure| println!("skipped: {name}: {failure}"))
        .ok()?;
    let (mut all, mut counts) = (Vec::new(), Vec::new());
    for stage in 0..plan.stages() {
        let players = setup.players(&plan, stage, &stop);
        let mut players = players
            .map_err(|failure| println!("skipped: {failure}"))
            .ok()?;
        let copies = plan.copies.iter().filter(|copy| copy.stage == stage);
        for (player, copy) in players.iter_mut().zip(copies) {
            let (volume, counted) = counted(player, plan.jobs[copy.job].crypt.as_ref());
            player.volume = volume;
            counts.push(counted);
        }
        all.extend(play::play(players, &stop).unwrap());
    }
    Some((plan, all, counts))
}

#[test]
fn figures_add_up_whatever_runs() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".fio"))
        .collect();
    names.sort();
    let mut ran = 0;
    for name in &names {
        let Some((plan, all, counts)) = played(name) else {
            continue;
        };
        ran += 1;
        for (played, counted) in all.iter().zip(&counts) {
            assert_eq!(played.errors, 0, "{name}: {:?}", played.first_error);
            let device =
                [&counted.read, &counted.written].map(|bytes| bytes.load(Ordering::Relaxed));
            assert_eq!(
                [played.read.bytes(), played.write.bytes()],
                device,
                "{name}"
            );
            if let Some(log) = &played.log {
                let kept = log.points(played.window.end_ns).map(|point| match point {
                    Point::Request(_) => 1,
                    Point::Window { sums, .. } => sums.ios,
                });
                let ios = played.read.ios() + played.write.ios();
                assert_eq!(kept.sum::<u64>() + log.lost(), ios, "{name}: log");
            }
        }
        let threads: Vec<Option<&Played>> = all.iter().map(Some).collect();
        let reports = outcome::reports(&plan, &threads);
        for report in &reports {
            check(name, report);
        }
        let total = |of: fn(&Report) -> &Option<DirectionStats>| -> u64 {
            reports
                .iter()
                .filter_map(|report| of(report).as_ref())
                .map(|stats| stats.bytes)
                .sum()
        };
        let device: u64 = counts
            .iter()
            .map(|counted| {
                counted.read.load(Ordering::Relaxed) + counted.written.load(Ordering::Relaxed)
            })
            .sum();
        assert_eq!(
            total(|report| &report.read) + total(|report| &report.write),
            device,
            "{name}"
        );
    }
    assert!(
        ran * 10 >= names.len() * 8,
        "only {ran} of {} job files ran",
        names.len()
    );
}

fn check(name: &str, report: &Report) {
    for stats in [&report.read, &report.write].into_iter().flatten() {
        let sliced: u64 = stats.slice_ios.iter().sum();
        assert_eq!(sliced, stats.ios, "{name} [{}]: slices", report.name);
        for latency in [&stats.slat, &stats.clat, &stats.lat] {
            assert_eq!(latency.samples, stats.ios, "{name} [{}]", report.name);
            in_order(name, latency);
        }
        let sum = stats.slat.mean_ns + stats.clat.mean_ns;
        let lat = stats.lat.mean_ns;
        assert!(
            (sum - lat).abs() <= 1e-6 * lat.max(1.0),
            "{name}: {sum} {lat}"
        );
    }
}

/// Percentiles rise, from the smallest sample on and not beyond the largest.
fn in_order(name: &str, latency: &Distribution) {
    let all: Vec<u64> = latency.rising_ns().collect();
    assert_eq!(all.len(), 7, "{name}");
    assert!(all.is_sorted(), "{name}: {all:?}");
    let mean = latency.mean_ns;
    assert!(
        latency.min_ns as f64 <= mean && mean <= latency.max_ns as f64,
        "{name}"
    );
}
