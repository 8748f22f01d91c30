//! A volume as a file against a plain vector: any range, any order, same bytes.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::sync::Arc;

use proptest::prelude::*;

use crypt_core::device::memory::MemoryDevice;
use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;
use crypt_core::{ErrorKind, Volume};

const SIZE: usize = 512 << 10;

fn volume() -> Volume {
    let key = Key::from_bytes(&(0..64).collect::<Vec<u8>>()).unwrap();
    let cipher = "aes-xts-plain64"
        .parse::<CipherSpec>()
        .unwrap()
        .build(&key, None)
        .unwrap();
    let device = Arc::new(MemoryDevice::new(SIZE as u64).unwrap());
    Volume::builder(device).cipher(cipher).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_range_reads_back_what_was_written(
        ops in prop::collection::vec((any::<bool>(), 0..SIZE, 0..300_000_usize, any::<u8>()), 1..12)
    ) {
        let mut io = volume().io().unwrap();
        let mut model = vec![0_u8; SIZE];
        io.write_at(&model, 0).unwrap();
        for (write, offset, len, byte) in ops {
            let len = len.min(SIZE - offset);
            if write {
                let bytes: Vec<u8> = (0..len).map(|n| byte.wrapping_add(n as u8)).collect();
                io.write_at(&bytes, offset as u64).unwrap();
                model[offset..offset + len].copy_from_slice(&bytes);
            } else {
                let mut bytes = vec![0; len];
                io.read_at(&mut bytes, offset as u64).unwrap();
                prop_assert!(bytes == model[offset..offset + len]);
            }
        }
        let mut whole = vec![0; SIZE];
        io.read_at(&mut whole, 0).unwrap();
        prop_assert!(whole == model);
    }
}

#[test]
fn neighbours_inside_one_block_do_not_lose_each_others_bytes() {
    let volume = volume();
    volume.io().unwrap().write_at(&[0; 512], 0).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let volume = &volume;
            scope.spawn(move || {
                let mut io = volume.io().unwrap();
                for round in 0..64_u64 {
                    let at = thread * 128 + round;
                    io.write_at(&[thread as u8 + 1], at).unwrap();
                }
            });
        }
    });
    let mut block = [0; 512];
    volume.io().unwrap().read_at(&mut block, 0).unwrap();
    for thread in 0..4 {
        assert!(
            block[thread * 128..][..64]
                .iter()
                .all(|&byte| byte == thread as u8 + 1)
        );
    }
}

#[test]
fn ranges_beyond_the_end_are_refused_whole() {
    let mut io = volume().io().unwrap();
    for (offset, len) in [(SIZE as u64, 1), (SIZE as u64 - 1, 2), (u64::MAX, 1)] {
        let error = io.read_at(&mut vec![0; len], offset).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange, "{error}");
        assert!(io.write_at(&vec![0; len], offset).is_err());
    }
    io.write_at(&[], SIZE as u64).unwrap();
}

#[test]
fn flush_zeroes_and_discard() {
    let mut io = volume().io().unwrap();
    io.write_at(&[5; 8192], 0).unwrap();
    io.flush().unwrap();
    io.write_zeroes_at(4096, 0).unwrap();
    let mut bytes = [1; 8192];
    io.read_at(&mut bytes, 0).unwrap();
    assert!(bytes[..4096].iter().all(|&byte| byte == 0) && bytes[4096..].iter().all(|&b| b == 5));
    assert!(io.discard_at(4096, 0).is_err(), "discards were not allowed");
    assert!(io.write_zeroes_at(100, 0).is_err());
    assert!(io.write_zeroes_at(512, 7).is_err());
}
