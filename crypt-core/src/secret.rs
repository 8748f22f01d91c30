//! Memory for secrets: pages of their own that are locked into RAM where the system allows, left
//! out of core dumps, and wiped before they are given back.
//!
//! A [`Secret`] owns its value as a `Box` does. Locking is best effort, as `RLIMIT_MEMLOCK` may
//! forbid it; [`Secret::is_locked`] says what was had. Construction can't fail on a running system
//! short of memory exhaustion, which is reported as an error.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::Advice;
use zeroize::Zeroize;

use crate::error::{Error, Result};
use crate::pages;

/// Exclusive owner of one `T` in wiped, locked, undumped pages. At least page-aligned.
pub(crate) struct Secret<T> {
    value: NonNull<T>,
    locked: bool,
}

// SAFETY: the mapping belongs to this value alone, so sending it is sending the `T`.
unsafe impl<T: Send> Send for Secret<T> {}
// SAFETY: a shared `Secret` gives out `&T` only.
unsafe impl<T: Sync> Sync for Secret<T> {}

impl<T> Secret<T> {
    const MAP_LEN: usize = if size_of::<T>() == 0 {
        1
    } else {
        size_of::<T>()
    };

    /// Moves `value` into secret memory. To keep copies off the stack, move in a zeroed value and
    /// fill it in place.
    ///
    /// # Errors
    /// `ENOMEM` where no page can be mapped.
    pub(crate) fn new(value: T) -> Result<Self> {
        const {
            assert!(align_of::<T>() <= 4096, "pages must satisfy the alignment");
        }
        let address = pages::map(Self::MAP_LEN)
            .map_err(|errno| Error::io("map memory for key material", errno))?;
        let locked = protect_pages(address, Self::MAP_LEN);
        let place = address.cast::<T>();
        // SAFETY: the mapping is at least `size_of::<T>()` writable bytes, page-aligned, and owned
        // by nobody else.
        unsafe { place.write(value) };
        Ok(Self {
            value: place,
            locked,
        })
    }

    /// Whether the pages are locked into RAM.
    pub(crate) fn is_locked(&self) -> bool {
        self.locked
    }
}

impl<T> Deref for Secret<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `new` initialised the value, which lives until `drop`.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for Secret<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` is the only access.
        unsafe { self.value.as_mut() }
    }
}

impl<T> Drop for Secret<T> {
    fn drop(&mut self) {
        // SAFETY: the value is initialised and never used again.
        unsafe { self.value.drop_in_place() };
        let pages = NonNull::slice_from_raw_parts(self.value.cast::<u8>(), Self::MAP_LEN);
        // SAFETY: the mapping is still there, and the dropped value no longer lives in it.
        unsafe { &mut *pages.as_ptr() }.zeroize();
        // SAFETY: exactly what `new` mapped; nothing refers to it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.value.as_ptr().cast(), Self::MAP_LEN) };
        debug_assert!(unmapped.is_ok(), "unmapping our own pages");
    }
}

/// Keeps the pages out of core dumps and swap where allowed; returns whether they are locked.
fn protect_pages(address: NonNull<c_void>, len: usize) -> bool {
    // SAFETY: advice about our own mapping; it changes no content.
    let undumped = unsafe { rustix::mm::madvise(address.as_ptr(), len, Advice::LinuxDontDump) };
    debug_assert!(undumped.is_ok(), "the advice exists since Linux 3.4");
    // SAFETY: our own mapping; locking changes no content.
    unsafe { rustix::mm::mlock(address.as_ptr(), len) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_a_value_and_drops_it_once() {
        let shared = std::sync::Arc::new(());
        let secret = Secret::new((std::sync::Arc::clone(&shared), [7_u8; 100])).unwrap();
        assert_eq!(secret.1, [7; 100]);
        assert_eq!(std::sync::Arc::strong_count(&shared), 2);
        drop(secret);
        assert_eq!(std::sync::Arc::strong_count(&shared), 1);
    }

    #[test]
    fn pages_are_left_out_of_core_dumps() {
        let secret = Secret::new([1_u8; 64]).unwrap();
        let address = secret.as_ptr() as usize;
        let flags = mapping_flags(address);
        assert!(flags.contains(&"dd".to_owned()), "{flags:?}");
        assert_eq!(flags.contains(&"lo".to_owned()), secret.is_locked());
    }

    /// `VmFlags` of the mapping that holds `address`.
    fn mapping_flags(address: usize) -> Vec<String> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in smaps.lines() {
            if let Some((range, _)) = line.split_once(' ')
                && let Some((start, end)) = range.split_once('-')
                && let (Ok(start), Ok(end)) = (
                    usize::from_str_radix(start, 16),
                    usize::from_str_radix(end, 16),
                )
            {
                inside = (start..end).contains(&address);
            }
            if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
                return flags.split_whitespace().map(str::to_owned).collect();
            }
        }
        panic!("no mapping holds {address:#x}");
    }
}
