//! Every specification, key size, sector size and numbering of sectors against what a kernel's dm-crypt
//! wrote: SHA-256 of its ciphertext, from `scripts/dm-crypt-vectors.sh`. Every backend decrypts and
//! encrypts it.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeSet;

use crypt_core::cipher::Backend;
use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;
use crypt_core::units::{SectorCount, SectorIndex, SectorSize};
use sha2::{Digest, Sha256};

const VECTORS: &str = include_str!("data/dm_crypt.txt");

/// What the script encrypts: the numbers from 100000 on, one a line.
fn plaintext() -> Vec<u8> {
    let lines = (100_000..200_000).map(|number| format!("{number}\n"));
    let mut text = lines.collect::<String>().into_bytes();
    text.truncate(64 << 10);
    text
}

/// One line of the file.
struct Vector {
    line: &'static str,
    spec: CipherSpec,
    key: Key,
    sha256: &'static str,
}

impl Vector {
    fn parse(line: &'static str) -> Self {
        let fields: Vec<&str> = line.split(' ').collect();
        let [notation, key_len, sector_size, numbering, offset, sha256] = fields[..] else {
            panic!("{line}");
        };
        let sector_size = SectorSize::from_bytes(sector_size.parse().unwrap()).unwrap();
        let spec: CipherSpec = notation.parse().unwrap();
        let key: Vec<u8> = (0..key_len.parse().unwrap()).collect();
        Self {
            line,
            spec: spec
                .with_sector_size(sector_size)
                .with_iv_large_sectors(numbering == "large")
                .with_iv_offset(SectorCount::new(offset.parse().unwrap())),
            key: Key::from_bytes(&key).unwrap(),
            sha256,
        }
    }

    fn check(&self, backend: Backend, plaintext: &[u8]) {
        let cipher = self.spec.build(&self.key, Some(backend)).unwrap();
        let first = SectorIndex::new(0);
        let mut ciphertext = vec![0; plaintext.len()];
        cipher.encrypt_sectors(first, plaintext, &mut ciphertext);
        let digest = Sha256::digest(&ciphertext);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, self.sha256, "{backend}: {}", self.line);
        cipher.decrypt_in_place(first, &mut ciphertext);
        assert!(ciphertext == plaintext, "{backend}: {}", self.line);
    }
}

fn vectors() -> impl Iterator<Item = Vector> {
    let lines = VECTORS.lines().filter(|line| !line.starts_with('#'));
    lines.map(Vector::parse)
}

#[test]
fn ciphertext_is_the_kernels() {
    let plaintext = plaintext();
    for vector in vectors() {
        for backend in Backend::available() {
            vector.check(backend, &plaintext);
        }
    }
}

#[test]
fn no_specification_is_missing() {
    let covered: BTreeSet<String> = vectors().map(|vector| vector.spec.to_string()).collect();
    for notation in CipherSpec::SUPPORTED {
        assert!(
            covered.contains(*notation) || *notation == "cipher_null-ecb",
            "{notation}"
        );
    }
    assert_eq!(vectors().count(), 434);
}
