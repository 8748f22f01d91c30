//! Damaged input for everything in `crypt-core` and `crypt-bench` that reads text.
//!
//! A [`targets::Target`] reads an input and panics where something is wrong with the answer: an accepted job whose
//! ranges or totals are nonsense, a refusal that says nothing. libFuzzer finds inputs with the programs in
//! `fuzz_targets`; `crypt-fuzz` does it on any toolchain, by damaging a corpus ([`mutate`]) in a process that may
//! die ([`inside`]) and is watched by another ([`watch`]).

#![forbid(unsafe_code)]

pub mod inside;
pub mod minimise;
pub mod mutate;
pub mod targets;
pub mod watch;
