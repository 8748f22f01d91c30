//! Damages inputs, seeded: the same seed makes the same inputs of the same corpus.
//!
//! Without coverage to go by, accepted inputs join the corpus instead, so that damage piles up on what still
//! means something.

#![forbid(unsafe_code)]

use crypt_bench::generate::Random;

/// Most inputs that are kept beside those of the beginning.
const MOST_KEPT: usize = 512;
/// Numbers that break things.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "511",
    "512",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "00",
    "1e9",
    "0.1",
    "1e308",
    "1e-320",
    "340282366920938463463374607431768211456",
];

/// Makes inputs.
pub struct Mutator {
    random: Random,
    corpus: Vec<Vec<u8>>,
    /// Inputs of the beginning, which stay.
    given: usize,
    pieces: Vec<String>,
    most_bytes: usize,
}

impl Mutator {
    /// Damages `corpus` with these pieces; no input gets longer than `most_bytes`.
    #[must_use]
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>, pieces: Vec<String>, most_bytes: usize) -> Self {
        Self {
            random: Random::new(seed),
            given: corpus.len(),
            corpus,
            pieces,
            most_bytes,
        }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick();
        for _ in 0..=self.below(5) {
            self.damage(&mut input);
        }
        input.truncate(self.most_bytes);
        input
    }

    /// Takes up an input that was accepted.
    pub fn keep(&mut self, input: Vec<u8>) {
        if self.corpus.len() < self.given + MOST_KEPT {
            self.corpus.push(input);
        } else {
            let at = self.given + self.below(MOST_KEPT);
            self.corpus[at] = input;
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.below_u64(limit.max(1) as u64) as usize
    }

    fn pick(&mut self) -> Vec<u8> {
        let at = self.below(self.corpus.len());
        self.corpus.get(at).cloned().unwrap_or_default()
    }

    fn damage(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        match self.below(10) {
            0 => self.set_byte(input, at),
            1 => {
                let end = (at + 1 + self.below(8)).min(input.len());
                input.drain(at..end);
            }
            2 => self.replace_number(input, at),
            3 => self.splice(input, at),
            4 => self.repeat(input, at),
            5 => {
                let line = line_around(input, at);
                input.drain(line);
            }
            6 | 7 => self.insert(input, line_around_start(input, at)),
            _ => self.insert(input, at),
        }
    }

    fn set_byte(&mut self, input: &mut [u8], at: usize) {
        let byte = self.below(256) as u8;
        if let Some(old) = input.get_mut(at) {
            *old = byte;
        }
    }

    fn insert(&mut self, input: &mut Vec<u8>, at: usize) {
        let piece = self.below(self.pieces.len());
        if let Some(piece) = self.pieces.get(piece) {
            input.splice(at..at, piece.bytes());
        }
    }

    /// Another number for the next one.
    fn replace_number(&mut self, input: &mut Vec<u8>, at: usize) {
        let digits = |byte: &u8| byte.is_ascii_digit();
        let Some(start) = input[at..].iter().position(digits) else {
            return;
        };
        let start = at + start;
        let len = input[start..]
            .iter()
            .take_while(|byte| digits(byte))
            .count();
        let number = NUMBERS[self.below(NUMBERS.len())];
        input.splice(start..start + len, number.bytes());
    }

    /// A part of another input.
    fn splice(&mut self, input: &mut Vec<u8>, at: usize) {
        let other = self.pick();
        let part = line_around(&other, self.below(other.len() + 1));
        let end = self.below(other.len() + 1).max(part.end);
        input.splice(at..at, other[part.start..end].iter().copied());
    }

    /// A line many times, or a few bytes.
    fn repeat(&mut self, input: &mut Vec<u8>, at: usize) {
        let part = match self.below(2) {
            0 => line_around(input, at),
            _ => at..(at + 1 + self.below(4)).min(input.len()),
        };
        let times = 1 << self.below(13);
        let room = self.most_bytes.saturating_sub(input.len());
        let times = room
            .checked_div(part.len())
            .map_or(0, |most| times.min(most));
        let repeated = input[part.clone()].repeat(times);
        input.splice(part.end..part.end, repeated);
    }
}

/// The line that a place is in, with its end.
fn line_around(input: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = line_around_start(input, at);
    let end = input[start..].iter().position(|byte| *byte == b'\n');
    start..end.map_or(input.len(), |end| start + end + 1)
}

fn line_around_start(input: &[u8], at: usize) -> usize {
    let before = input[..at].iter().rposition(|byte| *byte == b'\n');
    before.map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_inputs_stay_short() {
        let mutator = || Mutator::new(7, vec![b"[a]\nbs=4k\n".to_vec()], vec!["=".to_owned()], 64);
        let (mut one, mut two) = (mutator(), mutator());
        let mut different = std::collections::HashSet::new();
        for _ in 0..1000 {
            let input = one.next_input();
            assert_eq!(input, two.next_input());
            assert!(input.len() <= 64);
            different.insert(input.clone());
            one.keep(input.clone());
            two.keep(input);
        }
        assert!(different.len() > 500, "{}", different.len());
    }

    #[test]
    fn lines_are_found() {
        let text = b"ab\ncd\n";
        assert_eq!([line_around(text, 1), line_around(text, 3)], [0..3, 3..6]);
        assert_eq!(line_around(text, 6), 6..6);
    }
}
