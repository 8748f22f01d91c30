//! No cipher touches a byte outside its buffers: every buffer is tried right in front of a page that
//! can't be accessed, and right behind one. A kernel that reads or writes too far ends the process.

#![allow(unsafe_code, reason = "pages without access need system calls")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use crypt_core::cipher::Backend;
use crypt_core::cipher::xts::Xts;
use crypt_core::key::Key;
use crypt_core::spec::CipherSpec;
use crypt_core::units::{SectorIndex, SectorSize};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

const PAGE_LEN: usize = 4096;

/// Memory between two pages that can't be accessed.
struct Guarded {
    start: *mut u8,
    len: usize,
}

impl Guarded {
    /// `pages` pages of accessible memory.
    fn new(pages: usize) -> Self {
        let len = pages * PAGE_LEN;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let whole = len + 2 * PAGE_LEN;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let start = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), whole, access, MapFlags::PRIVATE)
        };
        let start: *mut u8 = start.unwrap().cast();
        for guard in [start, start.wrapping_add(PAGE_LEN + len)] {
            // SAFETY: the first or the last page of our own mapping, which nothing refers to.
            unsafe { rustix::mm::mprotect(guard.cast(), PAGE_LEN, MprotectFlags::empty()) }
                .unwrap();
        }
        Self {
            start: start.wrapping_add(PAGE_LEN),
            len,
        }
    }

    /// The first or the last `len` bytes.
    fn edge(&mut self, edge: Edge, len: usize) -> &mut [u8] {
        let skip = match edge {
            Edge::First => 0,
            Edge::Last => self.len.checked_sub(len).unwrap(),
        };
        // SAFETY: `skip + len` bytes are accessible, initialised by the kernel, and borrowed from
        // `self` only.
        unsafe { std::slice::from_raw_parts_mut(self.start.wrapping_add(skip), len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let start = self.start.wrapping_sub(PAGE_LEN).cast();
        // SAFETY: exactly what `new` mapped; the slices of `edge` have ended.
        unsafe { rustix::mm::munmap(start, self.len + 2 * PAGE_LEN) }.unwrap();
    }
}

#[derive(Clone, Copy)]
enum Edge {
    First,
    Last,
}

/// The backends with unsafe code.
fn backends() -> impl Iterator<Item = Backend> {
    let safe = [Backend::Portable, Backend::Batched];
    Backend::available().filter(move |backend| !safe.contains(backend))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 256) as u8).collect()
}

#[test]
fn data_units_of_every_length_from_16_to_4112() {
    let key = Key::from_bytes(&bytes(64)).unwrap();
    let iv = [3; 16];
    let plaintext = bytes(4112);
    let oracle = Xts::new(&key, Some(Backend::Portable)).unwrap();
    let ciphers: Vec<Xts> = backends()
        .map(|backend| Xts::new(&key, Some(backend)).unwrap())
        .collect();
    let (mut one, mut other) = (Guarded::new(2), Guarded::new(2));
    for len in 16..=4112 {
        let plaintext = &plaintext[..len];
        let mut expected = vec![0; len];
        oracle.encrypt_unit(&iv, plaintext, &mut expected).unwrap();
        for xts in &ciphers {
            for edge in [Edge::First, Edge::Last] {
                let (src, dst) = (one.edge(edge, len), other.edge(edge, len));
                src.copy_from_slice(plaintext);
                xts.encrypt_unit(&iv, src, dst).unwrap();
                assert!(dst == expected, "{xts:?}: {len} bytes, encrypt");
                xts.decrypt_unit_in_place(&iv, dst).unwrap();
                assert!(dst == plaintext, "{xts:?}: {len} bytes, decrypt in place");
                src.copy_from_slice(&expected);
                xts.decrypt_unit(&iv, src, dst).unwrap();
                assert!(dst == plaintext, "{xts:?}: {len} bytes, decrypt");
                xts.encrypt_unit_in_place(&iv, dst).unwrap();
                assert!(dst == expected, "{xts:?}: {len} bytes, encrypt in place");
            }
        }
    }
}

#[test]
fn sectors_of_every_size_and_mode() {
    let with_kernels = |text: &&&str| text.starts_with("aes-");
    for text in CipherSpec::SUPPORTED.iter().filter(with_kernels) {
        for sector_size in SectorSize::ALL {
            let spec: CipherSpec = text.parse().unwrap();
            for count in [1, 2, 5, 9, 33] {
                check_sectors(&spec.with_sector_size(sector_size), count);
            }
        }
    }
}

fn check_sectors(spec: &CipherSpec, count: usize) {
    let key = Key::from_bytes(&bytes(spec.key_lens_bytes()[0])).unwrap();
    let len = count * spec.sector_size().bytes();
    let plaintext = bytes(len);
    let first = SectorIndex::new(64);
    let pages = len.div_ceil(PAGE_LEN);
    let (mut one, mut other) = (Guarded::new(pages), Guarded::new(pages));
    for backend in backends() {
        let cipher = spec.build(&key, Some(backend)).unwrap();
        for edge in [Edge::First, Edge::Last] {
            let (src, dst) = (one.edge(edge, len), other.edge(edge, len));
            src.copy_from_slice(&plaintext);
            cipher.encrypt_sectors(first, src, dst);
            cipher.decrypt_in_place(first, dst);
            assert!(
                dst == plaintext,
                "{spec} {backend}: {count} sectors in place"
            );
            cipher.encrypt_in_place(first, src);
            cipher.decrypt_sectors(first, src, dst);
            assert!(dst == plaintext, "{spec} {backend}: {count} sectors");
        }
    }
}
