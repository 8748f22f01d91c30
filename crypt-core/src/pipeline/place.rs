//! The batch of cipher jobs of one step: collected while events are handled, placed by the policy
//! in one call. Fixed room, one job per slot at most.
#![forbid(unsafe_code)]

use super::Token;
use crate::policy::{Job, Load, Placement, Policy};

#[derive(Debug)]
pub(super) struct Jobs {
    tokens: Vec<Token>,
    jobs: Vec<Job>,
    placements: Vec<Placement>,
}

impl Jobs {
    pub(super) fn with_capacity(depth: u32) -> Self {
        let depth = depth as usize;
        Self {
            tokens: Vec::with_capacity(depth),
            jobs: Vec::with_capacity(depth),
            placements: Vec::with_capacity(depth),
        }
    }

    pub(super) fn clear(&mut self) {
        self.tokens.clear();
        self.jobs.clear();
        self.placements.clear();
    }

    pub(super) fn push(&mut self, token: Token, job: Job) {
        self.tokens.push(token);
        self.jobs.push(job);
        self.placements.push(Placement::Inline);
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Asks the policy once for the whole batch.
    pub(super) fn place(&mut self, policy: &mut dyn Policy, load: &Load) {
        policy.place(&self.jobs, load, &mut self.placements);
    }

    /// Token and placement of one job of the batch.
    pub(super) fn placed(&self, index: usize) -> (Token, Placement) {
        (self.tokens[index], self.placements[index])
    }
}
