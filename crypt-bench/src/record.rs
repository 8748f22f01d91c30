//! What a job remembers of each request: latencies, stages, throughput over time.
//!
//! Everything is allocated before the run and fixed in size; recording a request touches three
//! histograms and a few sums. A request belongs to the measurement if it was *submitted* inside the
//! window, whenever it completes: the ramp counts towards nothing, and slow requests at the end are
//! not cut off, which would make the latencies look better than they are.

#![forbid(unsafe_code)]

use crypt_core::pipeline::Timing;
use crypt_core::policy::Placement;

use crate::buckets::Buckets;
use crate::result::{DirectionStats, Distribution, Placements, Stages};
use crate::summary::{self, Moments};

/// Fewest slices of a measurement, where it is long enough.
const MIN_SLICES: u64 = 16;
/// Slices are not longer than this (2^30 ns), unless there would be too many.
const MAX_SLICE_SHIFT: u32 = 30;
/// Most slices of a measurement.
const MAX_SLICES: u64 = 1024;
/// Most slices where their length is asked for.
pub const MAX_ASKED_SLICES: u64 = 65_536;

/// The time span that a measurement covers, on [`crypt_core::clock::Clock`]'s scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First nanosecond.
    pub start_ns: u64,
    /// First nanosecond after it.
    pub end_ns: u64,
    slice_shift: u32,
}

impl Window {
    /// The window of `length_ns` from `start_ns`, cut into slices of a power of two nanoseconds.
    #[must_use]
    pub fn new(start_ns: u64, length_ns: u64) -> Self {
        let slice_shift = (length_ns / MIN_SLICES).max(1).ilog2().min(MAX_SLICE_SHIFT);
        Self::cut(start_ns, length_ns, slice_shift, MAX_SLICES)
    }

    /// The same with slices of `slice_ns`, or the next smaller power of two; longer ones where there would
    /// be more than [`MAX_ASKED_SLICES`].
    #[must_use]
    pub fn sliced(start_ns: u64, length_ns: u64, slice_ns: u64) -> Self {
        Self::cut(
            start_ns,
            length_ns,
            slice_ns.max(1).ilog2(),
            MAX_ASKED_SLICES,
        )
    }

    fn cut(start_ns: u64, length_ns: u64, mut slice_shift: u32, most: u64) -> Self {
        while length_ns >> slice_shift >= most {
            slice_shift += 1;
        }
        Self {
            start_ns,
            end_ns: start_ns.saturating_add(length_ns),
            slice_shift,
        }
    }

    /// The same window, ended at `end_ns`, which is not before its start nor behind its end.
    #[must_use]
    pub fn ended_at(&self, end_ns: u64) -> Self {
        Self {
            end_ns: end_ns.clamp(self.start_ns, self.end_ns),
            ..*self
        }
    }

    /// Length in nanoseconds.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Length of a slice in nanoseconds.
    #[must_use]
    pub fn slice_ns(&self) -> u64 {
        1 << self.slice_shift
    }

    /// Number of slices; the last one may be shorter.
    #[must_use]
    pub fn slices(&self) -> usize {
        // A division would take longer than all else that is looked up per request.
        let whole = self.length_ns() >> self.slice_shift;
        (whole + u64::from(whole << self.slice_shift < self.length_ns())) as usize
    }

    /// The slice that a time falls into, `None` outside the window.
    #[inline]
    #[must_use]
    pub fn slice_of(&self, time_ns: u64) -> Option<usize> {
        let since_ns = time_ns.wrapping_sub(self.start_ns);
        (since_ns < self.length_ns()).then_some((since_ns >> self.slice_shift) as usize)
    }
}

/// Latencies of one kind: a histogram, with exact extremes and moments beside it.
///
/// Short ones are in buckets of one nanosecond, which tell extremes and moments as exactly, so those are
/// kept of the others only.
#[derive(Clone, Debug)]
struct Latency {
    buckets: Buckets,
    /// Of values without a bucket of their own, as all that follows.
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    sum_squares_ns2: u128,
}

impl Latency {
    fn new() -> Self {
        Self {
            buckets: Buckets::new(),
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
            sum_squares_ns2: 0,
        }
    }

    #[inline]
    fn record(&mut self, value_ns: u64) {
        if !self.buckets.record(value_ns) {
            self.note(value_ns);
        }
    }

    fn note(&mut self, value_ns: u64) {
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        self.sum_ns += u128::from(value_ns);
        self.sum_squares_ns2 += u128::from(value_ns) * u128::from(value_ns);
    }

    fn absorb(&mut self, other: &Self) {
        self.buckets.absorb(&other.buckets);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
        self.sum_squares_ns2 += other.sum_squares_ns2;
    }

    /// Smallest, largest, sum and sum of squares of all values.
    fn totals(&self) -> (u64, u64, u128, u128) {
        let kept = (self.min_ns, self.max_ns, self.sum_ns, self.sum_squares_ns2);
        let exact = self.buckets.exact();
        exact.fold(kept, |(min, max, sum, squares), (value_ns, count)| {
            let (value, count) = (u128::from(value_ns), u128::from(count));
            (
                min.min(value_ns),
                max.max(value_ns),
                sum + count * value,
                squares + count * value * value,
            )
        })
    }

    /// `samples` is the number of values recorded.
    fn distribution(&self, samples: u64) -> Option<Distribution> {
        let n = u128::from(samples);
        let (min_ns, max_ns, sum_ns, sum_squares_ns2) = self.totals();
        let whole_mean_ns = sum_ns.checked_div(n)?;
        // Sum of (x - m)^2 with the integer m below the mean is exact; the rest of the mean, below
        // one, is taken off in floating point.
        let about_whole =
            sum_squares_ns2 + n * whole_mean_ns * whole_mean_ns - 2 * whole_mean_ns * sum_ns;
        let rest = (sum_ns - n * whole_mean_ns) as f64 / samples as f64;
        let moments = Moments {
            samples,
            over_range_samples: self.buckets.over_range(),
            min_ns,
            max_ns,
            mean_ns: whole_mean_ns as f64 + rest,
            squares_ns2: (about_whole as f64 - samples as f64 * rest * rest).max(0.0),
        };
        summary::distribution(&self.buckets.to_histogram(), &moments)
    }
}

/// Times of one kind.
#[derive(Clone, Debug)]
pub struct Times {
    samples: u64,
    latency: Latency,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            samples: 0,
            latency: Latency::new(),
        }
    }
}

impl Times {
    /// Records one, in nanoseconds.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.samples += 1;
        self.latency.record(value_ns);
    }

    /// Adds those of another job.
    pub fn absorb(&mut self, other: &Self) {
        self.samples += other.samples;
        self.latency.absorb(&other.latency);
    }

    /// The figures; `None` where nothing was recorded.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        self.latency.distribution(self.samples)
    }
}

/// Everything about the requests of one direction in one job.
#[derive(Clone, Debug)]
pub struct DirectionRecorder {
    ios: u64,
    bytes: u64,
    slat: Latency,
    clat: Latency,
    lat: Latency,
    wait_ns: u64,
    cipher_ns: u64,
    device_ns: u64,
    placements: Placements,
    slice_ios: Box<[u64]>,
}

impl DirectionRecorder {
    /// An empty recorder for this window.
    #[must_use]
    pub fn new(window: &Window) -> Self {
        Self {
            ios: 0,
            bytes: 0,
            slat: Latency::new(),
            clat: Latency::new(),
            lat: Latency::new(),
            wait_ns: 0,
            cipher_ns: 0,
            device_ns: 0,
            placements: Placements::default(),
            slice_ios: vec![0; window.slices()].into_boxed_slice(),
        }
    }

    /// An empty recorder for the same window.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self {
            slice_ios: vec![0; self.slice_ios.len()].into_boxed_slice(),
            ..Self::new(&Window::new(0, 1))
        }
    }

    /// Records a completed request that was submitted in `slice`.
    #[inline(always)]
    pub fn record(&mut self, timing: &Timing, bytes: u64, slice: usize) {
        self.ios += 1;
        self.bytes += bytes;
        if let Some(ios) = self.slice_ios.get_mut(slice) {
            *ios += 1;
        }
        let issued_ns = timing.issued_ns.max(timing.submitted_ns);
        let completed_ns = timing.completed_ns.max(issued_ns);
        self.slat.record(issued_ns - timing.submitted_ns);
        self.clat.record(completed_ns - issued_ns);
        self.lat.record(completed_ns - timing.submitted_ns);
        self.wait_ns += timing.wait_ns;
        self.cipher_ns += timing.cipher_ns;
        self.device_ns += timing.device_ns;
        match timing.placement {
            Some(Placement::Inline) => self.placements.inline += 1,
            Some(Placement::Offload) => self.placements.offload += 1,
            Some(Placement::Split(_)) => self.placements.split += 1,
            None => {}
        }
    }

    /// Adds another job's requests of the same window.
    pub fn absorb(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.slat.absorb(&other.slat);
        self.clat.absorb(&other.clat);
        self.lat.absorb(&other.lat);
        self.wait_ns += other.wait_ns;
        self.cipher_ns += other.cipher_ns;
        self.device_ns += other.device_ns;
        self.placements = self.placements.plus(other.placements);
        for (ios, more) in self.slice_ios.iter_mut().zip(&other.slice_ios) {
            *ios += more;
        }
    }

    /// Completed requests.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.ios
    }

    /// Transferred bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the cipher ran.
    #[must_use]
    pub fn placements(&self) -> Placements {
        self.placements
    }

    /// Time at the device, summed over the requests, in nanoseconds.
    #[must_use]
    pub fn device_ns(&self) -> u64 {
        self.device_ns
    }

    /// The figures; `None` where nothing completed.
    #[must_use]
    pub fn stats(&self, window: &Window) -> Option<DirectionStats> {
        let seconds = window.length_ns().max(1) as f64 / 1e9;
        let ios = self.ios as f64;
        let lat = self.lat.distribution(self.ios)?;
        let means = [self.wait_ns, self.cipher_ns, self.device_ns].map(|sum| sum as f64 / ios);
        let [wait_ns_mean, cipher_ns_mean, device_ns_mean] = means;
        Some(DirectionStats {
            ios: self.ios,
            bytes: self.bytes,
            bw_bytes_per_s: self.bytes as f64 / seconds,
            iops: ios / seconds,
            slat: self.slat.distribution(self.ios)?,
            clat: self.clat.distribution(self.ios)?,
            stages: Some(Stages {
                wait_ns_mean,
                dispatch_ns_mean: (lat.mean_ns - means.iter().sum::<f64>()).max(0.0),
                cipher_ns_mean,
                device_ns_mean,
            }),
            lat,
            slice_ios: self.slice_ios.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn timing(submitted_ns: u64, slat_ns: u64, clat_ns: u64) -> Timing {
        Timing {
            submitted_ns,
            issued_ns: submitted_ns + slat_ns,
            completed_ns: submitted_ns + slat_ns + clat_ns,
            cipher_ns: 10,
            wait_ns: 0,
            device_ns: clat_ns,
            placement: Some(Placement::Inline),
        }
    }

    proptest! {
        #[test]
        fn every_time_in_the_window_has_a_slice(start_ns in 0_u64..1 << 60, length_ns in 1_u64..1 << 50, at in 0.0..1.0) {
            let window = Window::new(start_ns, length_ns);
            let time_ns = start_ns + (length_ns as f64 * at) as u64;
            prop_assert!(window.slice_of(time_ns).is_some_and(|slice| slice < window.slices()));
            prop_assert_eq!(window.slice_of(start_ns.wrapping_sub(1)), None);
            prop_assert_eq!(window.slice_of(window.end_ns), None);
            prop_assert!(window.slices() <= 1024);
        }

        #[test]
        fn jobs_add_up(left in proptest::collection::vec(0_u64..1 << 30, 1..50), right in proptest::collection::vec(0_u64..1 << 30, 1..50)) {
            let window = Window::new(0, 1_000_000_000);
            let record = |samples: &[u64]| {
                let mut recorder = DirectionRecorder::new(&window);
                for &sample in samples {
                    recorder.record(&timing(5, 3, sample), 4096, 0);
                }
                recorder
            };
            let mut sum = record(&left);
            sum.absorb(&record(&right));
            let whole = record(&[left, right].concat());
            prop_assert_eq!(sum.stats(&window), whole.stats(&window));
        }
    }

    #[test]
    fn slices_can_be_asked_for() {
        let window = Window::sliced(7, 6_000_000_000, 10_000_000);
        assert_eq!((window.slice_ns(), window.slices()), (1 << 23, 716));
        assert_eq!(window.slice_of(7 + (1 << 23)), Some(1));
        let most = Window::sliced(0, 3_600_000_000_000, 1);
        assert!(most.slices() as u64 <= MAX_ASKED_SLICES);
    }

    #[test]
    fn moments_are_exact_where_floating_point_would_cancel() {
        let window = Window::new(0, 1_000_000_000);
        let mut recorder = DirectionRecorder::new(&window);
        for n in 0..1000 {
            recorder.record(&timing(0, 0, 50_000_000_000 + n % 2), 1, 0);
        }
        let clat = recorder.stats(&window).unwrap().clat;
        assert_eq!(clat.mean_ns, 50_000_000_000.5);
        assert!((clat.stddev_ns - 0.5).abs() < 1e-9, "{}", clat.stddev_ns);
    }

    #[test]
    fn short_and_long_latencies_make_one_distribution() {
        let window = Window::new(0, 1_000_000_000);
        let mut recorder = DirectionRecorder::new(&window);
        for clat_ns in [3, 5, 2047, 2048, 1_000_001, 0] {
            recorder.record(&timing(0, 0, clat_ns), 1, 0);
        }
        let clat = recorder.stats(&window).unwrap().clat;
        assert_eq!((clat.min_ns, clat.max_ns), (0, 1_000_001));
        assert_eq!(clat.mean_ns, 1_004_104.0 / 6.0);
        let squares =
            [3.0_f64, 5.0, 2047.0, 2048.0, 1_000_001.0, 0.0].map(|ns| (ns - clat.mean_ns).powi(2));
        let stddev_ns = (squares.iter().sum::<f64>() / 6.0).sqrt();
        assert!(
            (clat.stddev_ns / stddev_ns - 1.0).abs() < 1e-9,
            "{} {stddev_ns}",
            clat.stddev_ns
        );
    }

    #[test]
    fn a_latency_beyond_the_range_is_counted_and_is_the_maximum() {
        let window = Window::new(0, 1_000_000_000);
        let mut recorder = DirectionRecorder::new(&window);
        recorder.record(&timing(0, 0, 90_000_000_000), 1, 0);
        let clat = recorder.stats(&window).unwrap().clat;
        assert_eq!(clat.over_range_samples, 1);
        assert_eq!(
            (clat.p50_ns, clat.max_ns),
            (Some(90_000_000_000), 90_000_000_000)
        );
    }

    #[test]
    fn nothing_recorded_has_no_figures() {
        let window = Window::new(0, 1_000);
        assert_eq!(DirectionRecorder::new(&window).stats(&window), None);
    }
}
