//! fio's JSON, version 3, both ways: as a projection of results, for fio's tools (`write`, `cell`), and read
//! into results (`read`, `latency`, `asked`, `import`).
//!
//! Pure. Keys that fio has and that are not measured here are left out, rather than filled with zeros; what fio
//! does not say is absent from results or a doubt. `log` writes the lines of fio's log files.

#![forbid(unsafe_code)]

pub mod asked;
pub mod bins;
pub mod cell;
pub mod import;
pub mod latency;
pub mod log;
pub mod read;
pub mod write;
