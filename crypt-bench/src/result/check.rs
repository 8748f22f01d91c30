//! Whether the figures of a record can be of one run at all: read from a file, they are anything.
//!
//! What passes can be added up, scaled and drawn. Pure.

#![forbid(unsafe_code)]

use super::{DirectionStats, Distribution, ResultRecord};

/// Most that anything was ever counted or timed: what a number of JSON holds exactly. In nanoseconds, 104 days.
const MOST: u64 = 1 << 53;

impl ResultRecord {
    /// Looks for figures that no run has.
    ///
    /// # Errors
    /// The first one, by its name.
    pub fn check(&self) -> Result<(), String> {
        let placements = &self.achieved.placements;
        let counts = [
            ("sequence", self.sequence),
            ("started_unix_ms", self.started_unix_ms),
            ("slice_ns", self.slice_ns),
            ("achieved.runtime_ns", self.achieved.runtime_ns),
            ("achieved.errors", self.achieved.errors),
            ("placements.inline", placements.inline),
            ("placements.offload", placements.offload),
            ("placements.split", placements.split),
            ("block_size_bytes", self.cell.block_size_bytes),
            ("runtime_ms", self.cell.runtime_ms),
            ("ramp_ms", self.cell.ramp_ms),
        ];
        counts
            .into_iter()
            .try_for_each(|(name, value)| count(name, value))?;
        for decision in &self.achieved.decisions {
            count("decisions.jobs", decision.jobs)?;
        }
        for times in &self.achieved.predictions {
            count("predictions.jobs", times.jobs)?;
            count("predictions.ended", times.ended)?;
            let means = [times.predicted_ns_mean, times.taken_ns_mean];
            let known = means.into_iter().flatten();
            known
                .into_iter()
                .try_for_each(|ns| figure("predictions.ns_mean", ns))?;
        }
        let figures = [
            ("achieved.depth_mean", self.achieved.depth_mean),
            (
                "achieved.device_depth_mean",
                self.achieved.device_depth_mean,
            ),
            ("cpu.total_s", self.cpu.total_s),
            ("cpu.user_s", self.cpu.user_s),
            ("cpu.system_s", self.cpu.system_s),
        ];
        figures
            .into_iter()
            .try_for_each(|(name, value)| figure(name, value))?;
        for (name, stats) in [("read", &self.read), ("write", &self.write)] {
            if let Some(stats) = stats {
                direction(stats).map_err(|why| format!("{name}.{why}"))?;
            }
        }
        Ok(())
    }
}

fn direction(stats: &DirectionStats) -> Result<(), String> {
    count("ios", stats.ios)?;
    count("bytes", stats.bytes)?;
    figure("iops", stats.iops)?;
    figure("bw_bytes_per_s", stats.bw_bytes_per_s)?;
    let slices = stats.slice_ios.iter();
    count(
        "slice_ios",
        slices.fold(0, |sum, ios| sum.saturating_add(*ios)),
    )?;
    for (name, latency) in [
        ("slat", &stats.slat),
        ("clat", &stats.clat),
        ("lat", &stats.lat),
    ] {
        distribution(latency).map_err(|why| format!("{name}.{why}"))?;
    }
    Ok(())
}

fn distribution(latency: &Distribution) -> Result<(), String> {
    count("samples", latency.samples)?;
    count("over_range_samples", latency.over_range_samples)?;
    count("max_ns", latency.max_ns)?;
    figure("mean_ns", latency.mean_ns)?;
    figure("stddev_ns", latency.stddev_ns)?;
    if latency.rising_ns().is_sorted() {
        return Ok(());
    }
    Err("min_ns, percentiles and max_ns don't rise, which those of one distribution do".to_owned())
}

fn count(name: &str, value: u64) -> Result<(), String> {
    figure(name, value as f64)
}

fn figure(name: &str, value: f64) -> Result<(), String> {
    if (0.0..=MOST as f64).contains(&value) {
        return Ok(());
    }
    Err(format!(
        "{name}: {value} is beyond what a run can have, 0 to {MOST}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::DecisionCount;
    use crate::testing::{cell, record};

    #[test]
    fn figures_that_no_run_has_are_named() {
        let good = record(cell("inline", 4096, 1), 1, 1e9);
        assert_eq!(good.check(), Ok(()));
        let changed = |change: fn(&mut ResultRecord)| {
            let mut record = good.clone();
            change(&mut record);
            record.check().unwrap_err()
        };
        for (change, name) in [
            (
                (|record| record.achieved.runtime_ns = u64::MAX) as fn(&mut ResultRecord),
                "achieved.runtime_ns",
            ),
            (|record| record.cpu.user_s = f64::NAN, "cpu.user_s"),
            (
                |record| {
                    record.achieved.decisions.push(DecisionCount {
                        up_to_bytes: None,
                        placement: String::new(),
                        reason: String::new(),
                        jobs: u64::MAX,
                    });
                },
                "decisions.jobs",
            ),
            (
                |record| record.achieved.depth_mean = -1.0,
                "achieved.depth_mean",
            ),
            (
                |record| record.read.as_mut().unwrap().lat.samples = u64::MAX,
                "read.lat.samples",
            ),
            (
                |record| record.read.as_mut().unwrap().slat.min_ns = u64::MAX,
                "read.slat.min_ns",
            ),
            (
                |record| record.read.as_mut().unwrap().slice_ios = vec![u64::MAX, 1],
                "read.slice_ios",
            ),
        ] {
            let why = changed(change);
            assert!(why.starts_with(name), "{why}");
        }
    }
}
