//! dm-crypt compatible sector encryption as a pipeline with pluggable dispatch policies.

pub mod buffer;
pub mod cipher;
pub mod clock;
pub mod device;
pub mod error;
pub mod exec;
pub mod iv;
pub mod key;
mod pages;
pub mod pipeline;
pub mod policy;
pub mod queue;
pub mod request;
mod secret;
pub mod spec;
mod sys;
pub mod units;
pub mod volume;
pub mod volume_io;

pub use error::{Errno, Error, ErrorKind, Result};
pub use queue::{Completion, Queue, Ticket};
pub use volume::{QueueOptions, Volume, VolumeBuilder};
pub use volume_io::VolumeIo;

/// The example in the README, compiled and run by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
