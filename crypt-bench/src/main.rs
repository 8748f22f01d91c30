//! `crypt-bench`: measures block encryption.

fn main() {}
