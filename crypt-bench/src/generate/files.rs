//! The files of a stream: which one the next request goes to, and where in it.
//!
//! Each file has a cursor of its own. Where a pass touches every block once, a file that has had its pass is done;
//! once all are, all begin again. Where offsets may repeat, no file is ever done, as in fio.

#![forbid(unsafe_code)]

use super::cursor::{Cursor, Move};
use super::{Random, Script, Service, ServiceOrder, Spread};

/// The files of a stream.
#[derive(Clone, Debug)]
pub(super) struct Files {
    places: Vec<Place>,
    service: Service,
    /// Files in service, by index, rising; all others are done or wait for one of these.
    open: Vec<usize>,
    /// The first file that was not in service in this pass.
    next: usize,
    /// Where in `open` the next turn is.
    turn: usize,
    current: usize,
    /// Requests left to the next choice.
    run_left: u64,
    /// Files can be done.
    passes: bool,
    random: Random,
}

/// One file.
#[derive(Clone, Debug)]
struct Place {
    start_bytes: u64,
    cursor: Cursor,
    pass_bytes: u64,
    left_bytes: u64,
}

impl Files {
    /// The files of a script.
    pub(super) fn new(script: &Script, random: &mut Random) -> Self {
        let smallest = script.smallest_bytes();
        let place = |span: &super::Span| {
            let pass_bytes = span.len_bytes - span.len_bytes % smallest;
            Place {
                start_bytes: span.start_bytes,
                cursor: Cursor::new(script, span.len_bytes, random),
                pass_bytes,
                left_bytes: pass_bytes,
            }
        };
        let places: Vec<Place> = script.spans.iter().map(place).collect();
        let even = script.spread == Spread::Even && !script.repeats;
        let mut files = Self {
            open: Vec::with_capacity(places.len()),
            service: script.service,
            next: 0,
            turn: 0,
            current: 0,
            run_left: 0,
            passes: even || !script.rw.is_random(),
            random: Random::new(script.spans.len() as u64 ^ random.clone().next()),
            places,
        };
        files.fill();
        files
    }

    /// The offset of the next request, which is `len_bytes` long.
    #[inline(always)]
    pub(super) fn next_offset(&mut self, direction: usize, len_bytes: u64, how: Move) -> u64 {
        if self.places.len() > 1 {
            self.choose(len_bytes);
        }
        let Some(place) = self.places.get_mut(self.current) else {
            return 0;
        };
        place.start_bytes + place.cursor.next_offset(direction, len_bytes, how)
    }

    /// Makes the file of the next request the current one, and counts the request to its pass.
    fn choose(&mut self, len_bytes: u64) {
        if self.open.is_empty() {
            self.next = 0;
            self.turn = 0;
            for place in &mut self.places {
                place.left_bytes = place.pass_bytes;
            }
            self.fill();
        }
        if self.run_left == 0 {
            let count = self.open.len();
            let at = match self.service.order {
                ServiceOrder::Random => self.random.below(count as u32) as usize,
                _ => self.turn % count,
            };
            self.turn = at + 1;
            self.current = self.open[at];
            self.run_left = match self.service.order {
                ServiceOrder::Sequential => u64::MAX,
                _ => self.service.run_ios.max(1),
            };
        }
        self.run_left -= 1;
        let place = &mut self.places[self.current];
        place.left_bytes = place.left_bytes.saturating_sub(len_bytes);
        if self.passes && place.left_bytes == 0 {
            self.finish_current();
        }
    }

    /// Takes the current file out of service, and another one in where one waits.
    fn finish_current(&mut self) {
        self.run_left = 0;
        if let Ok(at) = self.open.binary_search(&self.current) {
            self.open.remove(at);
            self.turn = self.turn.saturating_sub(usize::from(at < self.turn));
        }
        self.fill();
    }

    fn fill(&mut self) {
        while self.open.len() < self.service.open_files.max(1) && self.next < self.places.len() {
            self.open.push(self.next);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Span, Stream};
    use super::*;
    use crate::result::Rw;
    use crate::testing;
    use std::collections::HashMap;

    const KIB: u64 = 1 << 10;

    /// Files of so many blocks of 64 KiB, which start 1 MiB from each other.
    fn script(rw: Rw, blocks: &[u64], service: Service) -> Script {
        let spans = blocks.iter().zip(0_u64..);
        let spans = spans.map(|(blocks, index)| Span {
            start_bytes: index << 20,
            len_bytes: blocks * 64 * KIB,
        });
        Script {
            lengths: [64 * KIB, 64 * KIB].map(crate::generate::Lengths::Fixed),
            align_bytes: [64 * KIB; 2],
            spans: spans.collect(),
            service,
            total_bytes: Some(blocks.iter().sum::<u64>() * 64 * KIB),
            ..testing::script(rw)
        }
    }

    /// File and block of each request, as `a0`.
    fn steps(script: Script) -> String {
        let mut stream = Stream::new(script, 3);
        let steps = std::iter::from_fn(|| stream.next_step()).map(|step| {
            let file = char::from(b'a' + (step.offset_bytes >> 20) as u8);
            format!("{file}{}", (step.offset_bytes & 0xf_ffff) / (64 * KIB))
        });
        steps.collect::<Vec<_>>().join(" ")
    }

    fn service(order: ServiceOrder, run_ios: u64, open_files: usize) -> Service {
        Service {
            order,
            run_ios,
            open_files,
        }
    }

    /// What fio 3.33 does (`--debug=io`).
    #[test]
    fn turns_are_those_of_fio() {
        use ServiceOrder::{RoundRobin, Sequential};
        let three = usize::MAX;
        for (blocks, service, expected) in [
            (&[2, 2][..], service(RoundRobin, 1, three), "a0 b0 a1 b1"),
            (
                &[4, 4],
                service(RoundRobin, 2, three),
                "a0 a1 b0 b1 a2 a3 b2 b3",
            ),
            (&[2, 3], service(Sequential, 1, three), "a0 a1 b0 b1 b2"),
            (&[2, 2, 2], service(RoundRobin, 1, 2), "a0 b0 a1 b1 c0 c1"),
            (
                &[1, 3, 2],
                service(RoundRobin, 1, three),
                "a0 b0 c0 b1 c1 b2",
            ),
        ] {
            assert_eq!(steps(script(Rw::Read, blocks, service)), expected);
        }
    }

    #[test]
    fn all_begin_again_when_all_are_done() {
        let service = service(ServiceOrder::RoundRobin, 1, 1);
        let mut script = script(Rw::Read, &[2, 1], service);
        script.total_bytes = Some(7 * 64 * KIB);
        assert_eq!(steps(script), "a0 a1 b0 a0 a1 b0 a0");
    }

    #[test]
    fn a_pass_over_all_files_touches_each_block_once() {
        for order in [
            ServiceOrder::Random,
            ServiceOrder::RoundRobin,
            ServiceOrder::Sequential,
        ] {
            for rw in [Rw::RandRead, Rw::Write] {
                let steps = steps(script(rw, &[5, 1, 7], service(order, 1, 2)));
                let mut blocks: Vec<&str> = steps.split(' ').collect();
                blocks.sort_unstable();
                blocks.dedup();
                assert_eq!(blocks.len(), 13, "{order:?}: {steps}");
            }
        }
    }

    #[test]
    fn random_turns_are_even() {
        let service = service(ServiceOrder::Random, 1, usize::MAX);
        let mut script = script(Rw::RandRead, &[4; 4], service);
        (script.repeats, script.total_bytes) = (true, Some(8000 * 64 * KIB));
        let steps = steps(script);
        let mut counts = HashMap::new();
        for step in steps.split(' ') {
            *counts.entry(&step[..1]).or_insert(0_u64) += 1;
        }
        let counts: Vec<u64> = counts.into_values().collect();
        super::super::fit::fits(&counts, &[0.25; 4]);
    }
}
