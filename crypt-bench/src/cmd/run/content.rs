//! What jobs write: patterns with their files read, and what makes the content of buffers.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Read;

use crate::cli::{Failure, Outcome};
use crate::generate::{BytePattern, Content, Filler};
use crate::jobfile::job::Job;
use crate::jobfile::value::{Piece, bytes};
use crate::play::{Verification, When};
use crate::verify::{Checks, Origin};

/// What makes the content of a job's buffers; `None` for random bytes that are made once, and where nothing is
/// written.
///
/// # Errors
/// A file of a pattern that can't be read.
pub(super) fn filler(job: &Job, seed: u64) -> Outcome<Option<Filler>> {
    let buffers = &job.buffers;
    if buffers.are_plain() || !job.writes() || job.verify.is_some() {
        return Ok(None);
    }
    let pieces = buffers.pattern.as_deref();
    let content = Content {
        pattern: pattern(job, "buffer_pattern", pieces.unwrap_or_default())?,
        zeros: buffers.zeros,
        compress_percent: buffers.compress_percent,
        compress_chunk_bytes: buffers.compress_chunk_bytes,
        dedupe_percent: buffers.dedupe_percent,
        refill: buffers.refill,
        scramble: buffers.scramble,
    };
    Ok(Some(Filler::new(content, job.pattern.rw.reads(), seed)))
}

/// How a job compares blocks. Those that it writes carry the seed of this run.
///
/// # Errors
/// A file of a pattern that can't be read.
pub(super) fn verification(job: &Job, run_seed: u64) -> Outcome<Option<Verification>> {
    let Some(verify) = &job.verify else {
        return Ok(None);
    };
    let when = match (job.pattern.rw.writes(), verify.only, verify.read_back) {
        (false, ..) => When::Reading,
        (_, true, _) => When::Only,
        (_, _, true) => When::After,
        (_, _, false) => When::Never,
    };
    let origin = match when {
        When::Reading | When::Only => Origin::Anybody,
        When::After | When::Never => Origin::Run(run_seed),
    };
    let pieces = verify.pattern.as_deref().unwrap_or_default();
    Ok(Some(Verification {
        checks: Checks {
            method: verify.method,
            pattern: pattern(job, "verify_pattern", pieces)?,
            interval_bytes: verify.interval_bytes,
            origin,
        },
        when,
        fatal: verify.fatal,
    }))
}

/// A pattern with its files read, as far as it has room.
///
/// # Errors
/// A file that can't be read, or a pattern without a byte, at the line of the option.
pub(super) fn pattern(job: &Job, option: &str, pieces: &[Piece]) -> Outcome<Option<BytePattern>> {
    let refuse = |message: String| {
        let message = format!("{option}: {message}");
        Failure::usage(job.refuse(option, message).to_string())
    };
    let (mut whole, mut offsets) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => whole.extend_from_slice(bytes),
            Piece::Offset => {
                offsets.push(whole.len());
                whole.extend_from_slice(&[0; 8]);
            }
            Piece::File(path) => {
                let room = bytes::MOST_BYTES.saturating_sub(whole.len()) as u64;
                let read =
                    File::open(path).and_then(|file| file.take(room).read_to_end(&mut whole));
                read.map_err(|error| refuse(format!("{path}: {error}")))?;
            }
        }
    }
    if whole.len() > bytes::MOST_BYTES {
        let message = format!("more than {} bytes with its files", bytes::MOST_BYTES);
        return Err(refuse(message));
    }
    if !pieces.is_empty() && whole.is_empty() {
        return Err(refuse("its files are empty".to_owned()));
    }
    Ok(BytePattern::new(&whole, &offsets))
}
