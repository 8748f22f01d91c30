//! fio's JSON, version 3, as a projection of results: what fio's tools read, from what was measured.
//!
//! Pure. Keys that fio has and that are not measured here are left out, rather than filled with zeros.

#![forbid(unsafe_code)]

pub mod bins;
pub mod cell;
pub mod write;
