//! What a task cell holds of a work while it is out, and what a part does with its share of it.
#![forbid(unsafe_code)]

use super::areas::{Areas, Stretch};
use super::cut::Piece;
use super::record::{PartEnd, PartWrite};
use super::span::{Span, guard};
use super::task::TaskContext;
use super::work::{Route, Work};
use crate::buffer::SlotBuffer;
use crate::error::Errno;
use crate::units::{SECTOR_BYTES, SectorCount};

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

    /// The share of one part.
    ///
    /// # Errors
    /// `EINVAL` where its sectors can't be counted; a work that was checked has none such.
    pub(crate) fn span_of(&self, piece: Piece) -> Result<Span, Errno> {
        let sectors = SectorCount::new(u64::from(piece.offset_bytes) / SECTOR_BYTES);
        Ok(Span {
            first: self.span.first.checked_add(sectors).ok_or(Errno::EINVAL)?,
            area_offset_bytes: piece.offset_bytes,
            len_bytes: piece.len_bytes,
            ..self.span
        })
    }

    /// Runs the cipher over a part's share, and writes it where that is the part's task.
    pub(crate) fn run(
        &self,
        piece: Piece,
        stretch: Result<Stretch<'_>, Errno>,
        context: &TaskContext,
    ) -> PartEnd {
        let started_ns = context.clock.now_ns();
        let crypted = stretch.and_then(|mut stretch| {
            stretch.run(&*context.cipher)?;
            Ok(stretch)
        });
        let ended_ns = context.clock.now_ns();
        let write = match (&crypted, self.route, &context.device) {
            (
                Ok(stretch),
                Route::Worker {
                    offset_bytes,
                    flags,
                },
                Some(device),
            ) => {
                let start = offset_bytes.saturating_add(u64::from(piece.offset_bytes));
                let written = guard(|| device.write(start, stretch.target(), flags));
                Some(PartWrite {
                    piece,
                    result: written.and_then(|result| result),
                    device_ns: context.clock.now_ns().saturating_sub(ended_ns),
                })
            }
            _ => None,
        };
        PartEnd {
            started_ns,
            cipher_ns: ended_ns.saturating_sub(started_ns),
            result: crypted.map(drop),
            write,
        }
    }
}
