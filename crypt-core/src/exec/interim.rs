#![forbid(unsafe_code)]
//! Stands in until the workers land: no costs are measured, no write thread can be had.

use std::sync::Arc;

use super::WorkerPool;
use crate::cipher::SectorCipher;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::policy::Costs;

/// Measures nothing yet.
#[must_use]
pub fn calibrate(_: &Arc<WorkerPool>, _: &Arc<dyn SectorCipher>) -> Costs {
    Costs::default()
}

/// The sorting write thread.
#[derive(Debug)]
pub struct WriteThread;

impl WriteThread {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn start(_: Arc<dyn Device>) -> Result<Self> {
        Err(Error::new(
            ErrorKind::Unsupported,
            "the write thread is not there yet",
        ))
    }
}
