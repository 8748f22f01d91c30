//! What came out of comparing blocks, for reports and for the end of a run. Pure.

#![forbid(unsafe_code)]

use std::fmt::Write;

use serde_json::{Value, json};

use super::outcome::sum;
use crate::cli::{Failure, Outcome};
use crate::jobfile::place::{Place, Plan};
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
    first: Option<Mismatch>,
    /// Reads that came after the writes.
    reads: Option<DirectionStats>,
    runtime_ns: u64,
}

/// Of these threads; `None` where none compares.
pub(super) fn of(threads: &[&Played]) -> Option<Compared> {
    let verified = || threads.iter().filter_map(|played| played.verified.as_ref());
    verified().next()?;
    let reads = || verified().filter_map(|verified| verified.reads.as_ref());
    let window = reads().map(|reads| reads.0).max_by_key(Window::length_ns);
    let window = window.unwrap_or_else(|| Window::new(0, 1));
    Some(Compared {
        blocks: verified().map(|verified| verified.blocks).sum(),
        mismatches: verified().map(|verified| verified.mismatches).sum(),
        first: verified().find_map(|verified| verified.first.clone()),
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
            Some(first) => writeln!(text, ", {} WRONG; the first: {first}", self.mismatches),
        };
        text
    }

    /// For fio's JSON, under our own key.
    pub(super) fn json(&self) -> Value {
        let first = self.first.as_ref().map(|first| {
            json!({
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
    let mut wrong = threads.filter_map(|(copy, played)| {
        let verified = played.verified.as_ref()?;
        Some((copy, verified, verified.first.as_ref()?))
    });
    let Some((copy, verified, first)) = wrong.next() else {
        return Ok(());
    };
    let range = copy.range_at(first.offset_bytes);
    let file = match range.map(|range| &range.place) {
        Some(Place::File(path)) => path.display().to_string(),
        _ => "null device".to_owned(),
    };
    // Told as an offset of the file itself.
    let mut first = first.clone();
    first.offset_bytes -= range.map_or(0, |range| range.base_bytes);
    let name = plan.jobs.get(copy.job).map_or("", |job| &job.name);
    Err(Failure::Internal(format!(
        "job {name}, thread {}: {file}: {first}; {} of {} blocks are wrong{}",
        copy.number,
        verified.mismatches,
        verified.blocks,
        if wrong.next().is_some() {
            ", and some in other threads"
        } else {
            ""
        }
    )))
}
