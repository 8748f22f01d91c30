//! The batch of cipher jobs of one step: collected while events are handled, placed by the policy
//! in one call. Fixed room, one job per slot at most.
#![forbid(unsafe_code)]

use super::Token;
use super::slots::Slots;
use crate::policy::{Job, Load, Placement, Policy};

#[derive(Debug)]
pub(super) struct Jobs {
    /// The slots whose jobs these are.
    tokens: Vec<Token>,
    /// What the policy was asked and what it said, in the same order; empty where it was not.
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

    /// Adds the job of a slot.
    #[inline]
    pub(super) fn push(&mut self, token: Token) {
        self.tokens.push(token);
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Asks the policy once for the whole batch.
    pub(super) fn place(&mut self, slots: &Slots, policy: &mut dyn Policy, load: &Load) {
        let jobs = self.tokens.iter().map(|&token| slots.at(token).job);
        self.jobs.extend(jobs);
        self.placements.resize(self.jobs.len(), Placement::Inline);
        policy.place(&self.jobs, load, &mut self.placements);
    }

    /// Slot and placement of one job of the batch; inline where the policy was not asked.
    #[inline]
    pub(super) fn placed(&self, index: usize) -> (Token, Placement) {
        let placement = self.placements.get(index);
        (
            self.tokens[index],
            placement.copied().unwrap_or(Placement::Inline),
        )
    }
}
