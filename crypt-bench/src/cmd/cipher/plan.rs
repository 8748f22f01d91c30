//! What to measure: the arguments, checked and multiplied out. Pure.

#![forbid(unsafe_code)]

use std::time::Duration;

use crypt_core::cipher::Backend;
use crypt_core::spec::{Algorithm, CipherSpec};
use crypt_core::units::SectorSize;

use super::{Args, Ciphers, Direction, backends};
use crate::cli::{Failure, Outcome};
use crate::definition::quantity::Size;

/// Largest request, so that the buffers fit into memory.
const MOST_REQUEST_BYTES: u64 = 64 << 20;

/// Most threads.
const MOST_THREADS: usize = 1024;

/// What runs in turns.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) sector_size: SectorSize,
    pub(super) request_bytes: usize,
    pub(super) threads: usize,
    pub(super) subjects: Vec<Subject>,
    /// Time for each subject.
    pub(super) time: Duration,
}

/// One line of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Subject {
    Copy,
    Limit {
        key_bits: u32,
        backend: Backend,
        direction: Direction,
    },
    Cipher {
        spec: CipherSpec,
        key_bits: u32,
        /// `None` for ciphers that exist once only.
        backend: Option<Backend>,
        direction: Direction,
    },
}

/// Parses a list of ciphers. A part without `-` belongs to the next one: `xchacha12,aes-adiantum-...`.
pub(super) fn parse_ciphers(text: &str) -> Result<Ciphers, String> {
    let mut specs = Vec::new();
    let mut before = String::new();
    for part in text.split(',') {
        before.push_str(part.trim());
        if before.contains('-') {
            let spec: CipherSpec = before.parse().map_err(|error| format!("{error}"))?;
            specs.push(spec);
            before.clear();
        } else {
            before.push(',');
        }
    }
    match before.trim_end_matches(',') {
        "" if !specs.is_empty() => Ok(Ciphers(specs)),
        rest => Err(format!(
            "`{rest}` is not a cipher: write it as dm-crypt does, for example aes-xts-plain64"
        )),
    }
}

/// The groups in order: by sector size, threads and request.
///
/// # Errors
/// Which value can't be measured, and what can.
pub(super) fn groups(args: &Args) -> Outcome<Vec<Group>> {
    let sector_sizes = sector_sizes(&args.sector_size)?;
    let requests = requests(args)?;
    let threads = threads(&args.threads)?;
    let time = time(args.seconds)?;
    let mut groups = Vec::new();
    for &sector_size in &sector_sizes {
        let subjects = subjects(args, sector_size)?;
        for &threads in &threads {
            for &request_bytes in &requests {
                if request_bytes.is_multiple_of(sector_size.bytes()) {
                    groups.push(Group {
                        sector_size,
                        request_bytes,
                        threads,
                        subjects: subjects.clone(),
                        time,
                    });
                }
            }
        }
    }
    if groups.is_empty() {
        return Err(Failure::usage(
            "no --request is a multiple of a --sector-size: nothing to measure",
        ));
    }
    Ok(groups)
}

fn sector_sizes(sizes: &[Size]) -> Outcome<Vec<SectorSize>> {
    let parse = |&size: &Size| {
        SectorSize::from_bytes(size.0).ok_or_else(|| {
            Failure::usage(format!(
                "--sector-size {size}: dm-crypt has sectors of 512, 1k, 2k or 4k"
            ))
        })
    };
    sizes.iter().map(parse).collect()
}

fn requests(args: &Args) -> Outcome<Vec<usize>> {
    let check = |&size: &Size| {
        let bytes = size.0;
        let fits = bytes > 0 && bytes.is_multiple_of(512) && bytes <= MOST_REQUEST_BYTES;
        usize::try_from(bytes).ok().filter(|_| fits).ok_or_else(|| {
            Failure::usage(format!(
                "--request {size}: give a multiple of 512 bytes, at most 64m"
            ))
        })
    };
    args.request.iter().map(check).collect()
}

fn threads(counts: &[usize]) -> Outcome<Vec<usize>> {
    match counts
        .iter()
        .find(|count| !(1..=MOST_THREADS).contains(*count))
    {
        None => Ok(counts.to_vec()),
        Some(count) => Err(Failure::usage(format!(
            "--threads {count}: give a number from 1 to {MOST_THREADS}"
        ))),
    }
}

/// The time for each figure.
///
/// # Errors
/// Where it is absurd.
pub(super) fn time(seconds: f64) -> Outcome<Duration> {
    if (0.001..=3600.0).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(Failure::usage(format!(
        "--seconds {seconds}: give a time between 0.001 and 3600 for each figure"
    )))
}

/// A copy, the limits of the key sizes that the ciphers use, and the ciphers.
fn subjects(args: &Args, sector_size: SectorSize) -> Outcome<Vec<Subject>> {
    let backends = backends(&args.backend)?;
    let mut limits = Vec::new();
    let mut ciphers = Vec::new();
    for spec in &args.cipher.0 {
        for key_bits in key_bits(args, spec) {
            for &backend in in_use(spec, &backends) {
                for &direction in &args.direction {
                    let (spec, backend) = (
                        spec.with_sector_size(sector_size),
                        has_backends(spec).then_some(backend),
                    );
                    ciphers.push(Subject::Cipher {
                        spec,
                        key_bits,
                        backend,
                        direction,
                    });
                    limits.extend(limit(&spec, key_bits, backend, direction));
                }
            }
        }
    }
    if ciphers.is_empty() {
        return Err(Failure::usage(format!(
            "no cipher takes a key of {:?} bits: leave out --key-bits for all that fit",
            args.key_bits
        )));
    }
    let mut subjects = vec![Subject::Copy];
    for limit in limits {
        if !subjects.contains(&limit) {
            subjects.push(limit);
        }
    }
    subjects.extend(ciphers);
    Ok(subjects)
}

fn key_bits(args: &Args, spec: &CipherSpec) -> Vec<u32> {
    let bits = spec.key_lens_bytes().iter().map(|&bytes| 8 * bytes as u32);
    bits.filter(|bits| args.key_bits.is_empty() || args.key_bits.contains(bits))
        .collect()
}

fn has_backends(spec: &CipherSpec) -> bool {
    matches!(spec.algorithm(), Algorithm::AesXts | Algorithm::AesCbc)
}

/// The backends to try a cipher on; one, whichever it is, for a cipher that exists once only.
fn in_use<'a>(spec: &CipherSpec, backends: &'a [Backend]) -> &'a [Backend] {
    if has_backends(spec) {
        backends
    } else {
        &backends[..1]
    }
}

/// The limit that an AES mode is held against: XTS uses half of its key for data.
fn limit(
    spec: &CipherSpec,
    key_bits: u32,
    backend: Option<Backend>,
    direction: Direction,
) -> Option<Subject> {
    let key_bits = match spec.algorithm() {
        Algorithm::AesXts => key_bits / 2,
        _ => key_bits,
    };
    Some(Subject::Limit {
        key_bits,
        backend: backend?,
        direction,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_inside_a_notation_is_no_separator() {
        let parsed = parse_ciphers("aes-xts-plain64,xchacha12,aes-adiantum-plain64,aes-cbc-null");
        let notations: Vec<String> = parsed.unwrap().0.iter().map(ToString::to_string).collect();
        let expected = [
            "aes-xts-plain64",
            "xchacha12,aes-adiantum-plain64",
            "aes-cbc-null",
        ];
        assert_eq!(notations, expected);
    }

    #[test]
    fn what_is_no_cipher_is_named() {
        for (text, named) in [
            ("", "``"),
            ("aes", "`aes`"),
            ("aes-xts-plain64,aes", "`aes`"),
            ("aes-lrw-plain64", "`lrw`"),
        ] {
            let message = parse_ciphers(text).unwrap_err();
            assert!(message.contains(named), "{text}: {message}");
        }
    }
}
