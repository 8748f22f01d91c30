//! Ctrl-C and its like: the first one asks a command to end, the second one ends it.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::cli::{Failure, Outcome};

/// A flag that the first interrupt or termination signal sets; the second one ends the process.
pub(super) fn flag() -> Outcome<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: the shutdown looks at the flag before the same signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::Internal(format!("signal handler: {error}")))?;
    }
    Ok(stop)
}
