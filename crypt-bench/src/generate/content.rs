//! What is in the buffers that are written: random bytes, a pattern or zeros, in a mix that compresses, or that
//! repeats.
//!
//! Most contents are put in place once and cost nothing per request ([`Each::Nothing`]); the others are made for
//! each write. Nothing is allocated.

#![forbid(unsafe_code)]

use super::Random;

/// Distance of the marks that tell scrambled buffers apart, in bytes.
const SCRAMBLE_BYTES: usize = 512;

/// Bytes that are repeated over a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytePattern {
    bytes: Box<[u8]>,
    /// Where eight bytes stand for the offset of the request.
    offsets: Box<[usize]>,
}

impl BytePattern {
    /// These bytes, with the offset of the request, the lowest byte first, at `offsets`. `None` without a byte.
    #[must_use]
    pub fn new(bytes: &[u8], offsets: &[usize]) -> Option<Self> {
        (!bytes.is_empty()).then(|| Self {
            bytes: bytes.into(),
            offsets: offsets.into(),
        })
    }

    /// Whether it is the same for every request.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Where a buffer first differs from what [`BytePattern::fill`] would put there.
    #[must_use]
    pub fn first_difference(&self, buffer: &[u8], offset_bytes: u64) -> Option<usize> {
        let mut at = 0;
        for part in buffer.chunks(self.bytes.len()) {
            let found = part
                .iter()
                .enumerate()
                .position(|(index, byte)| *byte != self.byte(index, offset_bytes));
            if let Some(index) = found {
                return Some(at + index);
            }
            at += part.len();
        }
        None
    }

    /// What a filled buffer holds from byte `start` on.
    pub fn copy_from(&self, start: usize, buffer: &mut [u8], offset_bytes: u64) {
        for (index, byte) in buffer.iter_mut().enumerate() {
            *byte = self.byte((start + index) % self.bytes.len(), offset_bytes);
        }
    }

    /// A byte of the pattern, for the request at this offset.
    fn byte(&self, index: usize, offset_bytes: u64) -> u8 {
        let inside = self
            .offsets
            .iter()
            .find(|at| (**at..**at + 8).contains(&index));
        match inside {
            Some(at) => offset_bytes.to_le_bytes()[index - at],
            None => self.bytes[index],
        }
    }

    /// Fills a buffer for the request at this offset.
    pub fn fill(&self, buffer: &mut [u8], offset_bytes: u64) {
        let mut filled = self.bytes.len().min(buffer.len());
        buffer[..filled].copy_from_slice(&self.bytes[..filled]);
        for &at in &self.offsets {
            let end = (at + 8).min(filled);
            if let Some(place) = buffer.get_mut(at..end) {
                place.copy_from_slice(&offset_bytes.to_le_bytes()[..end - at]);
            }
        }
        while filled < buffer.len() {
            let more = filled.min(buffer.len() - filled);
            buffer.copy_within(..more, filled);
            filled += more;
        }
    }
}

/// What written buffers hold.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Content {
    /// A pattern instead of random bytes; the compressible part where `compress_percent` is set.
    pub pattern: Option<BytePattern>,
    /// Zeros instead of random bytes, where there is no pattern.
    pub zeros: bool,
    /// Share of the bytes that compresses.
    pub compress_percent: u8,
    /// Bytes after which random and compressible part start again; 0 for one of each per request.
    pub compress_chunk_bytes: u64,
    /// Share of the writes that repeat the bytes of the one before.
    pub dedupe_percent: u8,
    /// New bytes for every write.
    pub refill: bool,
    /// A mark in every 512 bytes that tells them apart.
    pub scramble: bool,
}

/// What has to be done for each write, in buffers that were filled before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// Nothing: the buffers stay as they are.
    Nothing,
    /// New marks.
    Scramble,
    /// Everything again.
    Fill,
}

impl Content {
    /// What each write needs, where the job's reads go into the same buffers or not.
    #[must_use]
    pub fn each(&self, reads: bool) -> Each {
        let mixed = (1..100).contains(&self.compress_percent) || self.dedupe_percent > 0;
        let fixed = self.pattern.is_some() || self.zeros || self.compress_percent == 100;
        match (mixed, fixed) {
            (false, true) if reads => Each::Fill,
            (true, _) => Each::Fill,
            (false, false) if self.refill => Each::Fill,
            _ if self.scramble => Each::Scramble,
            _ => Each::Nothing,
        }
    }
}

/// Makes contents.
#[derive(Clone, Debug)]
pub struct Filler {
    content: Content,
    each: Each,
    random: Random,
    last_seed: u64,
}

impl Filler {
    /// Contents that repeat with the seed, for a job that reads too or not.
    #[must_use]
    pub fn new(content: Content, reads: bool, seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            each: content.each(reads),
            content,
            last_seed: random.next(),
            random,
        }
    }

    /// What each write needs.
    #[must_use]
    pub fn each(&self) -> Each {
        self.each
    }

    /// Fills a buffer for a write at this offset.
    pub fn fill(&mut self, buffer: &mut [u8], offset_bytes: u64) {
        let content = &self.content;
        if content.compress_percent > 0 || content.dedupe_percent > 0 {
            let repeat = self.random.below(100) < u32::from(content.dedupe_percent);
            if !repeat {
                self.last_seed = self.random.next();
            }
            self.fill_chunks(buffer, offset_bytes);
        } else if let Some(pattern) = &content.pattern {
            pattern.fill(buffer, offset_bytes);
        } else if content.zeros {
            buffer.fill(0);
        } else {
            Random::new(self.random.next()).fill(buffer);
        }
        if self.content.scramble {
            self.scramble(buffer, offset_bytes);
        }
    }

    /// Does for a write what it needs, in a buffer that was filled before.
    pub fn refresh(&mut self, buffer: &mut [u8], offset_bytes: u64) {
        match self.each {
            Each::Nothing => {}
            Each::Scramble => self.scramble(buffer, offset_bytes),
            Each::Fill => self.fill(buffer, offset_bytes),
        }
    }

    /// A random part and one that compresses, in turns.
    fn fill_chunks(&self, buffer: &mut [u8], offset_bytes: u64) {
        let mut random = Random::new(self.last_seed);
        let chunk = match self.content.compress_chunk_bytes {
            0 => buffer.len(),
            bytes => (bytes as usize).min(buffer.len()),
        };
        for part in buffer.chunks_mut(chunk.max(1)) {
            let share = 100 - usize::from(self.content.compress_percent.min(100));
            let (first, rest) = part.split_at_mut(part.len() * share / 100);
            random.fill(first);
            match &self.content.pattern {
                Some(pattern) => pattern.fill(rest, offset_bytes),
                None => rest.fill(0),
            }
        }
    }

    /// The offset and a random number in every 512 bytes.
    fn scramble(&mut self, buffer: &mut [u8], offset_bytes: u64) {
        let number = self.random.next();
        for (index, part) in buffer.chunks_exact_mut(SCRAMBLE_BYTES).enumerate() {
            let here = offset_bytes + (index * SCRAMBLE_BYTES) as u64;
            part[..8].copy_from_slice(&here.to_le_bytes());
            part[8..16].copy_from_slice(&number.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(content: Content, writes: usize, len: usize) -> Vec<Vec<u8>> {
        let mut filler = Filler::new(content, false, 3);
        let fill = |offset| {
            let mut buffer = vec![0xee; len];
            filler.fill(&mut buffer, offset as u64);
            buffer
        };
        (0..writes).map(fill).collect()
    }

    #[test]
    fn patterns_repeat_and_hold_offsets() {
        let pattern = BytePattern::new(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 2], &[1]).unwrap();
        let mut buffer = [9; 24];
        pattern.fill(&mut buffer, 0x0102_0304);
        let one = [1, 4, 3, 2, 1, 0, 0, 0, 0, 2];
        assert_eq!(buffer[..10], one);
        assert_eq!(buffer[10..20], one);
        assert_eq!(buffer[20..], one[..4]);
        let mut short = [9; 3];
        pattern.fill(&mut short, 0x0102_0304);
        assert_eq!(short, [1, 4, 3]);
        pattern.fill(&mut [], 0);
        assert_eq!(BytePattern::new(&[], &[]), None);
    }

    #[test]
    fn the_compressible_share_is_exact_in_each_chunk() {
        let content = Content {
            compress_percent: 75,
            compress_chunk_bytes: 1024,
            ..Content::default()
        };
        let buffers = filled(content, 2, 4096);
        for chunk in buffers.iter().flat_map(|buffer| buffer.chunks(1024)) {
            assert!(chunk[256..].iter().all(|byte| *byte == 0));
            assert!(chunk[..256].iter().filter(|byte| **byte == 0).count() < 16);
        }
        assert_ne!(buffers[0], buffers[1]);
        assert_ne!(buffers[0][..256], buffers[0][1024..1280]);
    }

    #[test]
    fn the_share_of_repeated_writes_is_kept() {
        let content = Content {
            dedupe_percent: 70,
            ..Content::default()
        };
        let buffers = filled(content, 2000, 64);
        let repeated = buffers.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((1300..1500).contains(&repeated), "{repeated}");
        assert!(
            buffers
                .iter()
                .all(|buffer| buffer.iter().any(|byte| *byte != 0))
        );
    }

    #[test]
    fn scrambled_sectors_all_differ() {
        let content = Content {
            zeros: true,
            scramble: true,
            ..Content::default()
        };
        let buffers = filled(content, 2, 2048);
        let sectors: std::collections::HashSet<&[u8]> = buffers
            .iter()
            .flat_map(|buffer| buffer.chunks(512))
            .collect();
        assert_eq!(sectors.len(), 8);
        assert!(buffers[0][16..512].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_never_changes_is_filled_once() {
        let zeros = Content {
            zeros: true,
            refill: true,
            ..Content::default()
        };
        let percent = |compress_percent| Content {
            compress_percent,
            ..Content::default()
        };
        let refill = Content {
            refill: true,
            ..Content::default()
        };
        let scramble = Content {
            scramble: true,
            ..Content::default()
        };
        for (content, writes_only, reads_too) in [
            (Content::default(), Each::Nothing, Each::Nothing),
            (zeros, Each::Nothing, Each::Fill),
            (percent(100), Each::Nothing, Each::Fill),
            (percent(50), Each::Fill, Each::Fill),
            (refill, Each::Fill, Each::Fill),
            (scramble, Each::Scramble, Each::Scramble),
        ] {
            assert_eq!(content.each(false), writes_only, "{content:?}");
            assert_eq!(content.each(true), reads_too, "{content:?}");
        }
    }
}
