//! One worker thread: its CPU, its priority, and its life in the pool.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::pool::Pinning;
use super::shared::PoolShared;
use crate::error::{Errno, Error, ErrorKind, Result};

/// How a worker's settings went: a note where the system refused one that may be refused.
pub(crate) type Settled = Result<Option<String>>;

/// The CPU of each of `workers` workers.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] where a listed CPU can't be used by this process.
pub(crate) fn assign_cpus(pinning: &Pinning, workers: usize) -> Result<Vec<Option<usize>>> {
    let allowed = allowed_cpus()?;
    let cpus = match pinning {
        Pinning::None => return Ok(vec![None; workers]),
        Pinning::EachCpu => &allowed,
        Pinning::Cpus(list) => list,
    };
    if cpus.is_empty() {
        let context = "the CPU list for workers is empty: name at least one CPU";
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        let context = format!("workers can't run on CPU {cpu}; this process may use {allowed:?}");
        return Err(Error::new(ErrorKind::InvalidInput, context));
    }
    Ok(cpus
        .iter()
        .cycle()
        .take(workers)
        .copied()
        .map(Some)
        .collect())
}

/// Starts a worker, which reports its settings on `ready` and then lives in `shared`.
///
/// # Errors
/// The system's error where the thread can't be started.
pub(crate) fn spawn(
    shared: &Arc<PoolShared>,
    worker: usize,
    cpu: Option<usize>,
    nice: i32,
    ready: Sender<Settled>,
) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let life = move || {
        shared.register(worker);
        let settled = settle(cpu, nice);
        let usable = settled.is_ok();
        // The receiver waits for every worker; if it is gone the pool is being stopped.
        let _ = ready.send(settled);
        drop(ready);
        if usable {
            shared.work(worker);
        }
    };
    let thread = Builder::new().name(format!("crypt-worker-{worker}"));
    thread
        .spawn(life)
        .map_err(|error| Error::io(format!("start worker thread {worker}"), error))
}

fn settle(cpu: Option<usize>, nice: i32) -> Settled {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set)
            .map_err(|errno| Error::io(format!("pin a worker to CPU {cpu}"), Errno::from(errno)))?;
    }
    if nice == 0 {
        return Ok(None);
    }
    // On Linux the "process" 0 of setpriority(2) is the calling thread.
    let refused = setpriority_process(None, nice).err();
    Ok(
        refused
            .map(|errno| format!("workers run at normal priority: nice {nice} refused, {errno}")),
    )
}

fn allowed_cpus() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None)
        .map_err(|errno| Error::io("read which CPUs may be used", Errno::from(errno)))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect())
}
