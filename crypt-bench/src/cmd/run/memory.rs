//! Whether a run has the memory that it needs, found out before anything starts.

#![forbid(unsafe_code)]

use super::setup::depth;
use crate::cli::{Failure, Outcome};
use crate::host;
use crate::jobfile::place::{Copy, Plan};

/// Histograms of a thread, in bytes, rounded up.
const FIGURES_BYTES: u64 = 5 << 20;

/// The slots of the largest stage must fit beside the figures and logs of all.
///
/// # Errors
/// The stage that does not fit, with the figures.
pub(super) fn check(plan: &Plan) -> Outcome {
    let available_bytes = host::available_memory_bytes().map_or(u64::MAX, |bytes| bytes / 4 * 3);
    fits(plan, available_bytes).map_err(Failure::Usage)
}

fn fits(plan: &Plan, available_bytes: u64) -> Result<(), String> {
    let threads = plan.copies.len() as u64;
    let logs_bytes = sum(&plan.copies, |copy| logs_bytes(plan, copy));
    if logs_bytes > available_bytes {
        return Err(format!(
            "the logs need {logs_bytes} bytes of memory, more than the {available_bytes} bytes that are free; give \
             log_entries=NUMBER or a longer log_avg_msec"
        ));
    }
    let limit_bytes = available_bytes
        .saturating_sub(threads * FIGURES_BYTES)
        .saturating_sub(logs_bytes);
    for copies in plan.copies.chunk_by(|one, next| one.stage == next.stage) {
        let needed = sum(copies, |copy| slots_bytes(plan, copy));
        if needed > limit_bytes {
            return Err(format!(
                "stage {} needs {needed} bytes of memory (threads x iodepth x 2 x the largest block), more \
                 than the {limit_bytes} bytes that are free beside the figures and logs of {threads} threads; use a \
                 smaller iodepth, bs or numjobs",
                copies.first().map_or(1, |copy| copy.stage + 1)
            ));
        }
    }
    Ok(())
}

fn sum(copies: &[Copy], bytes: impl Fn(&Copy) -> u64) -> u64 {
    let bytes = copies.iter().map(bytes);
    bytes.fold(0, u64::saturating_add)
}

fn slots_bytes(plan: &Plan, copy: &Copy) -> u64 {
    let job = &plan.jobs[copy.job];
    let slot = job.largest_bytes().next_multiple_of(4096);
    (2 * slot).saturating_mul(u64::from(depth(job)))
}

fn logs_bytes(plan: &Plan, copy: &Copy) -> u64 {
    let job = &plan.jobs[copy.job];
    let logs = job.logs.as_ref();
    logs.map_or(0, |logs| logs.rule(job, copy).bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobfile::testing::Fake;

    #[test]
    fn slots_figures_and_logs_must_fit_together() {
        let text = "[a]\nioengine=null\nsize=4m\nbs=4k\niodepth=2\nnumjobs=3\nwrite_lat_log\n[b]\nioengine=null\nsize=4k\n";
        let fake = Fake::default().file("a.fio", text);
        let jobs = crate::jobfile::load(&["a.fio".to_owned()], &[], &fake).unwrap();
        let plan = Plan::new(jobs, &|_| Ok(None)).unwrap();
        let slots = (3 * 2 * 2 + 2) * 4096;
        let logs = 3 * 1024 * 32;
        let all = slots + 4 * FIGURES_BYTES + logs;
        assert_eq!(fits(&plan, all), Ok(()));
        let message = fits(&plan, all - 1).unwrap_err();
        assert!(
            message.starts_with("stage 1 needs 57344 bytes"),
            "{message}"
        );
        let message = fits(&plan, logs - 1).unwrap_err();
        assert!(
            message.contains("98304 bytes") && message.contains("log_entries"),
            "{message}"
        );
    }
}
