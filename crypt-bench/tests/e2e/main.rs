//! Runs the real program and reads everything it writes.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod cipher;
mod ciphertext;
mod common;
mod compare;
mod doctor;
mod export;
mod gate;
mod hostile;
mod import;
mod interrupt;
mod keep;
mod matrix;
mod noise;
mod objectives;
mod refuse;
mod score;
mod simulate;
