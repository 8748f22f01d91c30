//! Page-aligned memory of a queue's slots: one slab, mapped at start, handed out as owned slots.
//!
//! A [`SlotBuffer`] is the exclusive right to one slot's two areas. It travels by value: into the
//! device operation or the worker task that needs the memory, and back in the completion. Whoever
//! holds it may touch the bytes; nobody else can. The slab lives until the last of its slots is
//! dropped; a holder that can't get a slot back from the kernel must forget it, which leaks the
//! slab instead of freeing memory that is still referenced. Huge pages are used where the system has
//! them and the slab is large enough.
//!
//! Allocates once, in [`SlotBuffer::allocate`]; never panics on any size.

#![forbid(unsafe_code)]

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::pages::{MappingGuard, PAGE_BYTES, Pages};

/// Alignment of every area, enough for O_DIRECT on any block size up to the page.
pub const AREA_ALIGN_BYTES: usize = PAGE_BYTES;

/// One of the two areas of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// Plaintext: what the caller fills before a write, and where a read arrives.
    Data,
    /// Ciphertext of a write on its way to the device.
    Bounce,
}

/// Exclusive, owned access to one slot's memory. Not `Clone`; `Send`.
///
/// One pointer, because it travels through every stage of a request.
pub struct SlotBuffer(Box<Slot>);

struct Slot {
    /// The data area, then the bounce area.
    areas: Pages,
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
        if slots == 0 || area_len == 0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "a slab needs a slot and a length",
            ));
        }
        let slab = area_len
            .checked_next_multiple_of(AREA_ALIGN_BYTES)
            .and_then(|area_len| area_len.checked_mul(2))
            .and_then(|slot_len| Pages::backed(slots as usize, slot_len))
            .ok_or_else(|| no_memory(slots, area_len))?;
        let slots = (0..).zip(slab);
        let slots = slots.map(|(index, areas)| Self(Box::new(Slot { areas, index })));
        Ok(slots.collect())
    }

    /// Index of the slot in its slab.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// The bytes of one area.
    #[must_use]
    pub fn area(&self, area: Area) -> &[u8] {
        let (data, bounce) = self.0.areas.bytes().split_at(self.area_len());
        match area {
            Area::Data => data,
            Area::Bounce => bounce,
        }
    }

    /// The bytes of one area, to write into.
    #[must_use]
    pub fn area_mut(&mut self, area: Area) -> &mut [u8] {
        let (data, bounce) = self.split_mut();
        match area {
            Area::Data => data,
            Area::Bounce => bounce,
        }
    }

    /// Both areas at once: `(data, bounce)`.
    #[must_use]
    pub fn split_mut(&mut self) -> (&mut [u8], &mut [u8]) {
        let area_len = self.area_len();
        self.0.areas.bytes_mut().split_at_mut(area_len)
    }

    /// Length of each area in bytes.
    #[must_use]
    pub fn area_len(&self) -> usize {
        self.0.areas.bytes().len() / 2
    }

    /// Keeps the slot's slab in place, without access to its bytes.
    #[must_use]
    pub fn slab(&self) -> SlabGuard {
        SlabGuard(self.0.areas.guard())
    }

    /// Start and length of the slot's two areas taken together, for registration with a ring.
    #[must_use]
    pub fn registration(&self) -> (*mut u8, usize) {
        (self.0.areas.start().as_ptr(), self.0.areas.bytes().len())
    }
}

fn no_memory(slots: u32, area_len: usize) -> Error {
    let asked = format!("{slots} slots of 2 x {area_len} bytes");
    Error::new(
        ErrorKind::LimitExceeded,
        format!("no memory for {asked}; use a smaller depth or block size"),
    )
}

impl fmt::Debug for SlotBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotBuffer")
            .field("index", &self.0.index)
            .finish_non_exhaustive()
    }
}

/// Keeps a slab allocated and tells its slots from others, without access to the bytes: for a ring
/// that has the memory registered.
#[derive(Clone, Debug)]
pub struct SlabGuard(MappingGuard);

impl SlabGuard {
    /// Whether the slot lies in this slab.
    #[must_use]
    pub fn owns(&self, slot: &SlotBuffer) -> bool {
        self.0.owns(&slot.0.areas)
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
