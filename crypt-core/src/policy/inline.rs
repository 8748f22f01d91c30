//! Everything on the queue's own thread: no hand-off, no wake-up, one core per queue.
//!
//! What dm-crypt does with `no_read_workqueue no_write_workqueue`.
#![forbid(unsafe_code)]

use super::{Job, Load, OffloadRules, Outcome, Placement, Policy};

/// The policy `inline`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Policy for Inline {
    fn name(&self) -> String {
        "inline".to_owned()
    }

    fn place(&mut self, _jobs: &[Job], _load: &Load, placements: &mut [Placement]) {
        placements.fill(Placement::Inline);
    }

    fn observe(&mut self, _outcome: &Outcome) {}

    fn offload_rules(&self) -> OffloadRules {
        OffloadRules::default()
    }
}
