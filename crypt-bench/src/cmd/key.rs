//! Bytes of keys, from a file or at random. Wiped when they are dropped.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use zeroize::Zeroizing;

/// Where random keys come from.
pub(super) const RANDOM: &str = "/dev/urandom";

/// The first bytes of `source`.
///
/// # Errors
/// Where it can't be read, or is shorter.
pub(super) fn read(source: &Path, len_bytes: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; len_bytes]);
    File::open(source)?.read_exact(&mut bytes)?;
    Ok(bytes)
}
