//! AES-256-XTS of `crypt-core` and of its peers behind one trait, for the program and the benchmark
//! that compare them.

pub mod subject;
