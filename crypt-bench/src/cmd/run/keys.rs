//! Keys of jobs with a cipher.

#![forbid(unsafe_code)]

use std::path::Path;

use crypt_core::key::Key;

use super::setup::in_job;
use crate::cli::{Failure, Outcome};
use crate::cmd::key;
use crate::jobfile::job::{Crypt, Job};

/// Length of a random key, where the cipher takes it.
const KEY_BYTES: usize = 64;

/// The key of a job: its file, or a random one.
pub(super) fn key_of(job: &Job, crypt: &Crypt) -> Outcome<Key> {
    let lens = crypt.cipher.key_lens_bytes();
    let bytes = match &crypt.key_file {
        Some(path) => {
            let failed = |error: std::io::Error| in_job(job, &format!("{path}: {error}"));
            let len = std::fs::metadata(path).map_err(failed)?.len();
            if !lens.iter().any(|known| *known as u64 == len) {
                let known: Vec<String> = lens.iter().map(ToString::to_string).collect();
                let message = format!(
                    "crypt_key_file: {path} has {len} bytes; {} takes {}",
                    crypt.cipher_text,
                    known.join(" or ")
                );
                return Err(Failure::usage(
                    job.refuse("crypt_key_file", message).to_string(),
                ));
            }
            key::read(Path::new(path), len as usize).map_err(failed)?
        }
        None => {
            let longest = lens.iter().copied().max().unwrap_or(0);
            let len = if lens.contains(&KEY_BYTES) {
                KEY_BYTES
            } else {
                longest
            };
            key::read(Path::new(key::RANDOM), len)
                .map_err(|error| Failure::internal(format!("{}: {error}", key::RANDOM)))?
        }
    };
    Key::from_bytes(&bytes).map_err(|error| in_job(job, &error.to_string()))
}
