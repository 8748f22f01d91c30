//! `crypt-bench`: measures block encryption. See `crypt-bench --help`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    crypt_bench::cli::main()
}
