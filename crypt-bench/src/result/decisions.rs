//! Why a policy placed what it placed, and how well it predicted, as results have it.

#![forbid(unsafe_code)]

use crypt_core::policy::Explanation;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Achieved;

/// How often the policy placed cipher work of a size class for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct DecisionCount {
    /// Length of the longest job of the class; null for the class of all that are longer.
    pub up_to_bytes: Option<u64>,
    /// Where to: `inline`, `offload` or `split`.
    pub placement: String,
    /// Why: `small`, `alone`, `own_share`, `backlog`, ...
    pub reason: String,
    /// Jobs, one for each request but for those that are done in chunks.
    pub jobs: u64,
}

/// What the policy predicted for cipher work of a size class that it placed in one way, and what it took: from
/// the decision until the queue's thread saw it done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PredictedTime {
    /// Length of the longest job of the class; null for the class of all that are longer.
    pub up_to_bytes: Option<u64>,
    /// Where to: `inline`, `offload` or `split`.
    pub placement: String,
    /// Jobs that were placed so.
    pub jobs: u64,
    /// Predicted time of those; null where there are none.
    pub predicted_ns_mean: Option<f64>,
    /// Jobs that ended having gone so. Those that full workers refused end inline.
    pub ended: u64,
    /// Time that those took; null where there are none.
    pub taken_ns_mean: Option<f64>,
}

impl Achieved {
    /// Takes over what the policies of all queues have counted.
    #[must_use]
    pub fn explained(mut self, explanation: Option<&Explanation>) -> Self {
        let Some(explanation) = explanation else {
            return self;
        };
        let decisions = explanation.decisions().map(|counted| DecisionCount {
            up_to_bytes: counted.up_to_bytes.map(u64::from),
            placement: counted.placement.name().to_owned(),
            reason: counted.reason.to_owned(),
            jobs: counted.jobs,
        });
        let mean = |sum_ns: f64, jobs: u64| (jobs > 0).then(|| sum_ns / jobs as f64);
        let predictions = explanation.predictions().map(|way| PredictedTime {
            up_to_bytes: way.up_to_bytes.map(u64::from),
            placement: way.placement.name().to_owned(),
            jobs: way.jobs,
            predicted_ns_mean: mean(way.predicted_ns, way.jobs),
            ended: way.ended,
            taken_ns_mean: mean(way.taken_ns as f64, way.ended),
        });
        self.decisions = decisions.collect();
        self.predictions = predictions.collect();
        self
    }
}
