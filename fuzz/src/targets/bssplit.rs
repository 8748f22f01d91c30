//! Lengths of requests: `--bssplit` in fio's notation.

#![forbid(unsafe_code)]

use crypt_bench::generate::{Blocks, Lengths};

use super::{bytes, check_message, words};

/// Reads a split.
///
/// # Panics
/// Where it holds lengths or weights that make no sense, or prints as another one.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let blocks: Blocks = match text.parse() {
        Ok(blocks) => blocks,
        Err(message) => {
            let message: String = message;
            check_message(&message, text.len());
            return false;
        }
    };
    assert_eq!(
        blocks.to_string().parse(),
        Ok(blocks.clone()),
        "prints as another one"
    );
    for write in [false, true] {
        let lengths = blocks.lengths(write);
        assert!(lengths.smallest() <= lengths.largest());
        if let Lengths::Split(parts) = lengths {
            let sum: u64 = parts.iter().map(|part| u64::from(part.1)).sum();
            assert_eq!(sum, 100, "weights");
        }
    }
    for share in [0.0, 0.5, 1.0] {
        assert!(blocks.mean(share).is_finite());
    }
    true
}

/// Some of each form.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    bytes(&[
        "64k/60:1m/40",
        "4k-64k",
        "4k",
        "512/10:4k/90,64k",
        "4k/50:8k/:16k/",
        "4k-64k,1m/100",
    ])
}

/// What splits are made of.
#[must_use]
pub fn pieces() -> Vec<String> {
    words(&[
        "/", ":", ",", "-", "k", "m", "KiB", "t", "100", "50", "0", "4k/50", "512", ".5", "é",
        "\0", "-1", "64k-4k",
    ])
    .collect()
}
