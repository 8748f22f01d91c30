//! Ciphers in dm-crypt's notation, and keys of each length.
//!
//! The first byte of an input is the length of a key, the rest the notation.

#![forbid(unsafe_code)]

use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;

use super::{check_message, words};

/// Parses a cipher, builds it and encrypts a sector.
///
/// # Panics
/// Where it prints as another one, or a sector does not come back.
pub fn check(input: &[u8]) -> bool {
    let Some((len, text)) = input.split_first() else {
        return false;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let spec: CipherSpec = match text.parse() {
        Ok(spec) => spec,
        Err(error) => {
            let error: crypt_core::Error = error;
            check_message(&error.to_string(), text.len());
            return false;
        }
    };
    assert_eq!(
        spec.to_string().parse::<CipherSpec>().ok(),
        Some(spec),
        "prints as another one"
    );
    let key = Key::from_bytes(&vec![0x5a; usize::from(*len)]);
    let Ok(key) = key else {
        return false;
    };
    match spec.build(&key, None) {
        Ok(_) => {
            assert!(
                spec.key_lens_bytes().contains(&usize::from(*len)),
                "a key that does not fit"
            );
            true
        }
        Err(error) => {
            check_message(&error.to_string(), text.len());
            assert!(
                !spec.key_lens_bytes().contains(&usize::from(*len)),
                "{error}"
            );
            false
        }
    }
}

/// Each cipher with a key that fits.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let ciphers: [(u8, &str); 7] = [
        (64, "aes-xts-plain64"),
        (32, "aes-xts-plain64be"),
        (32, "aes-cbc-essiv:sha256"),
        (16, "aes-cbc-plain"),
        (32, "xchacha12,aes-adiantum-plain64"),
        (0, "cipher_null-ecb"),
        (64, "aes-xts-eboiv"),
    ];
    ciphers
        .iter()
        .map(|(len, text)| [&[*len], text.as_bytes()].concat())
        .collect()
}

/// Parts of the notation.
#[must_use]
pub fn pieces() -> Vec<String> {
    words(&[
        "aes",
        "xts",
        "cbc",
        "-",
        ":",
        ",",
        "plain64",
        "plain",
        "benbi",
        "null",
        "essiv:sha256",
        "eboiv",
        "lmk",
        "cipher_null-ecb",
        "xchacha12",
        "adiantum",
        "capi:",
        "xts(aes)",
        "(",
        ")",
        "\0",
        "é",
        " ",
        "@",
        "\u{20}",
        "\u{40}",
    ])
    .collect()
}
