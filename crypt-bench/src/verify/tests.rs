//! Blocks right and wrong.

#![forbid(unsafe_code)]

use super::*;
use proptest::prelude::*;

const METHODS: [Method; 4] = [Method::Crc32c, Method::Md5, Method::Sha256, Method::Sha512];

fn checks(method: Method) -> Checks {
    Checks {
        method,
        pattern: None,
        interval_bytes: Some(1024),
        origin: Origin::Run(7),
    }
}

fn sealed(checks: &Checks, offset_bytes: u64) -> Vec<u8> {
    let mut buffer = vec![0xee; 4096];
    checks.seal(&mut buffer, offset_bytes);
    buffer
}

proptest! {
    #[test]
    fn any_byte_that_changes_is_found(
        method in proptest::sample::select(METHODS.to_vec()), at in 0_usize..4096, bit in 0_u8..8,
        offset in 0_u64..1 << 40,
    ) {
        let checks = checks(method);
        let mut buffer = sealed(&checks, offset);
        prop_assert_eq!(checks.check(&buffer, offset), Ok(4));
        buffer[at] ^= 1 << bit;
        let (mismatch, wrong) = checks.check(&buffer, offset).unwrap_err();
        prop_assert_eq!(wrong, 1);
        prop_assert_eq!(mismatch.offset_bytes, offset + at as u64 / 1024 * 1024);
        prop_assert_ne!(mismatch.expected, mismatch.found);
    }

    #[test]
    fn no_bytes_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300), interval in 1_u64..200,
        method in proptest::sample::select(METHODS.to_vec()),
    ) {
        let checks = Checks { interval_bytes: Some(interval), ..checks(method) };
        let _ = checks.check(&bytes, 0);
        let mut bytes = bytes;
        checks.seal(&mut bytes, 0);
    }
}

#[test]
fn a_block_of_another_place_or_run_is_found() {
    let checks = checks(Method::Crc32c);
    let elsewhere = sealed(&checks, 8192);
    let (mismatch, wrong) = checks.check(&elsewhere, 0).unwrap_err();
    assert_eq!((mismatch.what, wrong), ("the offset in the header", 4));
    let other = Checks {
        origin: Origin::Run(8),
        ..checks.clone()
    };
    let (mismatch, _) = checks.check(&sealed(&other, 0), 0).unwrap_err();
    assert_eq!(mismatch.what, "the seed of the run in the header");
    let anybody = Checks {
        origin: Origin::Anybody,
        ..checks.clone()
    };
    assert_eq!(anybody.check(&sealed(&other, 0), 0), Ok(4));
    let text = mismatch.to_string();
    assert!(
        text.contains("block of 1024 bytes at offset 0: expected 0x"),
        "{text}"
    );
}

#[test]
fn requests_that_overlap_agree() {
    let checks = checks(Method::Crc32c);
    let (long, short) = (sealed(&checks, 0), &mut [0; 1024]);
    checks.seal(short, 2048);
    assert_eq!(long[2048..3072], *short);
}

#[test]
fn patterns_are_compared_byte_by_byte() {
    let checks = Checks {
        pattern: BytePattern::new(&[1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0], &[3]),
        interval_bytes: None,
        ..checks(Method::Pattern)
    };
    let mut buffer = sealed(&checks, 512);
    assert_eq!(checks.check(&buffer, 512), Ok(1));
    assert_eq!(checks.check(&buffer, 0).unwrap_err().0.offset_bytes, 4);
    buffer[1100] ^= 4;
    let (mismatch, _) = checks.check(&buffer, 512).unwrap_err();
    assert_eq!(
        (mismatch.offset_bytes, mismatch.what),
        (512 + 1100, "the pattern")
    );
    assert_eq!(mismatch.expected[2..], mismatch.found[2..]);
}
