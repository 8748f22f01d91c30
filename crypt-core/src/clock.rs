//! Nanosecond time stamps for the data path: the time stamp counter where it can be trusted,
//! otherwise the monotonic clock.
//!
//! A [`Clock`] is calibrated once and copied freely; all clocks made by [`Clock::monotonic`] in one
//! process share one calibration, so stamps from different threads can be subtracted.
//! The counter counts at a constant rate, not CPU cycles: label it as TSC ticks.

#![forbid(unsafe_code)]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::sys;

/// How long the counter is compared with the monotonic clock.
const CALIBRATION: Duration = Duration::from_millis(20);

/// Source of time stamps. `Copy`, no allocation, never goes back on one thread.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    /// Nanoseconds per tick as a 32.32 fixed-point number.
    Tsc {
        ns_per_tick_q32: u64,
    },
    Instant {
        origin: Instant,
    },
}

impl Clock {
    /// The process-wide clock; the first call takes about 20 ms to calibrate it.
    #[must_use]
    pub fn monotonic() -> Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(|| {
            Self::from_tsc().unwrap_or(Self {
                source: Source::Instant {
                    origin: Instant::now(),
                },
            })
        })
    }

    /// Nanoseconds since some moment before the calibration, the same one for all stamps of a process.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match self.source {
            Source::Tsc { ns_per_tick_q32 } => {
                ((u128::from(sys::tsc()) * u128::from(ns_per_tick_q32)) >> 32) as u64
            }
            Source::Instant { origin } => origin.elapsed().as_nanos() as u64,
        }
    }

    /// `tsc` or `clock_monotonic`, for results.
    #[must_use]
    pub fn source(&self) -> &'static str {
        match self.source {
            Source::Tsc { .. } => "tsc",
            Source::Instant { .. } => "clock_monotonic",
        }
    }

    /// Ticks of the counter per nanosecond, where the counter is the source.
    #[must_use]
    pub fn ticks_per_ns(&self) -> Option<f64> {
        match self.source {
            Source::Tsc { ns_per_tick_q32 } => Some((1_u64 << 32) as f64 / ns_per_tick_q32 as f64),
            Source::Instant { .. } => None,
        }
    }

    /// `None` where the counter is absent, not invariant, or runs at an absurd rate.
    fn from_tsc() -> Option<Self> {
        if !sys::has_invariant_tsc() {
            return None;
        }
        let (start_ticks, start) = (sys::tsc(), Instant::now());
        std::thread::sleep(CALIBRATION);
        let (end_ticks, elapsed_ns) = (sys::tsc(), start.elapsed().as_nanos());
        let ticks = u128::from(end_ticks.checked_sub(start_ticks)?);
        if ticks == 0 {
            return None;
        }
        let ns_per_tick_q32 = u64::try_from((elapsed_ns << 32) / ticks).ok()?;
        // Between 100 MHz and 10 GHz.
        let plausible = (1_u64 << 32) / 10..=(1_u64 << 32) * 10;
        let source = Source::Tsc { ns_per_tick_q32 };
        plausible
            .contains(&ns_per_tick_q32)
            .then_some(Self { source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_monotonic_clock() {
        let clock = Clock::monotonic();
        let (start_ns, start) = (clock.now_ns(), Instant::now());
        std::thread::sleep(Duration::from_millis(50));
        let (stamp_ns, elapsed_ns) = (clock.now_ns() - start_ns, start.elapsed().as_nanos() as u64);
        assert!(
            stamp_ns.abs_diff(elapsed_ns) < elapsed_ns / 50,
            "{stamp_ns} {elapsed_ns}"
        );
    }
}
