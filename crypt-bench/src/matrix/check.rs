//! What can be measured at all: ranges of single values, and how much of it all together.

#![forbid(unsafe_code)]

use super::{Facts, machines};
use crate::definition::Definition;
use crate::definition::quantity::Size;
use crate::generate::Blocks;
use crate::record::MAX_ASKED_SLICES;
use crate::result::CellParams;

/// Longest request.
const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// Most requests in flight per job.
const MAX_DEPTH: u32 = 16_384;
/// Most jobs over all volumes.
const MAX_JOBS: u64 = 1024;
/// Most logical CPUs of a simulated machine.
const MAX_CPUS: u64 = 4096;
/// Most cells with their policies and repeats; more is a mistake.
const MAX_RUNS: u64 = 100_000;

/// Slices are neither too many nor longer than what is measured.
pub(super) fn slice_us(definition: &Definition, runtime_ms: u64) -> Result<Option<u64>, String> {
    let Some(slice) = definition.slice else {
        return Ok(None);
    };
    let us = slice.0.as_micros() as u64;
    let runtime_us = runtime_ms.saturating_mul(1000);
    if us == 0 || us > runtime_us {
        return Err(format!(
            "--slice {slice}: from 1us to the runtime of {runtime_ms}ms"
        ));
    }
    // The next smaller power of two can be half as long.
    if runtime_us / us > MAX_ASKED_SLICES / 2 {
        return Err(format!(
            "--slice {slice}: more than {} slices; use a longer slice or a shorter --runtime",
            MAX_ASKED_SLICES / 2
        ));
    }
    Ok(Some(us))
}

/// Refuses a matrix that would take for ever, before it is expanded.
pub(super) fn check_runs(products: &[Definition]) -> Result<(), String> {
    let runs = products
        .iter()
        .fold(0_u64, |sum, product| sum.saturating_add(runs_of(product)));
    if runs > MAX_RUNS {
        return Err(format!(
            "{runs} runs are too many: at most {MAX_RUNS}; measure fewer axes at a time"
        ));
    }
    Ok(())
}

fn runs_of(definition: &Definition) -> u64 {
    let axes = [
        definition.device.len(),
        definition.rw.len(),
        definition.rwmixread.len(),
        definition.bs.len() + definition.bssplit.len(),
        definition.depth.len(),
        definition.jobs.len(),
        definition.devices.len(),
        definition.cores.len().max(1),
        definition.policy.len(),
        definition.cipher.len(),
        definition.key_bits.len(),
        definition.sector_size.len(),
    ];
    let repeats = u64::from(definition.repeats.unwrap_or(1));
    axes.iter()
        .fold(repeats, |runs, &len| runs.saturating_mul(len as u64))
}

/// Checks what needs no other value to be wrong.
pub(super) fn check_ranges(definition: &Definition, facts: &Facts<'_>) -> Result<(), String> {
    for &depth in &definition.depth {
        if depth == 0 || depth > MAX_DEPTH {
            return Err(format!(
                "--depth {depth}: from 1 to {MAX_DEPTH} requests in flight"
            ));
        }
    }
    check_cores(definition, facts)?;
    let cpus = machines(definition, facts)
        .into_iter()
        .map(|(_, cpus)| cpus);
    let cpus = cpus.max().unwrap_or(1);
    let jobs: Vec<u32> = definition.jobs.iter().map(|jobs| jobs.on(cpus)).collect();
    for (name, values) in [("jobs", &jobs), ("devices", &definition.devices)] {
        if values.contains(&0) {
            return Err(format!("--{name} 0: at least 1"));
        }
    }
    let most = |values: &[u32]| u64::from(values.iter().copied().max().unwrap_or(1));
    let jobs = most(&jobs) * most(&definition.devices);
    if jobs > MAX_JOBS {
        return Err(format!("{jobs} jobs over all volumes: at most {MAX_JOBS}"));
    }
    if definition
        .workers
        .is_some_and(|workers| workers == 0 || workers > 4096)
    {
        return Err("--workers: from 1 to 4096 threads".to_owned());
    }
    if definition.repeats == Some(0) {
        return Err("--repeats 0: at least 1".to_owned());
    }
    for cpu in definition.issuers.iter().flat_map(|list| &list.0) {
        if !facts.cpus.contains(cpu) {
            let allowed: Vec<String> = facts.cpus.iter().map(u32::to_string).collect();
            return Err(format!(
                "--issuers: CPU {cpu} is not among those that may be used here ({})",
                allowed.join(",")
            ));
        }
    }
    Ok(())
}

fn check_cores(definition: &Definition, facts: &Facts<'_>) -> Result<(), String> {
    let Some(&most) = definition.cores.iter().max() else {
        return Ok(());
    };
    let Some(threads) = facts.threads_per_core else {
        return Err(
            "--cores: this machine has the cores that it has; crypt-bench simulate has as many as you say"
                .to_owned(),
        );
    };
    if definition.cores.contains(&0) {
        return Err("--cores 0: at least 1".to_owned());
    }
    let cpus = u64::from(most) * u64::from(threads);
    if cpus > MAX_CPUS {
        return Err(format!(
            "--cores {most}: {cpus} logical CPUs; at most {MAX_CPUS}"
        ));
    }
    Ok(())
}

pub(super) fn check_block(
    blocks: &Blocks,
    size_bytes: u64,
    base: &CellParams,
) -> Result<(), String> {
    let sector = u64::from(base.sector_size_bytes);
    if blocks.smallest(base.rw) == 0 || !blocks.are_multiples_of(base.rw, sector) {
        return Err(format!(
            "--bs {blocks}: not a multiple of the sector size of {sector} bytes of {}; use a larger \
             block or a smaller --sector-size",
            base.cipher
        ));
    }
    let largest = Size(blocks.largest(base.rw));
    if largest.0 > MAX_BLOCK_BYTES {
        return Err(format!("--bs {blocks}: at most {}", Size(MAX_BLOCK_BYTES)));
    }
    if size_bytes < largest.0 {
        return Err(format!(
            "--size {}: smaller than a block of {largest}; give at least {largest}",
            Size(size_bytes)
        ));
    }
    Ok(())
}
