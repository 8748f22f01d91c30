//! dm-crypt compatible sector encryption as a pipeline with pluggable dispatch policies.

pub mod buffer;
pub mod cipher;
pub mod clock;
pub mod device;
pub mod error;
pub mod exec;
pub mod policy;
pub mod request;
mod sys;
pub mod units;
