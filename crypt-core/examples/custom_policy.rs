//! A dispatch policy of your own: hand off what is large, keep the rest on the submitter's thread.
//!
//! `cargo run --release -p crypt-core --example custom_policy`
#![forbid(unsafe_code)]

use std::sync::Arc;

use crypt_core::device::memory::MemoryDevice;
use crypt_core::exec::{WorkerConfig, WorkerPool};
use crypt_core::key::Key;
use crypt_core::policy::{Job, Load, OffloadRules, Outcome, Placement, Policy};
use crypt_core::request::{Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::{ByteLength, SectorIndex};
use crypt_core::{QueueOptions, Result, Volume};

/// Offloads jobs from a fixed length up.
#[derive(Debug)]
struct Threshold {
    len_bytes: u32,
}

impl Policy for Threshold {
    fn name(&self) -> String {
        format!("threshold:{}", self.len_bytes)
    }

    fn place(&mut self, jobs: &[Job], _load: &Load, placements: &mut [Placement]) {
        for (job, placement) in jobs.iter().zip(placements) {
            if job.len_bytes >= self.len_bytes {
                *placement = Placement::Offload;
            }
        }
    }

    fn observe(&mut self, _outcome: &Outcome) {}

    fn offload_rules(&self) -> OffloadRules {
        OffloadRules::default()
    }
}

fn main() -> Result<()> {
    let key = Key::from_bytes(&[[1; 32], [2; 32]].concat())?;
    let cipher = "aes-xts-plain64".parse::<CipherSpec>()?.build(&key, None)?;
    let volume = Volume::builder(Arc::new(MemoryDevice::new(64 << 20)?))
        .cipher(cipher)
        .workers(WorkerPool::start(&WorkerConfig::default())?)
        .policy_factory(|| {
            Box::new(Threshold {
                len_bytes: 64 << 10,
            })
        })
        .build()?;

    let mut queue = volume.queue(&QueueOptions::default())?;
    let mut done = Vec::with_capacity(queue.depth() as usize);
    for len in [4 << 10, 16 << 10, 64 << 10, 1 << 20] {
        if let Some(ticket) = queue.claim() {
            queue.data_mut(&ticket)[..len].fill(0xab);
            let len = ByteLength::new(len as u64);
            queue.submit(ticket, Request::new(Op::Write, SectorIndex::new(0), len));
        }
    }
    queue.drain(&mut done)?;
    for completion in &done {
        let (len, timing) = (completion.request.len, completion.timing);
        println!(
            "{len:>8} bytes: {:?}, cipher {} ns",
            timing.placement, timing.cipher_ns
        );
    }
    Ok(())
}
