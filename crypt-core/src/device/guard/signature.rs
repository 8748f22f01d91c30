//! Marks that file systems, volume managers, encryption and partition tables leave on a device.
//!
//! A small table of our own, of places and bytes as in the specifications and kernel sources of
//! each format. It is there to notice that a disk isn't empty, not to tell exactly what is on it.

#![forbid(unsafe_code)]

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, Result};

/// A signature that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its name in a permission.
    pub(super) name: &'static str,
    /// Device that carries it.
    on: String,
    offset_bytes: u64,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            on,
            offset_bytes,
        } = self;
        write!(f, "a signature of {name} at byte {offset_bytes} of {on}")
    }
}

/// What was found, as the end of a sentence.
pub(super) fn list(found: &[Found]) -> String {
    let listed: Vec<String> = found.iter().map(Found::to_string).collect();
    if listed.is_empty() {
        String::new()
    } else {
        format!("; it carries {}", listed.join(", "))
    }
}

/// A place counted from the start, or from the end.
#[derive(Clone, Copy, Debug)]
enum Place {
    Start(u64),
    End(u64),
}

use Place::{End, Start};

struct Mark {
    name: &'static str,
    place: Place,
    bytes: &'static [u8],
}

const fn mark(name: &'static str, place: Place, bytes: &'static [u8]) -> Mark {
    Mark { name, place, bytes }
}

/// Marks that are long enough not to be met by chance.
const MARKS: &[Mark] = &[
    mark("gpt", Start(512), b"EFI PART"),
    mark("gpt", Start(4096), b"EFI PART"),
    mark("gpt", End(512), b"EFI PART"),
    mark("gpt", End(4096), b"EFI PART"),
    mark("xfs", Start(0), b"XFSB"),
    mark("btrfs", Start(0x1_0040), b"_BHRfS_M"),
    mark("bcachefs", Start(4096 + 24), BCACHEFS),
    mark("bcache", Start(4096 + 24), BCACHE),
    mark("f2fs", Start(1024), &[0x10, 0x20, 0xf5, 0xf2]),
    mark("erofs", Start(1024), &[0xe2, 0xe1, 0xf5, 0xe0]),
    mark("jfs", Start(0x8000), b"JFS1"),
    mark("reiserfs", Start(0x1_0034), b"ReIsEr"),
    mark("squashfs", Start(0), b"hsqs"),
    mark("iso9660", Start(0x8001), b"CD001"),
    mark("udf", Start(0x8001), b"BEA01"),
    mark("apfs", Start(32), b"NXSB"),
    mark("ntfs", Start(3), b"NTFS    "),
    mark("exfat", Start(3), b"EXFAT   "),
    mark("refs", Start(3), b"ReFS\0\0\0\0"),
    mark("bitlocker", Start(3), b"-FVE-FS-"),
    mark("vfat", Start(82), b"FAT32   "),
    mark("vfat", Start(54), b"FAT16   "),
    mark("vfat", Start(54), b"FAT12   "),
    mark("luks", Start(0), b"LUKS\xba\xbe"),
    mark("luks", Start(0x4000), b"SKUL\xba\xbe"),
    mark("luks", Start(0x8000), b"SKUL\xba\xbe"),
    mark("luks", Start(0x1_0000), b"SKUL\xba\xbe"),
    mark("luks", Start(0x2_0000), b"SKUL\xba\xbe"),
    mark("luks", Start(0x4_0000), b"SKUL\xba\xbe"),
    mark("luks", Start(0x8_0000), b"SKUL\xba\xbe"),
    mark("luks", Start(0x10_0000), b"SKUL\xba\xbe"),
    mark("luks", Start(0x20_0000), b"SKUL\xba\xbe"),
    mark("luks", Start(0x40_0000), b"SKUL\xba\xbe"),
    mark("lvm", Start(0), b"LABELONE"),
    mark("lvm", Start(512), b"LABELONE"),
    mark("lvm", Start(1024), b"LABELONE"),
    mark("lvm", Start(1536), b"LABELONE"),
    mark("md", Start(0), MD),
    mark("md", Start(4096), MD),
    mark("dm-verity", Start(0), b"verity\0\0"),
    mark("dm-integrity", Start(0), b"integrt\0"),
    mark("vdo", Start(0), b"dmvdo001"),
    mark("bluestore", Start(0), b"bluestore block device"),
    mark("swap", Start(4096 - 10), b"SWAPSPACE2"),
    mark("swap", Start(4096 - 10), b"SWAP-SPACE"),
    mark("swap", Start(0x1_0000 - 10), b"SWAPSPACE2"),
];

const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const BCACHE: &[u8] = &[
    0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81,
];
const BCACHEFS: &[u8] = &[
    0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef,
];

/// Where the first label of a ZFS member keeps its uberblocks, one or more KiB each.
const ZFS_UBERBLOCKS: (u64, usize) = (128 << 10, 128 << 10);
const ZFS_UBERBLOCK: u64 = 0x00ba_b10c;

/// Reads the marks of a device; `on` is its name in messages.
pub(super) fn scan(path: &Path, on: &str, size_bytes: u64) -> Result<Vec<Found>> {
    let failed = |source| {
        let what = format!("look for signatures on {}", path.display());
        Error::io(what, source)
    };
    let file = File::open(path).map_err(failed)?;
    let reader = Reader { file, size_bytes };
    let mut found: Vec<Found> = Vec::new();
    let mut add = |name, offset_bytes| {
        if !found.iter().any(|found| found.name == name) {
            let on = on.to_owned();
            found.push(Found {
                name,
                on,
                offset_bytes,
            });
        }
    };
    for mark in MARKS {
        if let Some(offset_bytes) = reader.holds(mark).map_err(failed)? {
            add(mark.name, offset_bytes);
        }
    }
    for offset_bytes in md_places(size_bytes) {
        let md = mark("md", Start(offset_bytes), MD);
        if reader.holds(&md).map_err(failed)?.is_some() {
            add("md", offset_bytes);
        }
    }
    let ext = reader.bytes::<1024>(1024).map_err(failed)?;
    if ext.is_some_and(|block| is_ext(&block)) {
        add("ext", 1080);
    }
    if let Some(offset_bytes) = reader.zfs().map_err(failed)? {
        add("zfs", offset_bytes);
    }
    // A boot sector of FAT or NTFS ends like a partition table.
    let boot = reader.bytes::<512>(0).map_err(failed)?;
    if boot.is_some_and(|sector| is_mbr(&sector)) {
        add("mbr", 510);
    }
    Ok(found)
}

struct Reader {
    file: File,
    size_bytes: u64,
}

impl Reader {
    /// Where the mark is, if it is there.
    fn holds(&self, mark: &Mark) -> std::io::Result<Option<u64>> {
        let offset_bytes = match mark.place {
            Start(offset_bytes) => Some(offset_bytes),
            End(offset_bytes) => self.size_bytes.checked_sub(offset_bytes),
        };
        let Some(offset_bytes) = offset_bytes else {
            return Ok(None);
        };
        let mut bytes = [0; 32];
        let bytes = &mut bytes[..mark.bytes.len()];
        let here = self.read(offset_bytes, bytes)? && bytes == mark.bytes;
        Ok(here.then_some(offset_bytes))
    }

    fn bytes<const N: usize>(&self, offset_bytes: u64) -> std::io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        Ok(self.read(offset_bytes, &mut bytes)?.then_some(bytes))
    }

    fn zfs(&self) -> std::io::Result<Option<u64>> {
        let (start_bytes, len) = ZFS_UBERBLOCKS;
        let mut ring = vec![0; len];
        if !self.read(start_bytes, &mut ring)? {
            return Ok(None);
        }
        let place = ring.chunks_exact(1024).position(|block| {
            let magic = block.first_chunk().copied().unwrap_or_default();
            [u64::from_le_bytes(magic), u64::from_be_bytes(magic)].contains(&ZFS_UBERBLOCK)
        });
        Ok(place.map(|place| start_bytes + 1024 * place as u64))
    }

    /// Fills `bytes`; `false` where the device ends before.
    fn read(&self, offset_bytes: u64, bytes: &mut [u8]) -> std::io::Result<bool> {
        let end_bytes = offset_bytes.checked_add(bytes.len() as u64);
        if end_bytes.is_none_or(|end_bytes| end_bytes > self.size_bytes) {
            return Ok(false);
        }
        self.file.read_exact_at(bytes, offset_bytes)?;
        Ok(true)
    }
}

/// Superblocks of md at the end of a device: versions 1.0 and 0.90.
fn md_places(size_bytes: u64) -> impl Iterator<Item = u64> {
    let sectors = size_bytes / 512;
    let version_1_0 = sectors.checked_sub(16).map(|sector| (sector & !7) * 512);
    let version_0_90 = (size_bytes & !0xffff).checked_sub(0x1_0000);
    version_1_0.into_iter().chain(version_0_90)
}

/// The superblock of ext2, ext3 or ext4. Its magic number has two bytes only, so the block size and
/// the revision must make sense too.
fn is_ext(superblock: &[u8; 1024]) -> bool {
    let word = |at: usize| {
        superblock[at..]
            .first_chunk()
            .map(|&word| u32::from_le_bytes(word))
    };
    superblock[56..58] == [0x53, 0xef]
        && word(24).is_some_and(|log_block_size| log_block_size <= 6)
        && word(76).is_some_and(|revision| revision <= 1)
}

/// A partition table in a boot record: the two bytes at its end, and entries that make sense.
fn is_mbr(sector: &[u8; 512]) -> bool {
    let entries = || sector[446..510].chunks_exact(16);
    sector[510..] == [0x55, 0xaa]
        && entries().all(|entry| entry[0] & 0x7f == 0)
        && entries().any(|entry| entry[4] != 0)
}
