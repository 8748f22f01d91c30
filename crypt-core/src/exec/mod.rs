//! The worker side: cipher work handed off by queues, run on a pool of threads, handed back.
#![forbid(unsafe_code)]

pub mod lane;
pub mod pool;
pub mod span;
pub mod work;

pub use lane::Lane;
pub use pool::{PoolLoad, WorkerConfig, WorkerPool};
pub use span::{Source, Span, run_span};
pub use work::{Done, DoneKind, Route, Work};

mod interim;
pub use interim::{WriteThread, calibrate};
