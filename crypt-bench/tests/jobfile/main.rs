//! Job files as a whole: our own examples against fio's understanding of them, and nonsense made of
//! them.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "in a test a failure is a panic")]

mod buffers;
mod commands;
mod common;
mod devices;
mod differential;
mod doubts;
mod examples;
mod files;
mod loads;
mod logs;
mod outputs;
mod runner;
mod runs;
mod traces;
mod verify;
