//! What the policy is asked for: an objective, which is a pair of weights in its cost equation, and limits.
//!
//! In writing they follow a colon, between commas: `adaptive:latency,max_workers=2,max_cpu=50`. Parsing and
//! printing are inverse but for `balanced`, which is what nothing means.
#![forbid(unsafe_code)]

use std::fmt;
use std::num::{NonZeroU8, NonZeroU16};

use crate::error::{Error, ErrorKind, Result};

/// What the policy makes least. See the cost equation in the documentation of [`Adaptive`](super::Adaptive).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Objective {
    /// Time until requests end, as far as CPU time spent on that is worth it.
    #[default]
    Balanced,
    /// Time until requests end, at nearly any price in CPU time.
    Latency,
    /// Time that the cores need per request: requests in flight share the workers instead of each being
    /// split over all of them.
    Throughput,
    /// CPU time per byte. What moves to another core takes more of it than what stays, so as long as that
    /// holds everything stays.
    Efficiency,
}

/// The weights of an objective in the cost equation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights {
    /// pi: what a ns of CPU time beyond that of `inline` costs, in ns of a request's time.
    cpu_price: f32,
    /// omega: how far the other requests in flight count as users of the same workers, from 0 to 1.
    sharing: f32,
}

/// An objective and limits of the policy `adaptive`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AdaptiveOptions {
    objective: Objective,
    max_workers: Option<NonZeroU16>,
    max_cpu_percent: Option<NonZeroU8>,
}

impl Objective {
    /// Every objective, the default first.
    pub const ALL: [Self; 4] = [
        Self::Balanced,
        Self::Latency,
        Self::Throughput,
        Self::Efficiency,
    ];

    /// The name in writing.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::Efficiency => "efficiency",
        }
    }

    pub(super) const fn weights(self) -> Weights {
        let (cpu_price, sharing) = match self {
            Self::Balanced => (1.0, 0.0),
            Self::Latency => (0.25, 0.0),
            Self::Throughput => (0.5, 1.0),
            Self::Efficiency => (4.0, 0.0),
        };
        Weights { cpu_price, sharing }
    }
}

impl Weights {
    /// How many times its hand-off a job must cost to be handed off whole, whose data then cross to another
    /// core for a third of its time: c > s + pi c / 3. Infinite where that never holds.
    pub(super) fn worth_handing_off(&self) -> f32 {
        let left = 3.0 - self.cpu_price;
        if left > 0.0 {
            3.0 / left
        } else {
            f32::INFINITY
        }
    }

    /// The share of its own time within which a split job must be expected to end, where its data cross for
    /// a quarter of it: T + s + h < c - pi c / 4.
    pub(super) fn worth_splitting(&self) -> f32 {
        (1.0 - self.cpu_price / 4.0).max(0.0)
    }

    /// What a wake-up that takes `wake_ns` must have been worth to be paid for.
    pub(super) fn wake_price_ns(&self, wake_ns: f32) -> f32 {
        self.cpu_price * wake_ns
    }

    /// 1 / u, the part of the workers that one of the requests in flight counts on.
    pub(super) fn part_of_team(&self, in_flight: u32) -> f32 {
        1.0 / (1.0 + self.sharing * in_flight.saturating_sub(1) as f32)
    }
}

impl AdaptiveOptions {
    /// What can stand behind the colon, for messages.
    pub(in crate::policy) const FLAGS: [&'static str; 6] = [
        "balanced",
        "latency",
        "throughput",
        "efficiency",
        "max_workers=N",
        "max_cpu=PERCENT",
    ];

    /// Balanced, without limits.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            objective: Objective::Balanced,
            max_workers: None,
            max_cpu_percent: None,
        }
    }

    /// The same with this objective.
    #[must_use]
    pub const fn with_objective(self, objective: Objective) -> Self {
        Self { objective, ..self }
    }

    /// The same with at most this many workers busy for a queue at a time.
    #[must_use]
    pub const fn with_max_workers(self, workers: NonZeroU16) -> Self {
        Self {
            max_workers: Some(workers),
            ..self
        }
    }

    /// The same with at most this share of the pool's time; `None` above 100.
    #[must_use]
    pub const fn with_max_cpu_percent(self, percent: NonZeroU8) -> Option<Self> {
        if percent.get() > 100 {
            return None;
        }
        Some(Self {
            max_cpu_percent: Some(percent),
            ..self
        })
    }

    /// What is made least.
    #[must_use]
    pub const fn objective(&self) -> Objective {
        self.objective
    }

    /// Most workers that are busy for one queue at a time: no more parts of its requests are at the workers
    /// than this, where the pool has more workers.
    #[must_use]
    pub const fn max_workers(&self) -> Option<NonZeroU16> {
        self.max_workers
    }

    /// Largest share of the pool's time for one queue, in percent from 1 to 100: the time that is worked on
    /// what it handed off, over any stretch of time, is at most this share of the stretch and 10 ms more, times
    /// the number of workers.
    #[must_use]
    pub const fn max_cpu_percent(&self) -> Option<NonZeroU8> {
        self.max_cpu_percent
    }

    /// Reads what stands behind the colon.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what is no flag, for a value out of range, and for what contradicts
    /// something before it.
    pub(in crate::policy) fn parse(flags: &str) -> Result<Self> {
        let (mut options, mut objective) = (Self::default(), None);
        for flag in flags.split(',') {
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (flag, None),
            };
            match (name, value) {
                ("max_workers", value) => {
                    once(options.max_workers.is_some(), name)?;
                    options.max_workers = Some(number(flag, value, u16::MAX)?);
                }
                ("max_cpu", value) => {
                    once(options.max_cpu_percent.is_some(), name)?;
                    let percent = number(flag, value, 100)?;
                    options.max_cpu_percent = NonZeroU8::new(percent.get() as u8);
                }
                (name, None) => {
                    let named = Objective::ALL.into_iter().find(|o| o.name() == name);
                    let named = named.ok_or_else(|| unknown(flag))?;
                    if let Some(other) = objective.filter(|other| *other != named) {
                        return Err(two_objectives(other, named));
                    }
                    objective = Some(named);
                }
                _ => return Err(unknown(flag)),
            }
        }
        Ok(options.with_objective(objective.unwrap_or_default()))
    }
}

impl fmt::Display for AdaptiveOptions {
    /// The flags between commas; nothing where nothing is asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Some(self.objective).filter(|objective| *objective != Objective::default());
        let parts = [
            named.map(|objective| objective.name().to_owned()),
            self.max_workers.map(|n| format!("max_workers={n}")),
            self.max_cpu_percent
                .map(|percent| format!("max_cpu={percent}")),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(","))
    }
}

fn number(flag: &str, value: Option<&str>, most: u16) -> Result<NonZeroU16> {
    let name = flag.split('=').next().unwrap_or(flag);
    let digits = value.filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok());
    number.filter(|number: &NonZeroU16| number.get() <= most).ok_or_else(|| {
        bad(format!(
            "'{flag}' of the policy 'adaptive' needs a whole number from 1 to {most}: {name}={most}"
        ))
    })
}

fn once(given: bool, name: &str) -> Result<()> {
    if given {
        return Err(bad(format!(
            "the policy 'adaptive' has {name} twice; keep one of them"
        )));
    }
    Ok(())
}

fn two_objectives(one: Objective, other: Objective) -> Error {
    let (one, other) = (one.name(), other.name());
    bad(format!(
        "the policy 'adaptive' has one objective, not both '{one}' and '{other}'; to compare them list \
         adaptive:{one} and adaptive:{other}"
    ))
}

fn unknown(flag: &str) -> Error {
    let known = AdaptiveOptions::FLAGS.join(", ");
    bad(format!(
        "the policy 'adaptive' has no flag '{flag}'; there are {known}"
    ))
}

fn bad(context: String) -> Error {
    Error::new(ErrorKind::InvalidInput, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_balanced_weights_are_three_halves_and_three_quarters() {
        let weights = Objective::Balanced.weights();
        assert_eq!(weights.worth_handing_off(), 1.5);
        assert_eq!(weights.worth_splitting(), 0.75);
        assert_eq!(weights.wake_price_ns(33_000.0), 33_000.0);
        assert_eq!(weights.part_of_team(32), 1.0);
    }

    #[test]
    fn what_cpu_time_costs_orders_the_objectives() {
        let worth = |objective: Objective| {
            let weights = objective.weights();
            (weights.worth_handing_off(), weights.worth_splitting())
        };
        let order = [
            Objective::Latency,
            Objective::Throughput,
            Objective::Balanced,
            Objective::Efficiency,
        ];
        for pair in order.windows(2) {
            let ((low, wide), (high, narrow)) = (worth(pair[0]), worth(pair[1]));
            assert!(low < high && wide > narrow, "{pair:?}");
        }
        assert_eq!(worth(Objective::Efficiency), (f32::INFINITY, 0.0));
    }

    #[test]
    fn requests_in_flight_share_the_team_where_that_counts() {
        assert_eq!(Objective::Throughput.weights().part_of_team(1), 1.0);
        assert_eq!(Objective::Throughput.weights().part_of_team(4), 0.25);
        assert_eq!(Objective::Latency.weights().part_of_team(4), 1.0);
        assert_eq!(Objective::Throughput.weights().part_of_team(0), 1.0);
    }
}
