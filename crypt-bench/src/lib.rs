//! `crypt-bench`: measures block encryption over matrices of workloads, ciphers and policies.
//!
//! One direction: definition -> matrix -> cell -> generate -> drive -> record -> summary -> result ->
//! report. The middle is pure; files, threads and terminals sit at the two ends.

#![forbid(unsafe_code)]

pub mod account;
pub mod buckets;
pub mod calibrate;
pub mod cell;
pub mod cli;
pub mod cmd;
pub mod definition;
pub mod diff;
pub mod dip;
pub mod doctor;
pub mod doubt;
pub mod drive;
pub mod fio;
pub mod gate;
pub mod generate;
pub mod history;
pub mod host;
pub mod input;
mod issuer;
pub mod jobfile;
pub mod journal;
pub mod judge;
pub mod log;
pub mod manifest;
mod mark;
pub mod matrix;
pub mod merge;
pub mod noise;
pub mod play;
pub mod preset;
pub mod progress;
pub mod record;
pub mod report;
pub mod result;
pub mod run;
pub mod score;
pub mod simulate;
pub mod statistics;
pub mod storage;
pub mod summary;
pub mod target;
#[cfg(test)]
pub(crate) mod testing;
pub mod trace;
pub mod verify;
