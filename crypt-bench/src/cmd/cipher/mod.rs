//! `crypt-bench cipher`: how fast the ciphers are on this machine, beside the limit of its AES
//! instructions and a copy in memory. Needs no root, no kernel support and no files.
//!
//! What belongs together - one request size, one sector size, one number of threads - runs in turns
//! of short slices, in place. The best counts: the speed of the code, not what else the machine did.

#![forbid(unsafe_code)]

mod lengths;
mod measure;
mod plan;
mod show;

use std::path::{Path, PathBuf};

use crypt_core::cipher::Backend;
use crypt_core::spec::CipherSpec;
use serde::Serialize;

use super::output::{stdout_style, write_file, write_stdout};
use crate::cli::{Failure, Outcome};
use crate::definition::quantity::Size;
use crate::report::curve::Curves;

/// Measure ciphers in memory, beside the limit of the AES instructions and memory copy.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Ciphers in dm-crypt notation, comma-separated
    #[arg(long, value_name = "LIST", value_parser = plan::parse_ciphers,
          default_value = "aes-xts-plain64,aes-cbc-essiv:sha256,xchacha12,aes-adiantum-plain64")]
    pub cipher: Ciphers,

    /// Key sizes in bits; XTS keys count both halves [default: all that a cipher takes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub key_bits: Vec<u32>,

    /// Bytes per IV: 512, 1k, 2k, 4k
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "512,4k"
    )]
    pub sector_size: Vec<Size>,

    /// Bytes per request, from 512 to 64m
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "512,4k,16k,64k,256k,1m,4m"
    )]
    pub request: Vec<Size>,

    /// Implementations: vaes512, vaes256, aesni, batched, portable, or `all` that this CPU has
    /// [default: the fastest, or what CRYPT_CORE_BACKEND names]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub backend: Vec<String>,

    /// Numbers of threads, each with buffers of its own
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1")]
    pub threads: Vec<usize>,

    /// Directions: encrypt, decrypt
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_enum,
        default_value = "encrypt,decrypt"
    )]
    pub direction: Vec<Direction>,

    /// Time for each figure
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1)]
    pub seconds: f64,

    /// Print one JSON array of records instead of a table and a heat map
    #[arg(long)]
    pub json: bool,

    /// Also write the heat map as a picture
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// Also measure AES-256-XTS over data units of 512 bytes to 64 KiB, aligned and not, and write the
    /// curves as a picture; takes ten times --seconds for each
    #[arg(long, value_name = "FILE")]
    pub curve: Option<PathBuf>,
}

/// Cipher specifications. Their notation may contain commas, so they are parsed as a whole.
#[derive(Clone, Debug)]
pub struct Ciphers(pub Vec<CipherSpec>);

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Plaintext to ciphertext
    Encrypt,
    /// Ciphertext to plaintext
    Decrypt,
    /// Neither: memory copy.
    #[value(skip)]
    Copy,
}

/// One figure. The field names are the keys of the JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// dm-crypt notation, `aes-ecb-limit`, or `memcpy`.
    pub cipher: String,
    /// Size of the key, 0 for a copy.
    pub key_bits: u32,
    /// Bytes per IV of the ciphers that this record was measured beside.
    pub sector_size: u64,
    /// Bytes per request.
    pub request_bytes: u64,
    /// The implementation that ran.
    pub backend: String,
    /// Threads, each with buffers of its own.
    pub threads: usize,
    /// Which way.
    pub direction: Direction,
    /// Throughput of all threads together, in 10^9 bytes per second.
    pub gb_per_s: f64,
    /// Cycles of the time stamp counter that one thread spent per byte. It counts at a constant rate,
    /// not with the core's clock. `null` where the machine has no such counter.
    pub cycles_per_byte: Option<f64>,
}

/// Name of the records of the AES limit.
const LIMIT: &str = "aes-ecb-limit";

/// Runs the subcommand.
///
/// # Errors
/// Values that can't be measured, and a picture that can't be written.
pub fn run(args: &Args) -> Outcome {
    let groups = plan::groups(args)?;
    for path in [&args.svg, &args.curve].into_iter().flatten() {
        check_folder(path)?;
    }
    let mut records = Vec::new();
    for group in &groups {
        records.extend(measure::group(group)?);
    }
    let map = show::heat_map(&records);
    if let Some(path) = &args.svg {
        write_file(path, &map.standalone_svg())?;
    }
    if let Some(path) = &args.curve {
        write_file(path, &curves(args)?.standalone_svg())?;
    }
    if args.json {
        return write_stdout(&show::json(&records)?);
    }
    write_stdout(&show::text(&records, &map, stdout_style()))
}

/// Measuring takes long enough to say at once that a picture has no place to go.
fn check_folder(path: &Path) -> Outcome {
    match path.parent() {
        Some(folder) if folder != Path::new("") && !folder.is_dir() => {
            Err(Failure::usage(format!(
                "{}: there is no folder {}",
                path.display(),
                folder.display()
            )))
        }
        _ => Ok(()),
    }
}

fn curves(args: &Args) -> Outcome<Curves> {
    let time = 10 * plan::time(args.seconds)?;
    let curves = lengths::curves(&backends(&args.backend)?, &args.direction, time);
    curves.map_err(|error| usage(&error))
}

/// An error of the library as one of the program.
fn usage(error: &crypt_core::error::Error) -> Failure {
    Failure::usage(error.to_string())
}

/// The backends that the user named.
fn backends(names: &[String]) -> Outcome<Vec<Backend>> {
    if names.is_empty() {
        return Ok(vec![Backend::choose(None).map_err(|error| usage(&error))?]);
    }
    if names.iter().any(|name| name == "all") {
        return Ok(Backend::available().collect());
    }
    names
        .iter()
        .map(|name| {
            let backend = name
                .parse()
                .and_then(|backend| Backend::choose(Some(backend)));
            backend.map_err(|error| usage(&error))
        })
        .collect()
}
