//! Why a policy placed what it placed, and how well it predicted: counters that it keeps for itself.
//!
//! One instance per queue, of fixed size, so that counting is a few additions and nothing is shared. Jobs are
//! put in classes by their length, a factor of four apart. What was predicted is added up when a job is
//! placed, what it took when it ended; the two differ by what is under way.
#![forbid(unsafe_code)]

use super::{Outcome, Placement};

/// Length of the longest job of each size class; the last class has all that are longer.
const CLASS_BYTES: [u32; CLASSES - 1] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Number of size classes.
pub(super) const CLASSES: usize = 6;
const KINDS: usize = 3;

/// Which of the three ways a job can go, whatever the number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlacementKind {
    /// [`Placement::Inline`]
    Inline,
    /// [`Placement::Offload`]
    Offload,
    /// [`Placement::Split`]
    Split,
}

/// Why a job went where it went. Each reason belongs to one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// Inline: no worker has a core to run on.
    NoWorker,
    /// Inline: not all costs are measured yet.
    UnknownCosts,
    /// Inline: the job is not worth a hand-off.
    Small,
    /// Inline: a request that is polled for, and a split does not pay.
    Hipri,
    /// Inline: the only request in flight, and a split does not pay.
    Alone,
    /// Inline: no other job was there to place, and the queue's thread has time for it.
    Single,
    /// Inline: hand-offs were seen to cost the queue's thread more than the job.
    Dear,
    /// Inline: the workers have as much to do as the queue's thread.
    Behind,
    /// Inline: a worker would pay were it awake, but waking one is not paid for yet.
    Asleep,
    /// Inline: the part of a backlog that the queue's thread does itself.
    OwnShare,
    /// Inline: a backlog too small to be shared.
    Tie,
    /// Inline: to see what the queue's thread takes when it does everything.
    Exploring,
    /// Inline: a limit of the policy.
    Limit,
    /// Inline: the device takes so long that a hand-off saves a request nothing to speak of.
    Device,
    /// Offload: the workers' part of a backlog.
    Backlog,
    /// Offload: as [`Reason::Backlog`], where the queue's thread is the bottleneck.
    Bottleneck,
    /// Offload: nobody waits for it.
    ReadAhead,
    /// Offload: the workers' part of a backlog that pays for waking one.
    Waking,
    /// Split: workers are awake.
    AwakeWorkers,
    /// Split: it pays to wake workers for it.
    WakingWorkers,
}

impl PlacementKind {
    /// Every way.
    pub const ALL: [Self; KINDS] = [Self::Inline, Self::Offload, Self::Split];

    /// The name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Offload => "offload",
            Self::Split => "split",
        }
    }
}

impl From<Placement> for PlacementKind {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::Inline => Self::Inline,
            Placement::Offload => Self::Offload,
            Placement::Split(_) => Self::Split,
        }
    }
}

impl Reason {
    /// Every reason, with its name in results and the way that it is a reason for.
    pub const ALL: [(Self, &'static str, PlacementKind); 20] = [
        (Self::NoWorker, "no_worker", PlacementKind::Inline),
        (Self::UnknownCosts, "unknown_costs", PlacementKind::Inline),
        (Self::Small, "small", PlacementKind::Inline),
        (Self::Hipri, "hipri", PlacementKind::Inline),
        (Self::Alone, "alone", PlacementKind::Inline),
        (Self::Single, "single", PlacementKind::Inline),
        (Self::Dear, "dear", PlacementKind::Inline),
        (Self::Behind, "behind", PlacementKind::Inline),
        (Self::Asleep, "asleep", PlacementKind::Inline),
        (Self::OwnShare, "own_share", PlacementKind::Inline),
        (Self::Tie, "tie", PlacementKind::Inline),
        (Self::Exploring, "exploring", PlacementKind::Inline),
        (Self::Limit, "limit", PlacementKind::Inline),
        (Self::Device, "device", PlacementKind::Inline),
        (Self::Backlog, "backlog", PlacementKind::Offload),
        (Self::Bottleneck, "bottleneck", PlacementKind::Offload),
        (Self::ReadAhead, "readahead", PlacementKind::Offload),
        (Self::Waking, "waking", PlacementKind::Offload),
        (Self::AwakeWorkers, "awake_workers", PlacementKind::Split),
        (Self::WakingWorkers, "waking_workers", PlacementKind::Split),
    ];
}

/// What a policy has decided, by length of the job. See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Explanation {
    classes: [Class; CLASSES],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Class {
    jobs: [u64; Reason::ALL.len()],
    predicted_ns: [f64; KINDS],
    ended: [u64; KINDS],
    taken_ns: [u64; KINDS],
}

/// How often jobs of a size class were placed for a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decisions {
    /// Length of the longest job of the class; `None` for the last class.
    pub up_to_bytes: Option<u32>,
    /// Where to.
    pub placement: PlacementKind,
    /// Why: a name of [`Reason::ALL`].
    pub reason: &'static str,
    /// Jobs.
    pub jobs: u64,
}

/// What placing jobs of a size class in one way was predicted to take, and took: from the decision to the
/// moment the queue's thread saw the job done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Length of the longest job of the class; `None` for the last class.
    pub up_to_bytes: Option<u32>,
    /// Where to.
    pub placement: PlacementKind,
    /// Jobs that were placed so.
    pub jobs: u64,
    /// Predicted time, summed over them.
    pub predicted_ns: f64,
    /// Jobs that ended having gone so. Refused by full workers, a job ends inline.
    pub ended: u64,
    /// Time taken, summed over those.
    pub taken_ns: u64,
}

impl Explanation {
    /// Counts a decision about a job of `len_bytes` that is predicted to end after `predicted_ns`.
    #[inline]
    pub fn decided(&mut self, len_bytes: u32, reason: Reason, predicted_ns: f32) {
        let class = &mut self.classes[class_of(len_bytes)];
        class.jobs[reason as usize] += 1;
        class.predicted_ns[reason.kind() as usize] += f64::from(predicted_ns);
    }

    /// Counts the end of a job.
    #[inline]
    pub fn ended(&mut self, outcome: &Outcome) {
        let class = &mut self.classes[class_of(outcome.job.len_bytes)];
        let kind = PlacementKind::from(outcome.placement) as usize;
        class.ended[kind] += 1;
        class.taken_ns[kind] += outcome.total_ns;
    }

    /// What was counted since `earlier`, a copy of the same explanation.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        self.combine(earlier, u64::saturating_sub, |all, before| {
            (all - before).max(0.0)
        });
        self
    }

    /// Adds what another queue's policy has counted.
    pub fn absorb(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add, |one, two| one + two);
    }

    /// Every reason that occurred, by size class.
    pub fn decisions(&self) -> impl Iterator<Item = Decisions> {
        self.classes.iter().enumerate().flat_map(|(index, class)| {
            let counted = Reason::ALL.iter().zip(class.jobs);
            let counted = counted.filter(|(_, jobs)| *jobs > 0);
            counted.map(move |(&(_, reason, placement), jobs)| Decisions {
                up_to_bytes: CLASS_BYTES.get(index).copied(),
                placement,
                reason,
                jobs,
            })
        })
    }

    /// Every way that occurred, by size class.
    pub fn predictions(&self) -> impl Iterator<Item = Prediction> {
        self.classes.iter().enumerate().flat_map(|(index, class)| {
            let ways = PlacementKind::ALL.into_iter().map(move |placement| {
                let of_kind = Reason::ALL.iter().zip(class.jobs);
                let of_kind = of_kind.filter(|((_, _, kind), _)| *kind == placement);
                Prediction {
                    up_to_bytes: CLASS_BYTES.get(index).copied(),
                    placement,
                    jobs: of_kind.map(|(_, jobs)| jobs).sum(),
                    predicted_ns: class.predicted_ns[placement as usize],
                    ended: class.ended[placement as usize],
                    taken_ns: class.taken_ns[placement as usize],
                }
            });
            ways.filter(|way| way.jobs > 0 || way.ended > 0)
        })
    }

    fn combine(&mut self, other: &Self, counts: fn(u64, u64) -> u64, times: fn(f64, f64) -> f64) {
        for (own, other) in self.classes.iter_mut().zip(&other.classes) {
            let pairs = own.jobs.iter_mut().zip(&other.jobs);
            let pairs = pairs.chain(own.ended.iter_mut().zip(&other.ended));
            let pairs = pairs.chain(own.taken_ns.iter_mut().zip(&other.taken_ns));
            pairs.for_each(|(own, other)| *own = counts(*own, *other));
            let sums = own.predicted_ns.iter_mut().zip(&other.predicted_ns);
            sums.for_each(|(own, other)| *own = times(*own, *other));
        }
    }
}

impl Reason {
    /// The way that it is a reason for.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> PlacementKind {
        Self::ALL[self as usize].2
    }
}

/// The size class: half the bits that the length has beyond 4 KiB.
#[inline]
pub(super) fn class_of(len_bytes: u32) -> usize {
    let bits = u32::BITS - len_bytes.saturating_sub(1).leading_zeros();
    (bits.saturating_sub(11) as usize / 2).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Direction, Job};
    use crate::request::Flags;
    use crate::units::SectorIndex;

    fn outcome(len_bytes: u32, placement: Placement, total_ns: u64) -> Outcome {
        Outcome {
            job: Job {
                direction: Direction::Encrypt,
                flags: Flags::empty(),
                sector: SectorIndex::new(0),
                len_bytes,
                max_parts: 1,
            },
            placement,
            cipher_ns: 1,
            device_ns: 0,
            wait_ns: 0,
            total_ns,
        }
    }

    #[test]
    fn lengths_fall_into_the_class_that_says_so() {
        for len in [
            0,
            1,
            512,
            4096,
            4097,
            16_384,
            65_536,
            65_537,
            1 << 20,
            (1 << 20) + 1,
            u32::MAX,
        ] {
            let expected = CLASS_BYTES.iter().position(|most| len <= *most);
            assert_eq!(class_of(len), expected.unwrap_or(CLASSES - 1), "{len}");
        }
    }

    #[test]
    fn the_table_of_reasons_is_in_their_order() {
        for (index, (reason, name, _)) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index, "{name}");
            let same = Reason::ALL.iter().filter(|(_, other, _)| *other == name);
            assert_eq!(same.count(), 1, "{name}");
        }
        for (index, kind) in PlacementKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }

    #[test]
    fn counts_of_a_stretch_of_time_add_up_over_queues() {
        let mut first = Explanation::default();
        first.decided(4096, Reason::Small, 900.0);
        first.ended(&outcome(4096, Placement::Inline, 1_000));
        let before = first;
        first.decided(65_536, Reason::Backlog, 20_000.0);
        first.ended(&outcome(65_536, Placement::Offload, 30_000));
        let mut sum = first.since(&before);
        sum.absorb(&first);
        let decisions: Vec<_> = sum
            .decisions()
            .map(|d| (d.up_to_bytes, d.reason, d.jobs))
            .collect();
        assert_eq!(
            decisions,
            [(Some(4096), "small", 1), (Some(65_536), "backlog", 2)]
        );
        let offloads = sum.predictions().nth(1).unwrap();
        assert_eq!((offloads.jobs, offloads.ended), (2, 2));
        assert_eq!(
            (offloads.predicted_ns, offloads.taken_ns),
            (40_000.0, 60_000)
        );
    }
}
