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
    /// What the policy was asked and what it said, in the same order; empty where it was not yet.
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

    /// The jobs of the batch, which is complete.
    pub(super) fn look_up(&mut self, slots: &Slots) -> &[Job] {
        if self.jobs.is_empty() {
            let jobs = self.tokens.iter().map(|&token| slots.at(token).job);
            self.jobs.extend(jobs);
        }
        &self.jobs
    }

    /// Asks the policy once for the whole batch.
    pub(super) fn place(&mut self, slots: &Slots, policy: &mut dyn Policy, load: &Load) {
        self.look_up(slots);
        self.placements.resize(self.jobs.len(), Placement::Inline);
        policy.place(&self.jobs, load, &mut self.placements);
    }

    /// The slots of the batch.
    #[inline]
    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The slots of the batch, and where the policy placed their jobs.
    pub(super) fn placed(&self) -> impl Iterator<Item = (Token, Placement)> {
        let placements = self.placements.iter().copied();
        self.tokens.iter().copied().zip(placements)
    }
}
