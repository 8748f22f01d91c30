//! dm-crypt's write order: everything that has arrived is issued in sector order, then everything
//! that arrived meanwhile, and so on. A pure machine.
//!
//! dm-crypt's write thread takes its whole rb-tree of pending writes, issues it in order, and looks
//! again (`dmcrypt_write`, `drivers/md/dm-crypt.c`); encryption on many CPUs scrambles the order of
//! writes, and disks pay for that. Writes to the same sector keep the order in which they arrived.
#![forbid(unsafe_code)]

/// Writes that wait to be issued. Bounded; allocates at construction only.
#[derive(Debug)]
pub struct SortedWrites<T> {
    arrived: Vec<Entry<T>>,
    /// The batch being issued, last first.
    batch: Vec<Entry<T>>,
    capacity: usize,
    arrivals: u64,
}

#[derive(Debug)]
struct Entry<T> {
    offset_bytes: u64,
    arrival: u64,
    write: T,
}

impl<T> SortedWrites<T> {
    /// Room for `capacity` writes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            arrived: Vec::with_capacity(capacity),
            batch: Vec::with_capacity(capacity),
            capacity,
            arrivals: 0,
        }
    }

    /// Takes in a write to `offset_bytes`.
    ///
    /// # Errors
    /// Gives it back where the machine is full.
    pub fn insert(&mut self, offset_bytes: u64, write: T) -> Result<(), T> {
        if self.len() == self.capacity {
            return Err(write);
        }
        self.arrived.push(Entry {
            offset_bytes,
            arrival: self.arrivals,
            write,
        });
        self.arrivals += 1;
        Ok(())
    }

    /// The next write to issue. When a batch is used up, all that has arrived becomes the next one.
    pub fn next_write(&mut self) -> Option<T> {
        if self.batch.is_empty() {
            std::mem::swap(&mut self.batch, &mut self.arrived);
            let last_first =
                |entry: &Entry<T>| std::cmp::Reverse((entry.offset_bytes, entry.arrival));
            self.batch.sort_unstable_by_key(last_first);
        }
        self.batch.pop().map(|entry| entry.write)
    }

    /// Writes held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arrived.len() + self.batch.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether as much is held as there is room for.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(writes: &mut SortedWrites<char>) -> String {
        std::iter::from_fn(|| writes.next_write()).collect()
    }

    #[test]
    fn a_batch_comes_in_sector_order_and_equal_sectors_in_order_of_arrival() {
        let mut writes = SortedWrites::new(5);
        for (offset, name) in [(9, 'd'), (1, 'a'), (5, 'b'), (5, 'c')] {
            writes.insert(offset, name).unwrap();
        }
        assert_eq!(drain(&mut writes), "abcd");
    }

    #[test]
    fn what_arrives_during_a_batch_waits_for_the_next() {
        let mut writes = SortedWrites::new(4);
        writes.insert(5, 'a').unwrap();
        writes.insert(9, 'b').unwrap();
        assert_eq!(writes.next_write(), Some('a'));
        writes.insert(7, 'd').unwrap();
        writes.insert(1, 'c').unwrap();
        assert_eq!(drain(&mut writes), "bcd");
    }

    #[test]
    fn a_full_machine_gives_the_write_back() {
        let mut writes = SortedWrites::new(1);
        writes.insert(5, 'a').unwrap();
        assert!(writes.is_full());
        assert_eq!(writes.insert(6, 'b'), Err('b'));
        assert_eq!(drain(&mut writes), "a");
        assert!(writes.is_empty());
    }
}
