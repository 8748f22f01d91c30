//! How many requests were in flight.

#![forbid(unsafe_code)]

use crate::record::Window;

/// Requests in flight, averaged over the window.
#[derive(Debug)]
pub(super) struct DepthMean {
    window: Window,
    looked_ns: u64,
    depth_ns: u128,
}

impl DepthMean {
    pub(super) fn new(window: &Window) -> Self {
        Self {
            window: *window,
            looked_ns: window.start_ns,
            depth_ns: 0,
        }
    }

    /// So many were in flight since the last look.
    pub(super) fn look(&mut self, now_ns: u64, in_flight: u32) {
        let until_ns = now_ns.min(self.window.end_ns);
        if until_ns > self.looked_ns {
            self.depth_ns += u128::from(until_ns - self.looked_ns) * u128::from(in_flight);
            self.looked_ns = until_ns;
        }
    }

    pub(super) fn mean(&self) -> f64 {
        self.depth_ns as f64 / self.window.length_ns().max(1) as f64
    }
}
