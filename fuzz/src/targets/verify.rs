//! Verified blocks: what was sealed passes, and does not once a byte is another one.
//!
//! Bytes of an input: method, length and interval in units of 64 bytes, offset, which byte is changed, then the
//! pattern in fio's notation. The whole input is also taken for a block that somebody else wrote.

#![forbid(unsafe_code)]

use crypt_bench::generate::BytePattern;
use crypt_bench::jobfile::value::{Kind, Piece, Units, Value, parse};
use crypt_bench::verify::{Checks, HEADER_BYTES, Method, Origin};

const METHODS: [Method; 5] = [
    Method::Crc32c,
    Method::Md5,
    Method::Sha256,
    Method::Sha512,
    Method::Pattern,
];

/// Seals and compares a block.
///
/// # Panics
/// Where a good block fails or a bad one passes.
pub fn check(input: &[u8]) -> bool {
    let Some(([method, len, interval, offset, changed], text)) = input.split_first_chunk() else {
        return false;
    };
    let method = METHODS[usize::from(*method) % METHODS.len()];
    let pattern = std::str::from_utf8(text).ok().and_then(pattern);
    if pattern.is_none() && (method == Method::Pattern || !text.is_empty()) {
        return false;
    }
    let checks = Checks {
        method,
        pattern,
        interval_bytes: (*interval > 0).then(|| u64::from(*interval) * 64),
        origin: Origin::Run(7),
    };
    let _ = checks.check(input, 0);
    let mut block = vec![0; usize::from(*len) * 64 + 64];
    let offset_bytes = u64::from(*offset) << 56 >> 1;
    checks.seal(&mut block, offset_bytes);
    let shortest = HEADER_BYTES + method.digest_bytes().unwrap_or(0);
    let interval = checks.interval_bytes.unwrap_or(block.len() as u64) as usize;
    let pieces = [
        interval.min(block.len()),
        block.len() % interval.min(block.len()),
    ];
    if method != Method::Pattern && pieces.iter().any(|len| (1..=shortest).contains(len)) {
        return false;
    }
    assert!(
        checks.check(&block, offset_bytes).is_ok(),
        "a good block is wrong"
    );
    let at = usize::from(*changed) * 63 % block.len();
    block[at] ^= 1 << (*changed & 7);
    let found = checks.check(&block, offset_bytes);
    let (mismatch, _) = found.expect_err("a bad block passes");
    let place = mismatch.offset_bytes - offset_bytes;
    let within = place..place + mismatch.len_bytes;
    assert!(
        within.contains(&(at as u64)),
        "byte {at} is wrong, and {mismatch}"
    );
    true
}

/// Some of each method.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let patterns = ["0xdeadface", "\"abc\"%o", "12 ", "%o", "-1", "\"a\"0x00"];
    let of = |method: u8| {
        patterns.map(|pattern| [&[method, 15, 0, 3, method], pattern.as_bytes()].concat())
    };
    (0..5).flat_map(of).collect()
}

/// Pieces of patterns.
#[must_use]
pub fn pieces() -> Vec<String> {
    let pieces = [
        "0x", "ff", "%o", "\"abc\"", "\"", "'text'", "-1", "\\n", "255", "256", "0", " ", ",", "é",
        "\0",
    ];
    pieces.map(str::to_owned).to_vec()
}

/// The pattern of a text, its files left out; `None` where it is none.
fn pattern(text: &str) -> Option<BytePattern> {
    let kind = Kind::Bytes { offsets: true };
    let Ok(Value::Bytes(pieces)) = parse(kind, Some(text), Units::default()) else {
        return None;
    };
    let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Bytes(more) => bytes.extend(more),
            Piece::Offset => {
                offsets.push(bytes.len());
                bytes.extend([0; 8]);
            }
            Piece::File(_) => {}
        }
    }
    BytePattern::new(&bytes, &offsets)
}
