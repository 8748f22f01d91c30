//! Bulk work over all cores gives the bytes of one call of the cipher.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a set-up that fails is a failed test")]

mod exec_support;

use std::io::{Read, Write};

use crypt_core::cipher::SectorCipher;
use crypt_core::error::ErrorKind;
use crypt_core::exec::{FileRange, crypt_file_parallel, decrypt_parallel, encrypt_parallel};
use crypt_core::policy::Direction;
use crypt_core::units::{SectorIndex, SectorSize};
use exec_support::{AddressCipher, pattern};

const FIRST: SectorIndex = SectorIndex::new(8 * 1000);

#[test]
fn buffers_of_any_length_match_one_call_and_come_back() {
    for size in SectorSize::ALL {
        let cipher = AddressCipher(size);
        for len in [0, size.bytes(), 256 << 10, (1 << 20) + 3 * size.bytes()] {
            let plain = pattern(len, 9);
            let (mut expected, mut buf) = (plain.clone(), plain.clone());
            cipher.encrypt_in_place(FIRST, &mut expected);
            encrypt_parallel(&cipher, FIRST, &mut buf);
            assert!(buf == expected, "{len} bytes in {size}");
            decrypt_parallel(&cipher, FIRST, &mut buf);
            assert!(buf == plain, "{len} bytes in {size}");
        }
    }
}

#[test]
fn a_file_range_is_encrypted_into_another_place() {
    let cipher = AddressCipher(SectorSize::B4096);
    let plain = pattern((1 << 20) + 8192, 1);
    let mut source = tempfile::tempfile().unwrap();
    source.write_all(&plain).unwrap();
    let mut target = tempfile::tempfile().unwrap();
    let range = FileRange {
        source_offset_bytes: 4096,
        target_offset_bytes: 512,
        len_bytes: (1 << 20) + 4096,
        first: FIRST,
    };
    crypt_file_parallel(&cipher, Direction::Encrypt, &source, &target, &range).unwrap();
    let mut written = Vec::new();
    target.read_to_end(&mut written).unwrap();
    let mut expected = plain[4096..].to_vec();
    cipher.encrypt_in_place(FIRST, &mut expected);
    assert!(written[..512].iter().all(|&byte| byte == 0));
    assert!(written[512..] == expected);
}

#[test]
fn a_range_that_cannot_be_done_is_refused_with_the_figures() {
    let cipher = AddressCipher(SectorSize::B4096);
    let file = tempfile::tempfile().unwrap();
    let range = |len_bytes| FileRange {
        source_offset_bytes: 0,
        target_offset_bytes: 0,
        len_bytes,
        first: FIRST,
    };
    let run = |len| crypt_file_parallel(&cipher, Direction::Encrypt, &file, &file, &range(len));
    let error = run(5000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("5000 bytes"), "{error}");
    let error = run(8192).unwrap_err();
    assert!(
        error.to_string().contains("read 8192 bytes at 0"),
        "{error}"
    );
}
