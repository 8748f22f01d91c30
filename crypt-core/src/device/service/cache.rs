//! The write cache of a drive: room that fills at the speed of the host and drains at the speed of
//! the medium.

#![forbid(unsafe_code)]

/// State of a write cache. Between two writes its fill is taken to fall evenly.
#[derive(Clone, Debug)]
pub(super) struct WriteCache {
    capacity_bytes: f64,
    dirty_bytes: f64,
    updated_ns: u64,
    drained_ns: u64,
}

impl WriteCache {
    /// An empty cache.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        Self {
            capacity_bytes: capacity_bytes as f64,
            dirty_bytes: 0.0,
            updated_ns: 0,
            drained_ns: 0,
        }
    }

    /// Takes `len_bytes` that will take the medium `drain_ns`; the time at which there is room for
    /// them.
    pub(super) fn add(&mut self, now_ns: u64, len_bytes: u64, drain_ns: f64) -> u64 {
        self.settle(now_ns);
        let left_ns = self.drained_ns.saturating_sub(now_ns);
        let excess_bytes = self.dirty_bytes + len_bytes as f64 - self.capacity_bytes;
        let wait_ns = if excess_bytes > 0.0 && self.dirty_bytes > 0.0 {
            let share = (excess_bytes / self.dirty_bytes).min(1.0);
            (share * left_ns as f64) as u64
        } else {
            0
        };
        self.dirty_bytes += len_bytes as f64;
        self.drained_ns = self.drained_ns.max(now_ns).saturating_add(drain_ns as u64);
        now_ns.saturating_add(wait_ns)
    }

    /// When everything taken so far is on the medium.
    pub(super) fn drained_ns(&self) -> u64 {
        self.drained_ns
    }

    fn settle(&mut self, now_ns: u64) {
        let Some(passed_ns) = now_ns.checked_sub(self.updated_ns) else {
            return;
        };
        let span_ns = self.drained_ns.saturating_sub(self.updated_ns);
        let left = if span_ns == 0 {
            0.0
        } else {
            (1.0 - passed_ns as f64 / span_ns as f64).max(0.0)
        };
        self.dirty_bytes *= left;
        self.updated_ns = now_ns;
    }
}
