//! The kernel's `null_blk`, which moves no data: what is left is how completions come.
//!
//! `irqmode` and `completion_nsec` as in `Documentation/block/null_blk.rst`: 0 completes in the call that
//! submits, 1 (the default) by a soft interrupt, 2 by a timer per request, 10,000 ns by default. A queue has
//! `hw_queue_depth` tags, 64 by default; what finds none waits for one. What a soft interrupt takes is an
//! estimate of ours.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// From raising a soft interrupt to the completion.
const SOFTIRQ_NS: u64 = 1_000;
/// `completion_nsec`.
const COMPLETION_NS: u64 = 10_000;
/// Longest `completion_nsec` that is taken: a second.
const MOST_COMPLETION_NS: u64 = 1_000_000_000;
/// `hw_queue_depth`.
const TAGS: usize = 64;

/// How completions come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IrqMode {
    None,
    Softirq,
    Timer { completion_ns: u64 },
}

impl IrqMode {
    /// The mode of this name, the kernel's default where there is none; `None` where it is not one.
    pub(super) fn named(name: Option<&str>) -> Option<Self> {
        match name {
            None | Some("softirq") => Some(Self::Softirq),
            Some("none") => Some(Self::None),
            Some("timer") => Some(Self::Timer {
                completion_ns: COMPLETION_NS,
            }),
            Some(other) => {
                let completion_ns = other.strip_prefix("timer:")?.parse().ok()?;
                let is_sane = (1..=MOST_COMPLETION_NS).contains(&completion_ns);
                is_sane.then_some(Self::Timer { completion_ns })
            }
        }
    }
}

/// A `null_blk` device with its state.
#[derive(Clone, Debug)]
pub(super) struct NullBlkModel {
    latency_ns: u64,
    /// When the requests end that have a tag, in order.
    ends_ns: VecDeque<u64>,
}

impl NullBlkModel {
    pub(super) fn new(mode: IrqMode) -> Self {
        Self {
            latency_ns: match mode {
                IrqMode::None => 0,
                IrqMode::Softirq => SOFTIRQ_NS,
                IrqMode::Timer { completion_ns } => completion_ns,
            },
            ends_ns: VecDeque::with_capacity(TAGS),
        }
    }

    /// When a request completes, whatever it is.
    pub(super) fn admit(&mut self, now_ns: u64) -> u64 {
        let mut start_ns = now_ns;
        if self.ends_ns.len() == TAGS {
            let freed_ns = self.ends_ns.pop_front().unwrap_or(now_ns);
            start_ns = start_ns.max(freed_ns);
        }
        let end_ns = start_ns.saturating_add(self.latency_ns);
        self.ends_ns.push_back(end_ns);
        end_ns
    }
}
