//! Copies a file into an encrypted image and back, inline on this thread.
//!
//! `cargo run --release -p crypt-core --example encrypt_file -- PLAIN IMAGE`
//!
//! The image is what dm-crypt would have on disk for `aes-xts-plain64` with the fixed key below;
//! a real program takes its key from somewhere safe.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use crypt_core::Volume;
use crypt_core::device::file::{FileDevice, FileOptions};
use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;

const PIECE: usize = 1 << 20;

/// A key for a demonstration: two different halves of 32 equal bytes.
fn demonstration_key() -> Vec<u8> {
    [[0x42; 32], [0x43; 32]].concat()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [plain, image] = arguments.as_slice() else {
        return Err("usage: encrypt_file PLAIN IMAGE (IMAGE must not exist)".into());
    };
    let bytes = fs::read(plain)?;
    // An encrypted volume holds whole sectors; the rest of the last one is zero plaintext.
    let size = bytes.len().next_multiple_of(4096).max(4096);
    File::create_new(image)?.set_len(size as u64)?;

    let volume = open(Path::new(image))?;
    let mut io = volume.io()?;
    io.write_zeroes_at(4096, size as u64 - 4096)?;
    for (n, piece) in bytes.chunks(PIECE).enumerate() {
        io.write_at(piece, (n * PIECE) as u64)?;
    }
    io.flush()?;

    let mut back = vec![0; bytes.len()];
    io.read_at(&mut back, 0)?;
    if back != bytes {
        return Err("the image does not read back as the file".into());
    }
    println!("{image}: {size} bytes, backend {}", volume.cipher_backend());
    Ok(())
}

fn open(image: &Path) -> Result<Volume, crypt_core::Error> {
    let spec: CipherSpec = "aes-xts-plain64".parse()?;
    let cipher = spec.build(&Key::from_bytes(&demonstration_key())?, None)?;
    let device = Arc::new(FileDevice::open(image, FileOptions::default())?);
    Volume::builder(device).cipher(cipher).build()
}
