//! What a thread that issues requests starts with: its CPUs, and a queue whose slots hold data.

#![forbid(unsafe_code)]

use crypt_core::{Queue, QueueOptions, Ticket, Volume};
use rustix::thread::CpuSet;

use crate::generate::Random;

/// Lets the calling thread run on these CPUs only, on any where none is named. Whether that is so.
pub(crate) fn pin(cpus: &[u32]) -> bool {
    if cpus.is_empty() {
        return true;
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return false;
        }
        set.set(cpu as usize);
    }
    rustix::thread::sched_setaffinity(None, &set).is_ok()
}

/// A queue and all its slots, with the data that is written where `data_seed` says so.
///
/// # Errors
/// Where the queue can't be opened, in words.
pub(crate) fn open(
    volume: &Volume,
    options: &QueueOptions,
    data_seed: Option<u64>,
) -> Result<(Queue, Vec<Ticket>), String> {
    let mut queue = volume.queue(options).map_err(|error| error.to_string())?;
    let mut tickets = Vec::with_capacity(options.depth as usize);
    while let Some(ticket) = queue.claim() {
        if let Some(seed) = data_seed {
            let data = queue.data_mut(&ticket);
            let len = data.len().min(options.max_request_bytes as usize);
            Random::new(seed.wrapping_add(ticket.index() as u64)).fill(&mut data[..len]);
        }
        tickets.push(ticket);
    }
    Ok((queue, tickets))
}
