//! Keys of jobs with a cipher.

#![forbid(unsafe_code)]

use std::path::Path;

use crypt_core::key::Key;
use zeroize::Zeroizing;

use super::content;
use super::setup::in_job;
use crate::cli::{Failure, Outcome};
use crate::cmd::key;
use crate::jobfile::job::{Crypt, Job};
use crate::jobfile::place::Plan;

/// Length of a random key, where the cipher takes it.
const KEY_BYTES: usize = 64;
/// Longest key of any cipher.
const MOST_KEY_BYTES: usize = 256;

/// Keys of one run: jobs without a key file share one that is random, so that they can read what others wrote.
pub(super) struct Keys {
    random: Zeroizing<Vec<u8>>,
}

impl Keys {
    /// Draws the random key.
    ///
    /// # Errors
    /// Where the system has no random bytes.
    pub(super) fn draw() -> Outcome<Self> {
        let random = key::read(Path::new(key::RANDOM), MOST_KEY_BYTES);
        let random =
            random.map_err(|error| Failure::internal(format!("{}: {error}", key::RANDOM)))?;
        Ok(Self { random })
    }

    /// Looks whether keys and the files of patterns are there, of all stages.
    ///
    /// # Errors
    /// What can't be read, at the line that names it.
    pub(super) fn check(&self, plan: &Plan) -> Outcome {
        for job in &plan.jobs {
            if let Some(crypt) = &job.crypt {
                self.of(job, crypt)?;
            }
            content::filler(job, 0)?;
            content::verification(job, 0)?;
        }
        Ok(())
    }

    /// The key of a job: its file, or the random one.
    ///
    /// # Errors
    /// A file that can't be read or has the wrong length, at the line that names it.
    pub(super) fn of(&self, job: &Job, crypt: &Crypt) -> Outcome<Key> {
        let bytes = match &crypt.key_file {
            Some(path) => from_file(job, crypt, path)?,
            None => {
                let lens = crypt.cipher.key_lens_bytes();
                let longest = lens.iter().copied().max().unwrap_or(0);
                let len = match lens.contains(&KEY_BYTES) {
                    true => KEY_BYTES,
                    false => longest,
                };
                let short = || Failure::internal(format!("a key of {len} bytes is too long"));
                Zeroizing::new(self.random.get(..len).ok_or_else(short)?.to_vec())
            }
        };
        Key::from_bytes(&bytes).map_err(|error| in_job(job, &error.to_string()))
    }
}

fn from_file(job: &Job, crypt: &Crypt, path: &str) -> Outcome<Zeroizing<Vec<u8>>> {
    let refuse = |message: String| {
        let message = format!("crypt_key_file: {path}{message}");
        Failure::usage(job.refuse("crypt_key_file", message).to_string())
    };
    let failed = |error: std::io::Error| refuse(format!(": {error}"));
    let lens = crypt.cipher.key_lens_bytes();
    let file = std::fs::metadata(path).map_err(failed)?;
    if !file.is_file() {
        return Err(refuse(
            " is no file; name one that holds the bytes of the key".to_owned(),
        ));
    }
    if !lens.iter().any(|known| *known as u64 == file.len()) {
        let known: Vec<String> = lens.iter().map(ToString::to_string).collect();
        let known = known.join(" or ");
        return Err(refuse(format!(
            " has {} bytes; {} takes {known}",
            file.len(),
            crypt.cipher_text
        )));
    }
    key::read(Path::new(path), file.len() as usize).map_err(failed)
}
