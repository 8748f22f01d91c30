//! Whether a finished measurement can be trusted: the evidence in, typed doubts out. Pure.

#![forbid(unsafe_code)]

use crate::doubt::Doubt;
use crate::generate::Blocks;
use crate::result::{Achieved, CellParams, DirectionStats};

/// The clock of results that no clock measured.
pub const VIRTUAL_CLOCK: &str = "virtual";

/// What is known about a finished measurement, to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What was asked for.
    pub cell: &'a CellParams,
    /// What happened.
    pub achieved: &'a Achieved,
    /// Completed reads.
    pub read: Option<&'a DirectionStats>,
    /// Completed writes.
    pub write: Option<&'a DirectionStats>,
    /// Length of a slice in nanoseconds.
    pub slice_ns: u64,
    /// Share of processor time that the hypervisor took, in percent.
    pub steal_percent: f64,
    /// Where the data lives.
    pub storage: StorageEvidence,
    /// Bytes that this process had fetched from storage meanwhile; `None` where the system does not
    /// say.
    pub storage_read_bytes: Option<u64>,
    /// CPUs that the process may use.
    pub cpus: u32,
    /// Frequency governor, where there is one.
    pub governor: Option<&'a str>,
}

/// What is known about a device before anything is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageEvidence {
    /// Data passes through a file or block device.
    pub is_file: bool,
    /// Parts of the file were never written.
    pub never_written: bool,
    /// The file's file system keeps it in memory.
    pub in_memory: bool,
}

/// Every reason to doubt a measurement, the invalidating ones first.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    missed(evidence, &mut doubts);
    storage(evidence, &mut doubts);
    mechanism(evidence, &mut doubts);
    precision(evidence, &mut doubts);
    conditions(evidence, &mut doubts);
    doubts.sort_by_key(|doubt| !doubt.invalidates());
    doubts
}

/// Reasons to doubt what another program measured: those that figures alone show, since its mechanism and its
/// machine are not known.
#[must_use]
pub fn judge_imported(evidence: &Evidence<'_>) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    missed(evidence, &mut doubts);
    storage(evidence, &mut doubts);
    samples(evidence, &mut doubts);
    doubts
}

/// Where the load was not the one asked for.
fn missed(evidence: &Evidence<'_>, doubts: &mut Vec<Doubt>) {
    let (cell, achieved) = (evidence.cell, evidence.achieved);
    if achieved.errors > 0 {
        let errors = achieved.errors;
        doubts.push(Doubt::Errors { errors });
    }
    let (Some(percent), Some(mean_bytes)) =
        (achieved.rwmixread_percent, achieved.block_size_bytes_mean)
    else {
        doubts.push(Doubt::NoSamples);
        return;
    };
    if achieved.depth_mean < 0.9 * f64::from(cell.depth) {
        let (asked, mean) = (cell.depth, achieved.depth_mean);
        doubts.push(Doubt::DepthNotReached { asked, mean });
    }
    let ios: u64 = directions(evidence).map(|stats| stats.ios).sum();
    // The generator is exact over each hundred requests of a job, so few requests may be off more.
    let slack = 5.0 + 5000.0 * f64::from(cell.jobs * cell.devices) / ios as f64;
    if (percent - f64::from(cell.rwmixread_percent)).abs() > slack {
        doubts.push(Doubt::MixOff {
            asked_percent: cell.rwmixread_percent,
            achieved_percent: percent,
        });
    }
    if mean_bytes < least_mean_bytes(cell, percent, ios) {
        doubts.push(Doubt::ShortTransfers { mean_bytes });
    }
    let achieved_ms = achieved.runtime_ns / 1_000_000;
    if achieved_ms < cell.runtime_ms * 95 / 100 {
        let asked_ms = cell.runtime_ms;
        doubts.push(Doubt::RuntimeShort {
            asked_ms,
            achieved_ms,
        });
    }
}

/// The least mean length that whole transfers have: exact where all are alike, else with what chance may
/// take off it.
fn least_mean_bytes(cell: &CellParams, read_percent: f64, ios: u64) -> f64 {
    let bytes = cell.block_size_bytes as f64;
    match (&cell.block_sizes, Blocks::of_cell(cell)) {
        (Some(_), Ok(blocks)) => {
            let chance = 0.02 + 4.0 / (ios.max(1) as f64).sqrt();
            blocks.mean(read_percent / 100.0) * (1.0 - chance)
        }
        _ => bytes,
    }
}

/// Where the data did not come from or go to what was to be measured.
fn storage(evidence: &Evidence<'_>, doubts: &mut Vec<Doubt>) {
    let (cell, achieved, storage) = (evidence.cell, evidence.achieved, evidence.storage);
    if !storage.is_file {
        return;
    }
    if cell.direct && !achieved.direct {
        doubts.push(Doubt::NotDirect);
    }
    if storage.in_memory {
        doubts.push(Doubt::MemoryFilesystem);
    }
    let Some(read) = evidence.read else { return };
    if storage.never_written {
        doubts.push(Doubt::NeverWritten);
    } else if !storage.in_memory {
        doubts.extend(cached(evidence, read.bytes));
    }
}

/// Whether less than nine tenths of what was read came from storage; what was in flight at the edges
/// of the measurement may be missing.
fn cached(evidence: &Evidence<'_>, read_bytes: u64) -> Option<Doubt> {
    let cell = evidence.cell;
    let Some(from_storage) = evidence.storage_read_bytes else {
        let from_storage_percent = None;
        return (!evidence.achieved.direct).then_some(Doubt::Cached {
            from_storage_percent,
        });
    };
    let in_flight = u64::from(cell.depth) * u64::from(cell.jobs) * u64::from(cell.devices);
    let in_flight_bytes = in_flight * cell.block_size_bytes;
    if from_storage + in_flight_bytes >= read_bytes / 10 * 9 {
        return None;
    }
    let percent = 100.0 * from_storage as f64 / read_bytes as f64;
    Some(Doubt::Cached {
        from_storage_percent: Some(percent),
    })
}

/// Where something works in another way than asked for.
fn mechanism(evidence: &Evidence<'_>, doubts: &mut Vec<Doubt>) {
    let (cell, achieved) = (evidence.cell, evidence.achieved);
    if cell.hipri && !achieved.polled {
        doubts.push(Doubt::PollingNotPossible);
    }
    if achieved.engine == "sync" && cell.engine != "sync" {
        doubts.push(Doubt::IoUringRefused);
    }
    if achieved.engine == "io_uring" && !achieved.registered_buffers {
        doubts.push(Doubt::BuffersNotRegistered);
    }
    if !achieved.pinned {
        doubts.push(Doubt::NotPinned);
    }
    if cell.cipher_throttle_bytes_per_s.is_some() {
        doubts.push(Doubt::CipherThrottled);
    }
}

/// Where the figures stand on little.
fn precision(evidence: &Evidence<'_>, doubts: &mut Vec<Doubt>) {
    samples(evidence, doubts);
    if let Some(relative_stddev) = unsteady(evidence) {
        doubts.push(Doubt::NoisySlices { relative_stddev });
    }
    match evidence.achieved.clock.as_str() {
        "tsc" => {}
        VIRTUAL_CLOCK => doubts.push(Doubt::Simulated),
        _ => doubts.push(Doubt::SlowClock),
    }
}

/// Where there are few of them, or some beyond the range.
fn samples(evidence: &Evidence<'_>, doubts: &mut Vec<Doubt>) {
    let fewest = directions(evidence).map(|stats| stats.ios).min();
    if let Some(samples) = fewest.filter(|&samples| samples < 1000) {
        let ladder = [(99.9, 10_000), (99.0, 1000), (90.0, 100), (50.0, 20)];
        let trusted = ladder.iter().find(|(_, needed)| samples >= *needed);
        doubts.push(Doubt::FewSamples {
            samples,
            trusted_percentile: trusted.map(|&(percentile, _)| percentile),
        });
    }
    let over: u64 = directions(evidence)
        .map(|stats| stats.lat.over_range_samples)
        .sum();
    if over > 0 {
        doubts.push(Doubt::OverRange { samples: over });
    }
}

/// Relative deviation of the whole slices, where it is beyond a quarter and beyond what counting few
/// requests explains.
fn unsteady(evidence: &Evidence<'_>) -> Option<f64> {
    let whole = (evidence.achieved.runtime_ns / evidence.slice_ns.max(1)) as usize;
    let slices: Vec<f64> = (0..whole)
        .map(|slice| {
            let ios = directions(evidence).filter_map(|stats| stats.slice_ios.get(slice));
            ios.sum::<u64>() as f64
        })
        .collect();
    if slices.len() < 4 {
        return None;
    }
    let n = slices.len() as f64;
    let mean = slices.iter().sum::<f64>() / n;
    let variance = slices.iter().map(|ios| (ios - mean).powi(2)).sum::<f64>() / n;
    let relative = variance.sqrt() / mean;
    (mean > 0.0 && relative > 0.25 + 3.0 / mean.sqrt()).then_some(relative)
}

/// Where the machine was not at its best.
fn conditions(evidence: &Evidence<'_>, doubts: &mut Vec<Doubt>) {
    let jobs = evidence.cell.jobs.saturating_mul(evidence.cell.devices);
    if jobs > evidence.cpus {
        let cpus = evidence.cpus;
        doubts.push(Doubt::Oversubscribed { jobs, cpus });
    }
    if evidence.steal_percent > 5.0 {
        let percent = evidence.steal_percent;
        doubts.push(Doubt::Steal { percent });
    }
    if let Some(governor) = evidence
        .governor
        .filter(|&governor| governor != "performance")
    {
        let governor = governor.to_owned();
        doubts.push(Doubt::Governor { governor });
    }
    if cfg!(debug_assertions) {
        doubts.push(Doubt::DebugBuild);
    }
}

fn directions<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = &'a DirectionStats> {
    evidence.read.into_iter().chain(evidence.write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{ResultRecord, Rw};
    use crate::testing::{cell, record};

    /// The doubts about a plausible record after a change to it and to the evidence.
    fn doubts(
        change: impl FnOnce(&mut ResultRecord),
        tell: impl FnOnce(&mut Evidence<'_>),
    ) -> Vec<Doubt> {
        let mut record = record(cell("inline", 4096, 4), 1, 1e9);
        change(&mut record);
        let mut evidence = Evidence {
            cell: &record.cell,
            achieved: &record.achieved,
            read: record.read.as_ref(),
            write: record.write.as_ref(),
            slice_ns: record.slice_ns,
            steal_percent: 0.0,
            storage: StorageEvidence::default(),
            storage_read_bytes: None,
            cpus: 2,
            governor: None,
        };
        tell(&mut evidence);
        let mut doubts = judge(&evidence);
        doubts.retain(|doubt| *doubt != Doubt::DebugBuild);
        doubts
    }

    fn on_file(evidence: &mut Evidence<'_>) {
        evidence.storage.is_file = true;
        evidence.storage_read_bytes = evidence.read.map(|read| read.bytes);
    }

    #[test]
    fn a_good_measurement_has_no_doubts() {
        assert_eq!(doubts(|_| (), |_| ()), []);
        assert_eq!(doubts(|_| (), on_file), []);
    }

    #[test]
    fn a_missed_load_is_invalid() {
        let depth = doubts(|record| record.achieved.depth_mean = 3.5, |_| ());
        assert_eq!(
            depth,
            [Doubt::DepthNotReached {
                asked: 4,
                mean: 3.5
            }]
        );
        let mix = doubts(
            |record| {
                record.cell.rw = Rw::RandRw;
                record.cell.rwmixread_percent = 50;
            },
            |_| (),
        );
        let off = Doubt::MixOff {
            asked_percent: 50,
            achieved_percent: 100.0,
        };
        assert_eq!(mix, [off]);
        let short = doubts(|record| record.achieved.runtime_ns /= 2, |_| ());
        let runtime = Doubt::RuntimeShort {
            asked_ms: 200,
            achieved_ms: 100,
        };
        assert_eq!(short, [runtime]);
        let bytes = doubts(
            |record| record.achieved.block_size_bytes_mean = Some(4000.0),
            |_| (),
        );
        assert_eq!(bytes, [Doubt::ShortTransfers { mean_bytes: 4000.0 }]);
        let errors = doubts(|record| record.achieved.errors = 2, |_| ());
        assert_eq!(errors, [Doubt::Errors { errors: 2 }]);
        for doubt in [depth, mix, short, bytes, errors].concat() {
            assert!(doubt.invalidates(), "{doubt}");
        }
    }

    #[test]
    fn several_lengths_have_a_mean_that_chance_may_lower_a_little() {
        let split = |mean: f64| {
            doubts(
                |record| {
                    record.cell.block_sizes = Some("4k/50:12k/50".to_owned());
                    record.cell.block_size_bytes = 12 << 10;
                    record.achieved.block_size_bytes_mean = Some(mean);
                },
                |_| (),
            )
        };
        assert_eq!(split(8192.0 * 0.98), []);
        let mean_bytes = 4096.0;
        assert_eq!(split(mean_bytes), [Doubt::ShortTransfers { mean_bytes }]);
    }

    #[test]
    fn nothing_completed_is_said_once() {
        let none = doubts(
            |record| {
                record.read = None;
                record.achieved.rwmixread_percent = None;
                record.achieved.block_size_bytes_mean = None;
                record.achieved.depth_mean = 0.0;
            },
            |_| (),
        );
        assert_eq!(none, [Doubt::NoSamples]);
    }

    #[test]
    fn reads_that_storage_did_not_deliver_are_cached() {
        let cached = doubts(
            |_| (),
            |evidence| {
                on_file(evidence);
                evidence.storage_read_bytes = evidence.read.map(|read| read.bytes / 4);
            },
        );
        let percent = match cached[..] {
            [
                Doubt::Cached {
                    from_storage_percent: Some(percent),
                },
            ] => percent,
            _ => panic!("{cached:?}"),
        };
        assert!((24.0..=26.0).contains(&percent), "{percent}");
        let unknown = doubts(
            |record| record.achieved.direct = false,
            |evidence| {
                on_file(evidence);
                evidence.storage_read_bytes = None;
            },
        );
        assert!(unknown.contains(&Doubt::Cached {
            from_storage_percent: None
        }));
        assert!(unknown.contains(&Doubt::NotDirect));
        let fresh = doubts(
            |_| (),
            |evidence| {
                on_file(evidence);
                evidence.storage.never_written = true;
            },
        );
        assert_eq!(fresh, [Doubt::NeverWritten]);
    }

    #[test]
    fn other_ways_of_working_are_told_without_invalidating() {
        let told = doubts(
            |record| {
                record.cell.hipri = true;
                record.cell.jobs = 3;
                record.cell.cipher_throttle_bytes_per_s = Some(1);
                record.achieved.polled = false;
                record.achieved.engine = "io_uring".to_owned();
                record.achieved.registered_buffers = false;
                record.achieved.pinned = false;
                record.achieved.clock = "clock_monotonic".to_owned();
            },
            |evidence| {
                evidence.steal_percent = 7.0;
                evidence.governor = Some("powersave");
            },
        );
        assert_eq!(
            told,
            [
                Doubt::PollingNotPossible,
                Doubt::BuffersNotRegistered,
                Doubt::NotPinned,
                Doubt::CipherThrottled,
                Doubt::SlowClock,
                Doubt::Oversubscribed { jobs: 3, cpus: 2 },
                Doubt::Steal { percent: 7.0 },
                Doubt::Governor {
                    governor: "powersave".to_owned()
                },
            ]
        );
        assert!(!told.iter().any(Doubt::invalidates));
        let refused = doubts(|record| record.achieved.engine = "sync".to_owned(), |_| ());
        assert_eq!(refused, [Doubt::IoUringRefused]);
    }

    #[test]
    fn few_samples_name_the_percentile_that_still_holds() {
        for (ios, trusted_percentile) in [(500, Some(90.0)), (30, Some(50.0)), (5, None)] {
            let few = doubts(
                |record| {
                    let read = record.read.as_mut().unwrap();
                    read.ios = ios;
                    read.slice_ios = vec![ios / 10; 10];
                },
                |_| (),
            );
            let expected = Doubt::FewSamples {
                samples: ios,
                trusted_percentile,
            };
            assert_eq!(few, [expected]);
        }
    }

    #[test]
    fn a_stall_shows_in_the_slices() {
        let stalled = doubts(
            |record| {
                let slices = &mut record.read.as_mut().unwrap().slice_ios;
                slices[2..5].fill(0);
            },
            |_| (),
        );
        assert!(
            matches!(stalled[..], [Doubt::NoisySlices { .. }]),
            "{stalled:?}"
        );
    }
}
