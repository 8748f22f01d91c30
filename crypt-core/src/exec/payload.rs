//! What a task cell holds of a work while it is out.
#![forbid(unsafe_code)]

use super::areas::Areas;
use super::span::Span;
use super::work::{Route, Work};
use crate::buffer::SlotBuffer;

/// A work in its cell: its memory, and everything about it that parts and the last one need.
pub(crate) struct Payload {
    pub(crate) token: u64,
    pub(crate) span: Span,
    pub(crate) route: Route,
    pub(crate) handed_off_ns: u64,
    pub(crate) buffer: Option<SlotBuffer>,
    pub(crate) areas: Areas,
}

impl Payload {
    pub(crate) fn new(mut work: Work, handed_off_ns: u64) -> Self {
        Self {
            token: work.token,
            span: work.span(),
            route: work.route,
            handed_off_ns,
            areas: Areas::of(&mut work.buffer),
            buffer: Some(work.buffer),
        }
    }
}
