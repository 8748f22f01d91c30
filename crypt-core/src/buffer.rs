//! Page-aligned memory of a queue's slots: one slab, allocated at start, handed out as owned slots.
//!
//! A [`SlotBuffer`] is the exclusive right to one slot's two areas. It travels by value: into the
//! device operation or the worker task that needs the memory, and back in the completion. Whoever
//! holds it may touch the bytes; nobody else can. The slab lives until the last of its slots is
//! dropped; a holder that can't get a slot back from the kernel must forget it, which leaks the
//! slab instead of freeing memory that is still referenced.
//!
//! Allocates once, in [`SlotBuffer::allocate`]; never panics on any size.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

/// Alignment of every area, enough for O_DIRECT on any block size up to the page.
pub const AREA_ALIGN_BYTES: usize = 4096;

/// One of the two areas of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// Plaintext: what the caller fills before a write, and where a read arrives.
    Data,
    /// Ciphertext of a write on its way to the device.
    Bounce,
}

/// Exclusive, owned access to one slot's memory. Not `Clone`; `Send`.
pub struct SlotBuffer {
    slab: Arc<Slab>,
    index: u32,
}

impl SlotBuffer {
    /// Allocates `slots` slots of two zeroed areas of `area_len` bytes each, as one slab.
    ///
    /// `area_len` is rounded up to [`AREA_ALIGN_BYTES`].
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] where the memory can't be had, with the figures.
    pub fn allocate(slots: u32, area_len: usize) -> Result<Vec<Self>> {
        let slab = Arc::new(Slab::new(slots, area_len)?);
        Ok((0..slots)
            .map(|index| Self {
                slab: Arc::clone(&slab),
                index,
            })
            .collect())
    }

    /// Index of the slot in its slab.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The bytes of one area.
    #[must_use]
    pub fn area(&self, area: Area) -> &[u8] {
        let start = self.slab.area_ptr(self.index, area);
        // SAFETY: the slab owns `area_len` initialised bytes there and lives as long as `self.slab`;
        // this value is the only one for its slot, so no `&mut` to the area exists.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.slab.area_len) }
    }

    /// The bytes of one area, to write into.
    #[must_use]
    pub fn area_mut(&mut self, area: Area) -> &mut [u8] {
        let start = self.slab.area_ptr(self.index, area);
        // SAFETY: as in `area`; `&mut self` is the only access to the only value for this slot.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), self.slab.area_len) }
    }

    /// Both areas at once: `(data, bounce)`.
    #[must_use]
    pub fn split_mut(&mut self) -> (&mut [u8], &mut [u8]) {
        let len = self.slab.area_len;
        let data = self.slab.area_ptr(self.index, Area::Data);
        let bounce = self.slab.area_ptr(self.index, Area::Bounce);
        // SAFETY: the data area is owned by this slot, borrowed through `&mut self`.
        let data = unsafe { std::slice::from_raw_parts_mut(data.as_ptr(), len) };
        // SAFETY: the bounce area is disjoint from the data area, and borrowed the same way.
        let bounce = unsafe { std::slice::from_raw_parts_mut(bounce.as_ptr(), len) };
        (data, bounce)
    }

    /// Length of each area in bytes.
    #[must_use]
    pub fn area_len(&self) -> usize {
        self.slab.area_len
    }

    /// Keeps the slot's slab in place, without access to its bytes.
    #[must_use]
    pub fn slab(&self) -> SlabGuard {
        SlabGuard(Arc::clone(&self.slab))
    }

    /// Start and length of the slot's two areas taken together, for registration with a ring.
    #[must_use]
    pub fn registration(&self) -> (*mut u8, usize) {
        (
            self.slab.area_ptr(self.index, Area::Data).as_ptr(),
            2 * self.slab.area_len,
        )
    }
}

impl fmt::Debug for SlotBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotBuffer")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// Keeps a slab allocated and tells its slots from others, without access to the bytes: for a ring
/// that has the memory registered.
#[derive(Clone)]
pub struct SlabGuard(Arc<Slab>);

impl SlabGuard {
    /// Whether the slot lies in this slab.
    #[must_use]
    pub fn owns(&self, slot: &SlotBuffer) -> bool {
        Arc::ptr_eq(&self.0, &slot.slab)
    }
}

impl fmt::Debug for SlabGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SlabGuard").field(&self.0.start).finish()
    }
}

/// The allocation behind the slots: slot 0 data, slot 0 bounce, slot 1 data, ...
struct Slab {
    start: NonNull<u8>,
    layout: Layout,
    area_len: usize,
}

// SAFETY: the slab is plain memory; access to it is governed by the `SlotBuffer`s, one per slot.
unsafe impl Send for Slab {}
// SAFETY: `&Slab` gives out addresses only; see `Send`.
unsafe impl Sync for Slab {}

impl Slab {
    fn new(slots: u32, area_len: usize) -> Result<Self> {
        let refused = || {
            let asked = format!("{slots} slots of 2 x {area_len} bytes");
            Error::new(
                ErrorKind::LimitExceeded,
                format!("no memory for {asked}; use a smaller depth or block size"),
            )
        };
        if slots == 0 || area_len == 0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "a slab needs a slot and a length",
            ));
        }
        let area_len = area_len
            .checked_next_multiple_of(AREA_ALIGN_BYTES)
            .ok_or_else(refused)?;
        let total = (slots as usize)
            .checked_mul(2)
            .and_then(|n| n.checked_mul(area_len));
        let layout = total
            .and_then(|total| Layout::from_size_align(total, AREA_ALIGN_BYTES).ok())
            .ok_or_else(refused)?;
        // SAFETY: the layout has a non-zero size, checked above.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or_else(refused)?;
        Ok(Self {
            start,
            layout,
            area_len,
        })
    }

    fn area_ptr(&self, index: u32, area: Area) -> NonNull<u8> {
        let areas = 2 * index as usize + usize::from(area == Area::Bounce);
        // SAFETY: `index` is below the number of slots (private field, set in `allocate`), so the
        // offset stays inside the allocation.
        unsafe { self.start.add(areas * self.area_len) }
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; no `SlotBuffer` is left.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_aligned_disjoint_and_zeroed() {
        let mut slots = SlotBuffer::allocate(3, 5000).unwrap();
        for (n, slot) in slots.iter_mut().enumerate() {
            assert_eq!(slot.area_len(), 8192);
            let (data, bounce) = slot.split_mut();
            assert_eq!(data.as_ptr() as usize % AREA_ALIGN_BYTES, 0);
            assert!(data.iter().chain(bounce.iter()).all(|&byte| byte == 0));
            data.fill(n as u8 + 1);
            bounce.fill(n as u8 + 101);
        }
        for (n, slot) in slots.iter().enumerate() {
            assert!(
                slot.area(Area::Data)
                    .iter()
                    .all(|&byte| byte == n as u8 + 1)
            );
            assert!(
                slot.area(Area::Bounce)
                    .iter()
                    .all(|&byte| byte == n as u8 + 101)
            );
        }
    }

    #[test]
    fn absurd_sizes_are_refused_with_the_figures() {
        let error = SlotBuffer::allocate(u32::MAX, usize::MAX / 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("4294967295 slots"), "{error}");
    }
}
