//! Every cipher backend against published vectors and against the oracle.
//!
//! The suites iterate over `Backend::ALL`, so a backend can't be forgotten. One that this CPU lacks
//! prints `skipped`.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod vectors;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;

use crypt_core::cipher::xts::{MAX_UNIT_BYTES, Xts};
use crypt_core::cipher::{BACKEND_VARIABLE, Backend, SectorCipher};
use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;
use crypt_core::units::{SectorCount, SectorIndex, SectorSize};
use proptest::prelude::*;

use vectors::Vector;

/// The backends of this machine; says which are left out.
fn backends() -> Vec<Backend> {
    let (available, missing): (Vec<_>, Vec<_>) = Backend::ALL
        .iter()
        .copied()
        .partition(|backend| backend.missing().is_none());
    for backend in missing {
        println!(
            "skipped: backend {backend}: this CPU lacks {:?}",
            backend.missing()
        );
    }
    assert!(available.contains(&Backend::Portable));
    available
}

fn key(bytes: &[u8]) -> Key {
    Key::from_bytes(bytes).unwrap()
}

/// Checks one data unit in both directions, in place and out of place, at an odd address.
fn check_vector(xts: &Xts, vector: &Vector) {
    let name = &vector.name;
    let len = vector.plaintext.len();
    let (mut out, mut in_place) = (vec![0; len + 1], vec![0; len + 1]);

    xts.encrypt_unit(&vector.iv, &vector.plaintext, &mut out[1..])
        .unwrap();
    assert_eq!(out[1..], vector.ciphertext, "{name}: encrypt");
    in_place[1..].copy_from_slice(&vector.plaintext);
    xts.encrypt_unit_in_place(&vector.iv, &mut in_place[1..])
        .unwrap();
    assert_eq!(in_place[1..], vector.ciphertext, "{name}: encrypt in place");

    xts.decrypt_unit(&vector.iv, &vector.ciphertext, &mut out[1..])
        .unwrap();
    assert_eq!(out[1..], vector.plaintext, "{name}: decrypt");
    xts.decrypt_unit_in_place(&vector.iv, &mut in_place[1..])
        .unwrap();
    assert_eq!(in_place[1..], vector.plaintext, "{name}: decrypt in place");
}

fn check_vectors(all: &[Vector], at_least: usize) {
    assert!(all.len() >= at_least, "only {} vectors", all.len());
    for backend in backends() {
        for vector in all {
            let xts = Xts::new(&key(&vector.key), Some(backend)).unwrap();
            assert_eq!(xts.backend(), backend);
            check_vector(&xts, vector);
        }
    }
}

#[test]
fn xts_nist_cavp() {
    check_vectors(&vectors::nist_cavp_xts(), 400);
}

#[test]
fn xts_ieee_1619() {
    check_vectors(&vectors::ieee_1619_xts(), 10);
}

#[test]
fn xts_wycheproof() {
    check_vectors(&vectors::wycheproof_xts(), 80);
}

#[test]
fn xts_refuses_units_that_the_standard_forbids() {
    for backend in backends() {
        let xts = Xts::new(&key(&[7; 64]), Some(backend)).unwrap();
        for len in [0, 1, 15, MAX_UNIT_BYTES + 1] {
            let mut buf = vec![0; len];
            let error = xts.encrypt_unit_in_place(&[0; 16], &mut buf).unwrap_err();
            assert!(error.to_string().contains(&len.to_string()), "{error}");
        }
        assert!(xts.decrypt_unit(&[0; 16], &[0; 32], &mut [0; 48]).is_err());
        assert!(Xts::new(&key(&[7; 48]), Some(backend)).is_err());
    }
}

#[test]
fn xts_longest_unit_matches_the_oracle() {
    let plaintext: Vec<u8> = (0..MAX_UNIT_BYTES).map(|i| (i % 251) as u8).collect();
    let oracle = Xts::new(&key(&[1; 32]), Some(Backend::Portable)).unwrap();
    let mut expected = vec![0; MAX_UNIT_BYTES];
    oracle
        .encrypt_unit(&[5; 16], &plaintext, &mut expected)
        .unwrap();
    for backend in backends() {
        let xts = Xts::new(&key(&[1; 32]), Some(backend)).unwrap();
        let mut buf = plaintext.clone();
        xts.encrypt_unit_in_place(&[5; 16], &mut buf).unwrap();
        assert!(buf == expected, "{backend}: encrypt");
        xts.decrypt_unit_in_place(&[5; 16], &mut buf).unwrap();
        assert!(buf == plaintext, "{backend}: decrypt");
    }
}

/// A specification with any numbering of sectors.
fn any_spec() -> impl Strategy<Value = CipherSpec> {
    let notation = prop::sample::select(CipherSpec::SUPPORTED.to_vec());
    let sector_size = prop::sample::select(SectorSize::ALL.to_vec());
    let offset = prop_oneof![Just(0_u64), 0..1_u64 << 40, Just(u64::MAX >> 3)];
    (notation, sector_size, offset, any::<bool>()).prop_map(|(notation, size, offset, large)| {
        notation
            .parse::<CipherSpec>()
            .unwrap()
            .with_sector_size(size)
            .with_iv_offset(SectorCount::new(offset << size.shift()))
            .with_iv_large_sectors(large)
    })
}

/// A first sector anywhere, often next to the places where counters wrap.
fn any_first() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0_u64..64).prop_map(|back| (1 << 32) - back),
        (0_u64..64).prop_map(|back| u64::MAX - back),
        0_u64..64,
    ]
}

/// Numbers of sectors: mostly few, at times more than any backend takes at once.
fn any_count() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1_usize..12, 1 => 30_usize..72]
}

/// One run of sectors to encrypt.
#[derive(Clone)]
struct Run {
    spec: CipherSpec,
    key: Vec<u8>,
    first: SectorIndex,
    plaintext: Vec<u8>,
    /// Where the buffers start, past an aligned address.
    skew: usize,
    /// Sector count of the first piece where the run is cut in two.
    cut: usize,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, bits) = (self.plaintext.len(), 8 * self.key.len());
        write!(
            f,
            "{:?}, {bits}-bit key, {bytes} bytes at sector {}, ",
            self.spec, self.first
        )?;
        write!(f, "skew {}, cut {}", self.skew, self.cut)
    }
}

fn any_run() -> impl Strategy<Value = Run> {
    (
        any_spec(),
        any_first(),
        any_count(),
        any::<u64>(),
        0_usize..64,
    )
        .prop_flat_map(|(spec, first, sectors, seed, skew)| {
            let shift = spec.sector_size().shift();
            let first = SectorIndex::new(first >> shift << shift);
            let len = sectors * spec.sector_size().bytes();
            let key_len = prop::sample::select(spec.key_lens_bytes().to_vec());
            (key_len, 0..=sectors).prop_map(move |(key_len, cut)| Run {
                spec,
                key: noise(seed ^ 1, key_len),
                first,
                plaintext: noise(seed, len),
                skew,
                cut,
            })
        })
}

/// Bytes that look random, from a seed (splitmix64).
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut words = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    });
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&words.next().unwrap().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn build(run: &Run, backend: Backend) -> Arc<dyn SectorCipher> {
    run.spec.build(&key(&run.key), Some(backend)).unwrap()
}

/// All four methods agree with `ciphertext`, and cutting the run in two changes nothing.
fn check_run(run: &Run, cipher: &dyn SectorCipher, ciphertext: &[u8]) -> Result<(), TestCaseError> {
    let backend = cipher.backend();
    let len = run.plaintext.len();
    let mut src = vec![0; run.skew + len];
    src[run.skew..].copy_from_slice(&run.plaintext);
    let src = &src[run.skew..];
    let mut dst = vec![0; run.skew + len];
    let dst = &mut dst[run.skew..];

    cipher.encrypt_sectors(run.first, src, dst);
    prop_assert!(dst == ciphertext, "{backend}: encrypt_sectors");
    cipher.decrypt_in_place(run.first, dst);
    prop_assert!(dst == src, "{backend}: decrypt_in_place");
    cipher.encrypt_in_place(run.first, dst);
    prop_assert!(dst == ciphertext, "{backend}: encrypt_in_place");

    let middle = run.cut * cipher.sector_size().bytes();
    let second = SectorIndex::new(run.first.get().wrapping_add(middle as u64 / 512));
    let mut plain = vec![0; len];
    let (head, tail) = plain.split_at_mut(middle);
    cipher.decrypt_sectors(second, &ciphertext[middle..], tail);
    cipher.decrypt_sectors(run.first, &ciphertext[..middle], head);
    prop_assert!(plain == src, "{backend}: decrypt_sectors in two pieces");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn sector_ciphers_match_the_oracle(run in any_run()) {
        let oracle = build(&run, Backend::Portable);
        let mut expected = vec![0; run.plaintext.len()];
        oracle.encrypt_sectors(run.first, &run.plaintext, &mut expected);
        for backend in backends() {
            check_run(&run, &*build(&run, backend), &expected)?;
        }
    }

    #[test]
    fn data_units_of_any_length_match_the_oracle(
        len in prop_oneof![16_usize..700, 4000_usize..4200, 16_usize..20_000],
        key_len in prop::sample::select(vec![32_usize, 64]),
        iv: [u8; 16],
        seed: u64,
    ) {
        let key = key(&noise(seed ^ 1, key_len));
        let plaintext = noise(seed, len);
        let mut ciphertext = vec![0; len];
        let oracle = Xts::new(&key, Some(Backend::Portable)).unwrap();
        oracle.encrypt_unit(&iv, &plaintext, &mut ciphertext).unwrap();
        let vector = Vector { name: format!("{len} bytes"), key: Vec::new(), iv, plaintext, ciphertext };
        for backend in backends() {
            check_vector(&Xts::new(&key, Some(backend)).unwrap(), &vector);
        }
    }
}

#[test]
fn a_sector_is_the_data_unit_of_its_iv() {
    let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
    let spec = spec
        .with_sector_size(SectorSize::B4096)
        .with_iv_offset(SectorCount::new(64));
    let plaintext = noise(3, 8192);
    let cipher = spec.build(&key(&noise(4, 64)), None).unwrap();
    let mut sectors = vec![0; 8192];
    cipher.encrypt_sectors(SectorIndex::new(800), &plaintext, &mut sectors);
    let xts = Xts::new(&key(&noise(4, 64)), None).unwrap();
    for (index, number) in [864_u128, 872].into_iter().enumerate() {
        let range = 4096 * index..4096 * (index + 1);
        let mut unit = plaintext[range.clone()].to_vec();
        xts.encrypt_unit_in_place(&number.to_le_bytes(), &mut unit)
            .unwrap();
        assert_eq!(unit, sectors[range]);
    }
}

#[test]
fn broken_contracts_panic_in_every_method() {
    for notation in CipherSpec::SUPPORTED {
        let spec: CipherSpec = notation.parse().unwrap();
        let spec = spec.with_sector_size(SectorSize::B1024);
        let key = key(&noise(1, spec.key_lens_bytes()[0]));
        for backend in backends() {
            let cipher = spec.build(&key, Some(backend)).unwrap();
            assert_panics(&*cipher, 0, 1536, 1536);
            assert_panics(&*cipher, 1, 1024, 1024);
            assert_panics(&*cipher, 0, 1024, 2048);
        }
    }
}

fn assert_panics(cipher: &dyn SectorCipher, first: u64, src_len: usize, dst_len: usize) {
    let first = SectorIndex::new(first);
    let (src, mut dst) = (vec![0; src_len], vec![0; dst_len]);
    let panics = |work: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(work)).is_err();
    assert!(panics(&mut || cipher.encrypt_sectors(first, &src, &mut dst)));
    assert!(panics(&mut || cipher.decrypt_sectors(first, &src, &mut dst)));
    if src_len == dst_len {
        assert!(panics(&mut || cipher.encrypt_in_place(first, &mut dst)));
        assert!(panics(&mut || cipher.decrypt_in_place(first, &mut dst)));
    }
}

#[test]
fn ciphers_are_shared_between_threads_and_show_no_key() {
    let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
    let key_bytes = [0xa7; 64];
    for backend in backends() {
        let cipher = spec.build(&key(&key_bytes), Some(backend)).unwrap();
        assert_eq!(cipher.backend(), backend.name());
        let text = format!("{cipher:?}").to_lowercase();
        assert!(!text.contains("a7") && !text.contains("167"), "{text}");
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let cipher = Arc::clone(&cipher);
                std::thread::spawn(move || {
                    let mut buf = vec![1; 4096];
                    cipher.encrypt_in_place(SectorIndex::new(8), &mut buf);
                    buf
                })
            })
            .collect();
        let results: Vec<_> = workers.into_iter().map(|w| w.join().unwrap()).collect();
        assert_eq!(results[0], results[1]);
    }
}

/// What the environment asks for is what runs; run once more per backend by the test below.
#[test]
fn the_backend_is_the_one_asked_for() {
    let spec: CipherSpec = "aes-xts-plain64".parse().unwrap();
    let built = spec.build(&key(&noise(1, 64)), None);
    match std::env::var(BACKEND_VARIABLE) {
        Err(_) => {
            let fastest = Backend::available().next().unwrap();
            assert_eq!(built.unwrap().backend(), fastest.name());
        }
        Ok(name) if name.parse::<Backend>().is_ok() => assert_eq!(built.unwrap().backend(), name),
        Ok(name) => {
            let message = built.unwrap_err().to_string();
            assert!(message.contains(&name), "{message}");
            assert!(message.contains("portable"), "{message}");
        }
    }
}

#[test]
fn the_environment_forces_each_backend() {
    let names = backends().into_iter().map(Backend::name);
    for name in names.chain(["sse9"]) {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_backend_is_the_one_asked_for"])
            .env(BACKEND_VARIABLE, name)
            .status()
            .unwrap();
        assert!(status.success(), "{BACKEND_VARIABLE}={name}");
    }
}
