//! Runs the real program and reads everything it writes.

#![forbid(unsafe_code)]

mod ciphertext;
mod common;
mod keep;
mod matrix;
mod refuse;
