//! What came out of comparing blocks, for reports and for the end of a run. Pure.

#![forbid(unsafe_code)]

use std::fmt::Write;

use serde_json::{Value, json};

use super::outcome::sum;
use crate::cli::{Failure, Outcome};
use crate::jobfile::place::{Copy, Place, Plan};
use crate::play::Played;
use crate::record::Window;
use crate::result::DirectionStats;
use crate::verify::Mismatch;

/// EILSEQ, which is fio's error for a block that is not what it should be.
pub(super) const ERRNO: i32 = rustix::io::Errno::ILSEQ.raw_os_error();

/// What the threads of a report found out.
pub(super) struct Compared {
    /// Blocks that were compared.
    pub(super) blocks: u64,
    /// Blocks that are wrong.
    pub(super) mismatches: u64,
    first: Option<Wrong>,
    /// Reads that came after the writes.
    reads: Option<DirectionStats>,
    runtime_ns: u64,
}

/// The first block of a thread that is wrong.
struct Wrong {
    /// Its file.
    file: String,
    /// With its offset in that file.
    mismatch: Mismatch,
}

/// Of the threads of these copies; `None` where none compares.
pub(super) fn of(copies: &[&Copy], threads: &[&Played]) -> Option<Compared> {
    let verified = || threads.iter().filter_map(|played| played.verified.as_ref());
    verified().next()?;
    let reads = || verified().filter_map(|verified| verified.reads.as_ref());
    let window = reads().map(|reads| reads.0).max_by_key(Window::length_ns);
    let window = window.unwrap_or_else(|| Window::new(0, 1));
    Some(Compared {
        blocks: verified().map(|verified| verified.blocks).sum(),
        mismatches: verified().map(|verified| verified.mismatches).sum(),
        first: copies
            .iter()
            .zip(threads)
            .find_map(|(copy, played)| wrong(copy, played)),
        reads: sum(reads().map(|reads| &reads.1), &window),
        runtime_ns: window.length_ns(),
    })
}

impl Compared {
    /// Lines of a report.
    pub(super) fn text(&self) -> String {
        let mut text = format!("  verify: {} blocks", self.blocks);
        if let Some(reads) = &self.reads {
            let _ = write!(
                text,
                ", read back with IOPS={:.0}, BW={:.1}MiB/s, {} bytes in {} ms",
                reads.iops,
                reads.bw_bytes_per_s / f64::from(1 << 20),
                reads.bytes,
                self.runtime_ns / 1_000_000
            );
        }
        let _ = match &self.first {
            None => writeln!(text, ", all as they should be"),
            Some(Wrong { file, mismatch }) => writeln!(
                text,
                ", {} WRONG; the first: {file}: {mismatch}",
                self.mismatches
            ),
        };
        text
    }

    /// For fio's JSON, under our own key.
    pub(super) fn json(&self) -> Value {
        let first = self.first.as_ref().map(|wrong| {
            let first = &wrong.mismatch;
            json!({
                "file": wrong.file,
                "offset_bytes": first.offset_bytes,
                "len_bytes": first.len_bytes,
                "what": first.what,
                "expected": first.expected,
                "found": first.found,
            })
        });
        let reads = self.reads.as_ref().map(|reads| {
            json!({
                "total_ios": reads.ios,
                "io_bytes": reads.bytes,
                "bw_bytes": reads.bw_bytes_per_s.round() as u64,
                "iops": reads.iops,
                "runtime_ns": self.runtime_ns,
                "lat_ns": { "min": reads.lat.min_ns, "max": reads.lat.max_ns, "mean": reads.lat.mean_ns },
            })
        });
        json!({
            "blocks": self.blocks,
            "mismatches": self.mismatches,
            "first_mismatch": first,
            "read_back": reads,
        })
    }
}

/// The end of a run without a request that failed.
///
/// # Errors
/// A block that is not what it should be.
pub(super) fn conclude(plan: &Plan, played: &[Played]) -> Outcome {
    let threads = plan.copies.iter().zip(played);
    let mut wrongs = threads.filter_map(|(copy, played)| {
        let verified = played.verified.as_ref()?;
        Some((copy, verified, wrong(copy, played)?))
    });
    let Some((copy, verified, Wrong { file, mismatch })) = wrongs.next() else {
        return Ok(());
    };
    let name = plan.jobs.get(copy.job).map_or("", |job| &job.name);
    Err(Failure::Internal(format!(
        "job {name}, thread {}: {file}: {mismatch}; {} of {} blocks are wrong{}",
        copy.number,
        verified.mismatches,
        verified.blocks,
        if wrongs.next().is_some() {
            ", and some in other threads"
        } else {
            ""
        }
    )))
}

/// What was wrong first in a thread. It counts over all files of its job, which are one device to it.
fn wrong(copy: &Copy, played: &Played) -> Option<Wrong> {
    let mut mismatch = played.verified.as_ref()?.first.clone()?;
    let range = copy.range_at(mismatch.offset_bytes);
    mismatch.offset_bytes -= range.map_or(0, |range| range.base_bytes);
    let file = match range.map(|range| &range.place) {
        Some(Place::File(path)) => path.display().to_string(),
        _ => "null device".to_owned(),
    };
    Some(Wrong { file, mismatch })
}
