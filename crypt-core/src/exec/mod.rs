//! The worker side: cipher work handed off by queues, run on a pool of threads, handed back.
//!
//! A queue opens a [`Lane`] to a [`WorkerPool`] and hands it [`Work`]; what comes back is [`Done`].
//! One work may be cut into parts that several workers share. [`run_span`] does the same work on
//! the calling thread. [`WriteThread`] is dm-crypt's sorting writer, [`calibrate`] measures what a
//! hand-off costs, and [`encrypt_parallel`] is for bulk work outside any queue.
//!
//! Ownership: handed-off work owns its slot's memory until it comes back; exactly one result comes
//! back for each hand-off. Nothing is allocated and no thread is started after the start. Unsafe code
//! is in `task.rs` and `areas.rs`.
#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "addresses of memory that parts share")]
mod areas;
pub mod bulk;
mod calibrate;
mod counters;
mod cut;
#[cfg(test)]
mod follow;
mod idle;
pub mod lane;
mod latency;
mod mailbox;
#[cfg(all(test, loom))]
mod model;
mod payload;
pub mod pool;
mod presence;
mod record;
mod shared;
pub mod sorted_writes;
pub mod span;
pub mod spin_budget;
mod spinner;
mod sync;
#[expect(unsafe_code, reason = "the task cells; see its ownership protocol")]
mod task;
mod wake;
pub mod work;
mod worker;
mod write_inbox;
pub mod write_thread;
mod writer;

pub use bulk::{FileRange, crypt_file_parallel, decrypt_parallel, encrypt_parallel};
pub use calibrate::calibrate;
pub use lane::{Lane, Writes};
pub use latency::{Before, Latency};
pub use pool::{Pinning, PoolLoad, PoolStats, WorkerConfig, WorkerPool};
pub use sorted_writes::SortedWrites;
pub(crate) use span::run_checked;
pub use span::{Source, Span, run_span};
pub use spin_budget::SpinBudget;
pub use work::{Done, DoneKind, Route, Work};
pub use write_thread::{WriteThread, WriteThreadConfig};
