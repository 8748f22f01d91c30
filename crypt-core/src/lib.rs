//! dm-crypt compatible sector encryption as a pipeline with pluggable dispatch policies.

pub mod buffer;
pub mod cipher;
pub mod clock;
pub mod device;
pub mod error;
pub mod exec;
pub mod iv;
pub mod key;
pub mod policy;
pub mod request;
mod secret;
pub mod spec;
mod sys;
pub mod units;
