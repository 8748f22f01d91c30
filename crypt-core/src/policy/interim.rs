#![forbid(unsafe_code)]
//! Stands in until the policies land: everything inline, costs as given.

use super::{Costs, Job, Load, OffloadRules, Outcome, Placement, Policy};

/// Costs as given at start.
#[derive(Debug, Clone, Copy)]
pub struct CostTracker(Costs);

impl CostTracker {
    /// Starts from these costs.
    #[must_use]
    pub fn new(costs: Costs) -> Self {
        Self(costs)
    }

    /// Learns nothing yet.
    pub fn observe(&mut self, _: &Outcome) {}

    /// The costs.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.0
    }
}

/// Which policy.
#[derive(Debug, Clone, Default)]
pub enum PolicySpec {
    /// On the queue's thread.
    #[default]
    Inline,
}

impl PolicySpec {
    /// A fresh policy for one queue.
    #[must_use]
    pub fn build(&self) -> Box<dyn Policy> {
        Box::new(Inline)
    }
}

#[derive(Debug)]
struct Inline;

impl Policy for Inline {
    fn name(&self) -> String {
        "inline".into()
    }
    fn place(&mut self, _: &[Job], _: &Load, _: &mut [Placement]) {}
    fn observe(&mut self, _: &Outcome) {}
    fn offload_rules(&self) -> OffloadRules {
        OffloadRules::default()
    }
}
