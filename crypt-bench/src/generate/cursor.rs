//! Where a stream is in a range: the next offsets of both directions, in sequence or at random, and the
//! zone they are in.

#![forbid(unsafe_code)]

use super::spread::Sampler;
use super::{Order, Random, Script, Spread, Strides};

/// How the offset of a request follows from those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Behind the last one of its direction.
    On,
    /// As the last one of its direction.
    Stay,
    /// Somewhere.
    Jump,
}

/// A place in a range. Offsets are from its start, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    source: Source,
    /// Random offsets are multiples of this before they are aligned.
    unit_bytes: u64,
    align_bytes: [u64; 2],
    /// Whether units are aligned as they are; divisions take a while.
    is_aligned: [bool; 2],
    step_bytes: i64,
    /// Where requests may be at the moment: all of the range, or a zone.
    span_bytes: u64,
    zone: Option<Zone>,
    /// Last offsets of reads and of writes, and the ends of those requests, from the start of the span.
    last_bytes: [u64; 2],
    next_bytes: [u64; 2],
}

/// Where random blocks come from.
#[derive(Clone, Debug)]
enum Source {
    /// Each once per pass.
    Passes(Order),
    /// All independent.
    Draws(Sampler, Random),
}

/// The zone of the moment.
#[derive(Clone, Debug)]
struct Zone {
    strides: Strides,
    start_bytes: u64,
    /// Start of the last zone.
    last_start_bytes: u64,
    left_bytes: u64,
}

impl Cursor {
    /// At the start of a range of `len_bytes`.
    pub(super) fn new(script: &Script, len_bytes: u64, random: &mut Random) -> Self {
        let directions = [script.rw.reads(), script.rw.writes()];
        let used = |values: [u64; 2]| {
            let used = values.into_iter().zip(directions).filter(|(_, used)| *used);
            used.map(|(value, _)| value).min().unwrap_or(1).max(1)
        };
        let unit_bytes = used(script.align_bytes);
        let smallest = script.smallest_bytes();
        let zone = script.strides.map(|strides| Zone::new(strides, len_bytes));
        let span_bytes = script
            .strides
            .map_or(len_bytes, |strides| strides.zone_bytes);
        let room = span_bytes.saturating_sub(smallest.saturating_sub(unit_bytes));
        let blocks = (room / unit_bytes).max(1);
        let source = match &script.spread {
            Spread::Even if !script.repeats => Source::Passes(Order::random(blocks, random.next())),
            spread => {
                let sampler = Sampler::new(spread, blocks, unit_bytes, random);
                Source::Draws(sampler, Random::new(random.next()))
            }
        };
        Self {
            source,
            unit_bytes,
            align_bytes: script.align_bytes,
            is_aligned: script
                .align_bytes
                .map(|bytes| unit_bytes.is_multiple_of(bytes)),
            step_bytes: script.step_bytes,
            span_bytes,
            zone,
            last_bytes: [0; 2],
            next_bytes: [0; 2],
        }
    }

    /// The offset of the next request, which is `len_bytes` long.
    #[inline(always)]
    pub(super) fn next_offset(&mut self, direction: usize, len_bytes: u64, how: Move) -> u64 {
        let zone_bytes = if self.zone.is_some() {
            self.enter_zone(len_bytes)
        } else {
            0
        };
        let last = self.span_bytes.saturating_sub(len_bytes);
        let offset = match how {
            Move::On => self.on(direction, len_bytes, last),
            Move::Stay => self.last_bytes[direction].min(last - last % self.unit_bytes),
            Move::Jump => {
                let offset = self.block(direction) * self.unit_bytes;
                if offset <= last && self.is_aligned[direction] {
                    offset
                } else {
                    // A long request at the end begins earlier.
                    let offset = offset.min(last);
                    offset - offset % self.align_bytes[direction]
                }
            }
        };
        self.last_bytes[direction] = offset;
        self.next_bytes[direction] = offset + len_bytes;
        zone_bytes + offset
    }

    #[inline]
    fn block(&mut self, direction: usize) -> u64 {
        match &mut self.source {
            Source::Passes(order) => order.next_block(),
            Source::Draws(sampler, random) => sampler.draw(direction, random),
        }
    }

    /// The first request of all has no distance from one before it. Forwards, a new pass begins at the
    /// start; backwards, at the end, as far from it as from any other request.
    fn on(&self, direction: usize, len_bytes: u64, last: u64) -> u64 {
        let next = self.next_bytes[direction];
        if self.step_bytes == 0 || next == 0 {
            return if next > last { 0 } else { next };
        }
        match next.checked_add_signed(self.step_bytes) {
            Some(next) if next <= last => next,
            Some(_) if self.step_bytes.unsigned_abs() <= len_bytes || self.step_bytes > 0 => 0,
            _ => {
                let end = self.span_bytes - self.span_bytes % self.unit_bytes;
                let wanted = end.saturating_sub(self.step_bytes.unsigned_abs());
                wanted.min(last - last % self.unit_bytes)
            }
        }
    }

    /// Counts a request to the zone of the moment or the one after it; where that starts.
    fn enter_zone(&mut self, len_bytes: u64) -> u64 {
        let Some(zone) = &mut self.zone else {
            return 0;
        };
        if zone.left_bytes == 0 {
            zone.advance();
            (self.last_bytes, self.next_bytes) = ([0; 2], [0; 2]);
            if let Source::Passes(order) = &mut self.source {
                order.restart();
            }
        }
        zone.left_bytes = zone.left_bytes.saturating_sub(len_bytes);
        zone.start_bytes
    }
}

impl Zone {
    fn new(strides: Strides, len_bytes: u64) -> Self {
        let stride = (strides.zone_bytes + strides.skip_bytes).max(1);
        let more = len_bytes.saturating_sub(strides.zone_bytes) / stride;
        Self {
            strides,
            start_bytes: 0,
            last_start_bytes: more * stride,
            left_bytes: strides.transfer_bytes,
        }
    }

    fn advance(&mut self) {
        self.left_bytes = self.strides.transfer_bytes;
        if self.start_bytes >= self.last_start_bytes {
            self.start_bytes = 0;
        } else {
            self.start_bytes += self.strides.zone_bytes + self.strides.skip_bytes;
        }
    }
}
