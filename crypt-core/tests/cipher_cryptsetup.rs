//! Every IV generator and sector size against images that `cryptsetup` encrypts in userspace.
//!
//! Prints `skipped` where cryptsetup is not installed. Not covered, because cryptsetup needs the
//! kernel for them: `aes-xts-eboiv`, Adiantum, `iv_large_sectors`. `cipher_dm_crypt.rs` has those.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crypt_core::cipher::Backend;
use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;
use crypt_core::units::{SectorIndex, SectorSize};

const PASSPHRASE: &[u8] = b"correct horse";
const DATA_LEN: usize = 256 << 10;
const HEADER_LEN: u64 = 32 << 20;

/// Specifications that cryptsetup can encrypt without the kernel's help.
fn in_userspace() -> impl Iterator<Item = &'static str> {
    CipherSpec::SUPPORTED
        .iter()
        .copied()
        .filter(|text| text.starts_with("aes-") && *text != "aes-xts-eboiv")
}

#[test]
fn sectors_of_512_bytes() {
    check_all(SectorSize::B512);
}

#[test]
fn sectors_of_1024_bytes() {
    check_all(SectorSize::B1024);
}

#[test]
fn sectors_of_2048_bytes() {
    check_all(SectorSize::B2048);
}

#[test]
fn sectors_of_4096_bytes() {
    check_all(SectorSize::B4096);
}

fn check_all(sector_size: SectorSize) {
    if Command::new("cryptsetup")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: cryptsetup is not installed");
        return;
    }
    for text in in_userspace() {
        let spec: CipherSpec = text.parse().unwrap();
        check_image(&spec.with_sector_size(sector_size));
    }
}

/// Has cryptsetup encrypt a file, and decrypts it with each backend.
fn check_image(spec: &CipherSpec) {
    let plaintext: Vec<u8> = (0..DATA_LEN).map(|i| (i * 7 + i / 251) as u8).collect();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    let mut file = std::fs::File::create_new(&image).unwrap();
    file.write_all(&plaintext).unwrap();
    file.set_len(DATA_LEN as u64 + HEADER_LEN).unwrap();
    encrypt(&image, spec);

    let (key, offset_bytes) = dump(&image);
    let mut file = std::fs::File::open(&image).unwrap();
    let mut ciphertext = vec![0; DATA_LEN];
    file.seek(SeekFrom::Start(offset_bytes)).unwrap();
    file.read_exact(&mut ciphertext).unwrap();
    for backend in Backend::available() {
        let cipher = spec.build(&key, Some(backend)).unwrap();
        let mut buf = vec![0; DATA_LEN];
        cipher.decrypt_sectors(SectorIndex::new(0), &ciphertext, &mut buf);
        let sector_size = spec.sector_size();
        assert!(buf == plaintext, "{spec} {sector_size} {backend}: decrypt");
        cipher.encrypt_in_place(SectorIndex::new(0), &mut buf);
        assert!(buf == ciphertext, "{spec} {sector_size} {backend}: encrypt");
    }
}

fn encrypt(image: &Path, spec: &CipherSpec) {
    let mut command = Command::new("cryptsetup");
    command
        .args(["reencrypt", "--encrypt", "--type", "luks2", "--batch-mode"])
        .args(["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"])
        .args(["--reduce-device-size", "32M", "--key-file", "-"])
        .arg("--cipher")
        .arg(spec.to_string())
        .arg("--sector-size")
        .arg(spec.sector_size().to_string())
        .arg("--key-size")
        .arg((8 * spec.key_lens_bytes()[0]).to_string())
        .arg(image);
    run(&mut command);
}

/// The volume key and where the data starts.
fn dump(image: &Path) -> (Key, u64) {
    let header = run(Command::new("cryptsetup").arg("luksDump").arg(image));
    let offset = header
        .lines()
        .find_map(|line| line.trim().strip_prefix("offset: "))
        .and_then(|rest| rest.split(' ').next())
        .unwrap();
    let mut command = Command::new("cryptsetup");
    command
        .args(["luksDump", "--dump-volume-key", "--batch-mode"])
        .args(["--key-file", "-"])
        .arg(image);
    let keys = run(&mut command);
    let (_, digits) = keys.split_once("MK dump:").unwrap();
    let digits: String = digits.split_whitespace().collect();
    (Key::from_hex(&digits).unwrap(), offset.parse().unwrap())
}

/// Runs cryptsetup with the passphrase on its standard input.
fn run(command: &mut Command) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that needs no passphrase may be gone already.
    let _ = child.stdin.take().unwrap().write_all(PASSPHRASE);
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {complaint}");
    String::from_utf8(stdout).unwrap()
}
