//! Memory that any number of threads copy to and from, in stripes that are locked.
//!
//! A stripe is short, so that threads at work on parts of one request don't wait for each other. Stripes
//! that lie together are a group, and a copy takes the locks of all it needs in a group before its first
//! byte: an atomic operation waits until every store before it has reached the cache, which between the
//! stripes of one large write is a third of its time. Within a group locks are taken in order, and no copy
//! holds those of two groups, so none waits in a circle.
//!
//! The locks of a group are one of a fixed number of sets, chosen by a hash: a lock per stripe would be a
//! table that a device of some size doesn't find in the caches, at several percent of a random write of
//! 4 KiB. Two groups that share a set only wait for each other.
//!
//! A copy over several groups is not atomic against another one on the same range. Ranges are the
//! caller's to check; one that ends behind the memory is a bug, and panics. Nothing allocates after
//! construction.

use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::pages::Pages;

/// Bytes behind one lock.
const STRIPE_BYTES: u64 = 16 << 10;
/// Stripes of a group.
const STRIPES: usize = 8;
/// Bytes that are copied at a time at most.
const GROUP_BYTES: u64 = STRIPE_BYTES * STRIPES as u64;
/// Sets of locks for each processor: of so many copies, a thread's and another's meet at one set.
const SETS_PER_CPU: usize = 256;
/// Most sets: enough for any machine, and less than seven mebibytes.
const MOST_SETS: usize = 1 << 16;

/// The locks of one group.
type Locks = [RwLock<()>; STRIPES];

/// Zeroed memory in stripes. `Sync`: the locks order all access.
pub(super) struct Stripes {
    /// Reached through its start only, never as a whole.
    memory: Pages,
    len_bytes: u64,
    /// As many as a power of two.
    sets: Box<[Locks]>,
    /// Of a hash: what is left of it is the number of a set.
    shift: u32,
}

impl Stripes {
    /// Zeroed memory; `None` where the system has none.
    pub(super) fn zeroed(len_bytes: u64) -> Option<Self> {
        let memory = Pages::zeroed(1, usize::try_from(len_bytes).ok()?)?.pop()?;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let sets = (cpus * SETS_PER_CPU).next_power_of_two().min(MOST_SETS);
        Some(Self {
            memory,
            len_bytes,
            sets: (0..sets).map(|_| Locks::default()).collect(),
            shift: u64::BITS - sets.trailing_zeros(),
        })
    }

    /// Copies from the memory at `offset_bytes`.
    pub(super) fn read(&self, mut offset_bytes: u64, mut rest: &mut [u8]) {
        while !rest.is_empty() {
            let piece = self.piece(offset_bytes, rest.len() as u64);
            let (now, later) = rest.split_at_mut(piece.len);
            piece.shared(|| {
                // SAFETY: the piece lies in the memory, which `self` owns, and the locks of its stripes
                // are held: nobody writes to it.
                now.copy_from_slice(unsafe {
                    NonNull::slice_from_raw_parts(piece.start, piece.len).as_ref()
                });
            });
            rest = later;
            offset_bytes += piece.len as u64;
        }
    }

    /// Copies to the memory at `offset_bytes`.
    pub(super) fn write(&self, mut offset_bytes: u64, mut rest: &[u8]) {
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.change(offset_bytes, rest.len() as u64, |to| {
                to.copy_from_slice(&rest[..to.len()]);
            }));
            offset_bytes += now.len() as u64;
            rest = later;
        }
    }

    /// Zeroes the memory from `offset_bytes` on.
    pub(super) fn write_zeroes(&self, mut offset_bytes: u64, mut rest_bytes: u64) {
        while rest_bytes > 0 {
            let len = self.change(offset_bytes, rest_bytes, |to| to.fill(0)) as u64;
            offset_bytes += len;
            rest_bytes -= len;
        }
    }

    /// Changes what lies in the first group of a range; the length of that.
    #[inline]
    fn change(&self, offset_bytes: u64, len_bytes: u64, change: impl FnOnce(&mut [u8])) -> usize {
        let piece = self.piece(offset_bytes, len_bytes);
        piece.exclusive(|| {
            // SAFETY: the piece lies in the memory, which `self` owns, and the locks of its stripes are
            // held: nobody else reads or writes it.
            change(unsafe { NonNull::slice_from_raw_parts(piece.start, piece.len).as_mut() });
        });
        piece.len
    }

    /// The first piece of a range, which lies in one group.
    #[inline]
    fn piece(&self, offset_bytes: u64, len_bytes: u64) -> Piece<'_> {
        let in_group = offset_bytes % GROUP_BYTES;
        let len_bytes = len_bytes.min(GROUP_BYTES - in_group);
        let end_bytes = offset_bytes.checked_add(len_bytes);
        assert!(
            end_bytes.is_some_and(|end_bytes| end_bytes <= self.len_bytes),
            "{len_bytes} bytes at {offset_bytes} of {}",
            self.len_bytes
        );
        let end_stripe = (in_group + len_bytes).div_ceil(STRIPE_BYTES);
        let stripes = (in_group / STRIPE_BYTES) as usize..end_stripe as usize;
        Piece {
            locks: &self.locks(offset_bytes / GROUP_BYTES)[stripes],
            // SAFETY: not behind the end of the memory, as was just seen.
            start: unsafe { self.memory.start().add(offset_bytes as usize) },
            len: len_bytes as usize,
        }
    }

    /// Neighbours, and streams that run side by side, have different sets: multiplying by 2^64 over
    /// the golden ratio spreads both (Knuth, "The Art of Computer Programming", 6.4).
    #[inline]
    fn locks(&self, group: u64) -> &Locks {
        let hash = group.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.sets[(hash >> self.shift) as usize]
    }
}

/// Part of one group.
struct Piece<'a> {
    /// Those of its stripes.
    locks: &'a [RwLock<()>],
    start: NonNull<u8>,
    len: usize,
}

// A copy can't panic half-way, so a poisoned lock guards memory that is as good as any.
impl Piece<'_> {
    /// Copies while nobody writes to the piece.
    #[inline]
    fn shared(&self, copy: impl FnOnce()) {
        fn share(lock: &RwLock<()>) -> RwLockReadGuard<'_, ()> {
            lock.read().unwrap_or_else(PoisonError::into_inner)
        }
        holding(self.locks, share, copy);
    }

    /// Copies while nobody else uses the piece.
    #[inline]
    fn exclusive(&self, copy: impl FnOnce()) {
        fn own(lock: &RwLock<()>) -> RwLockWriteGuard<'_, ()> {
            lock.write().unwrap_or_else(PoisonError::into_inner)
        }
        holding(self.locks, own, copy);
    }
}

/// Takes the locks in order, copies, and gives them back.
fn holding<'a, G>(
    locks: &'a [RwLock<()>],
    take: impl Fn(&'a RwLock<()>) -> G,
    copy: impl FnOnce(),
) {
    let Some((lock, rest)) = locks.split_first() else {
        return copy();
    };
    let _held = take(lock);
    if rest.is_empty() {
        copy();
    } else {
        holding(rest, take, copy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_cross_groups_and_end_with_the_memory() {
        let len_bytes = GROUP_BYTES + 3 * STRIPE_BYTES + 512;
        let stripes = Stripes::zeroed(len_bytes).unwrap();
        let data: Vec<u8> = (0..len_bytes - 100).map(|n| (n % 251) as u8).collect();
        stripes.write(100, &data);
        stripes.write_zeroes(GROUP_BYTES - 7, STRIPE_BYTES + 14);
        let mut read = vec![1; len_bytes as usize];
        stripes.read(0, &mut read);
        let zeroes = GROUP_BYTES - 7..GROUP_BYTES + STRIPE_BYTES + 7;
        for (n, &byte) in (0..).zip(&read) {
            let expected = match n {
                n if n < 100 || zeroes.contains(&n) => 0,
                n => data[n as usize - 100],
            };
            assert_eq!(byte, expected, "at {n}");
        }
    }

    #[test]
    fn threads_never_see_half_of_a_group() {
        let stripes = Stripes::zeroed(2 * GROUP_BYTES).unwrap();
        std::thread::scope(|scope| {
            for byte in 1..3 {
                let stripes = &stripes;
                scope.spawn(move || {
                    for _ in 0..100 {
                        stripes.write(0, &[byte; 2 * GROUP_BYTES as usize]);
                    }
                });
            }
            let mut read = [0; GROUP_BYTES as usize];
            for n in 0..100 {
                stripes.read(n % 2 * GROUP_BYTES, &mut read);
                assert!(read.iter().all(|&byte| byte == read[0]));
            }
        });
    }

    #[test]
    fn neighbours_have_different_locks() {
        let stripes = Stripes::zeroed(512).unwrap();
        for group in 0..1000 {
            for other in group + 1..group + 32 {
                assert!(!std::ptr::eq(stripes.locks(group), stripes.locks(other)));
            }
        }
    }

    #[test]
    #[should_panic(expected = "1 bytes at 512 of 512")]
    fn nothing_reaches_behind_the_end() {
        Stripes::zeroed(512).unwrap().write(512, &[1]);
    }
}
