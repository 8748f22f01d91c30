//! Memory straight from the system, cut into pieces that each have one owner.
//!
//! The mapping asks for huge pages (`MADV_HUGEPAGE`, the kernel's
//! `Documentation/admin-guide/mm/transhuge.rst`): data that is copied once at random addresses misses
//! the TLB on every 4 KiB otherwise, and a virtual machine pays for each miss twice. A system that has
//! none to give backs it with small pages, and nothing else changes. Pages are zero, and backed when
//! first touched or, for slots, at once. The mapping lives until the last of its pieces and guards is dropped.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Alignment of every piece whose length is a multiple of it.
pub(crate) const PAGE_BYTES: usize = 4096;
/// A huge page of x86-64, and of aarch64 with 4 KiB pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Exclusive, owned access to one piece of a mapping. Not `Clone`; `Send`.
pub(crate) struct Pages {
    mapping: Arc<Mapping>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a piece is plain memory, reached through this value only.
unsafe impl Send for Pages {}
// SAFETY: `&Pages` gives out shared references only; see `Send`.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps `count` zeroed pieces of `len` bytes each, one after the other.
    ///
    /// `None` where the system refuses, or the size can't be expressed, or is zero.
    pub(crate) fn zeroed(count: usize, len: usize) -> Option<Vec<Self>> {
        let mapping = Arc::new(Mapping::new(count.checked_mul(len)?)?);
        let pieces = (0..count).map(|index| Self {
            mapping: Arc::clone(&mapping),
            // SAFETY: `index` is below `count`, so the offset is inside the mapping.
            start: unsafe { mapping.start.add(index * len) },
            len,
        });
        Some(pieces.collect())
    }

    /// As [`Pages::zeroed`], but with memory behind them from the start: the first touch of a page takes the kernel
    /// a while, and the host of a virtual machine much longer, which is nothing for a data path.
    pub(crate) fn backed(count: usize, len: usize) -> Option<Vec<Self>> {
        let pieces = Self::zeroed(count, len)?;
        if let Some(first) = pieces.first() {
            first.mapping.back(count * len);
        }
        Some(pieces)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping holds `len` initialised bytes there and lives as long as this value,
        // the only one for its piece, so no `&mut` to it exists.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` is the only access to the only value for this piece.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Where the piece starts, for registration with the kernel.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Keeps the mapping in place, without access to its bytes.
    pub(crate) fn guard(&self) -> MappingGuard {
        MappingGuard(Arc::clone(&self.mapping))
    }
}

/// Keeps a mapping in place and tells its pieces from others.
#[derive(Clone)]
pub(crate) struct MappingGuard(Arc<Mapping>);

impl MappingGuard {
    pub(crate) fn owns(&self, pages: &Pages) -> bool {
        Arc::ptr_eq(&self.0, &pages.mapping)
    }
}

impl fmt::Debug for MappingGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MappingGuard").field(&self.0.start).finish()
    }
}

/// The mapping, and the aligned part of it that is used.
struct Mapping {
    start: NonNull<u8>,
    mapped: NonNull<c_void>,
    mapped_len: usize,
}

// SAFETY: the mapping is plain memory; access to it is governed by the `Pages`, one per piece.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` gives out addresses only; see `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(len: usize) -> Option<Self> {
        // Whole huge pages, unless that would take twice the memory asked for.
        let huge = len >= HUGE_PAGE_BYTES / 2;
        let mapped_len = if huge {
            len.checked_next_multiple_of(HUGE_PAGE_BYTES)?
                .checked_add(HUGE_PAGE_BYTES)?
        } else {
            len.checked_next_multiple_of(PAGE_BYTES)?
        };
        let mapped = map(mapped_len).ok()?;
        let start = mapped.cast::<u8>();
        if !huge {
            return Some(Self {
                start,
                mapped,
                mapped_len,
            });
        }
        let skip = start.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: one huge page more than needed is mapped, and `skip` is less than one.
        let start = unsafe { start.add(skip.min(HUGE_PAGE_BYTES)) };
        advise_huge(start, mapped_len - HUGE_PAGE_BYTES);
        Some(Self {
            start,
            mapped,
            mapped_len,
        })
    }
}

impl Mapping {
    /// Has the kernel back the first `len` bytes. Where it can't (before Linux 5.14), that happens when they are
    /// first touched.
    fn back(&self, len: usize) {
        let len = len.next_multiple_of(PAGE_BYTES);
        // SAFETY: the mapping holds `len` bytes in whole pages from `start` on; no content changes.
        let _ = unsafe {
            rustix::mm::madvise(self.start.as_ptr().cast(), len, Advice::LinuxPopulateWrite)
        };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; no piece of it is left.
        let unmapped = unsafe { rustix::mm::munmap(self.mapped.as_ptr(), self.mapped_len) };
        debug_assert!(unmapped.is_ok(), "unmapping our own pages");
    }
}

/// Zeroed private pages of at least `len` bytes.
pub(crate) fn map(len: usize) -> rustix::io::Result<NonNull<c_void>> {
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no memory of
    // anybody.
    let address = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }?;
    NonNull::new(address).ok_or(rustix::io::Errno::NOMEM)
}

/// Asks for huge pages. A kernel without them refuses, and small pages do as well.
fn advise_huge(start: NonNull<u8>, len: usize) {
    // SAFETY: advice about our own mapping; it changes no content.
    let _ = unsafe { rustix::mm::madvise(start.as_ptr().cast(), len, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_zeroed_and_disjoint() {
        for len in [PAGE_BYTES, 1 << 20] {
            let mut pieces = Pages::zeroed(3, len).unwrap();
            for (n, piece) in pieces.iter_mut().enumerate() {
                assert_eq!(piece.start().as_ptr() as usize % PAGE_BYTES, 0);
                assert_eq!(piece.bytes().len(), len);
                assert!(piece.bytes().iter().all(|&byte| byte == 0));
                piece.bytes_mut().fill(n as u8 + 1);
            }
            for (n, piece) in pieces.iter().enumerate() {
                assert!(piece.bytes().iter().all(|&byte| byte == n as u8 + 1));
            }
        }
    }

    #[test]
    fn memory_outlives_all_but_its_last_owner() {
        let mut pieces = Pages::zeroed(2, PAGE_BYTES).unwrap();
        let mut last = pieces.pop().unwrap();
        let guard = last.guard();
        drop(pieces);
        last.bytes_mut().fill(7);
        assert!(guard.owns(&last));
        assert!(!guard.owns(&Pages::zeroed(1, PAGE_BYTES).unwrap()[0]));
        assert!(last.bytes().iter().all(|&byte| byte == 7));
    }

    #[test]
    fn backed_pages_are_resident_before_they_are_touched() {
        let resident_pages = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages = text.split(' ').nth(1).unwrap();
            pages.parse::<usize>().unwrap()
        };
        let before = resident_pages();
        let pieces = Pages::backed(64, 1 << 20).unwrap();
        let grown = resident_pages().saturating_sub(before) * PAGE_BYTES;
        // Other tests run at the same time and may give some back.
        assert!(grown > 32 << 20, "{grown}");
        assert!(pieces.iter().all(|piece| piece.bytes()[0] == 0));
    }

    #[test]
    fn large_mappings_start_on_a_huge_page() {
        let pieces = Pages::zeroed(2, HUGE_PAGE_BYTES).unwrap();
        assert_eq!(pieces[0].start().as_ptr() as usize % HUGE_PAGE_BYTES, 0);
    }

    #[test]
    fn sizes_that_cannot_be_had_are_refused() {
        assert!(Pages::zeroed(usize::MAX, 2).is_none());
        assert!(Pages::zeroed(1, usize::MAX - 1).is_none());
        assert!(Pages::zeroed(0, 4096).is_none());
    }
}
