//! Several drives as one: a RAID 0, in software or behind a controller.
//!
//! Chunks go to the drives in turn, so an operation is served by as many drives as it has chunks, and ends
//! with the last. A controller stands before all of them and handles one command after the other; where it
//! has the limit, the array is no faster for more drives.
//!
//! Sources: 512 KiB is the default chunk of Linux' md (`mdadm --chunk`, man page), 64 KiB the usual strip of a
//! hardware controller. A controller on eight lanes of PCIe 3.0 moves 7.9 GB/s by the standard, of which about
//! 6.4 remain after packets' headers; 450,000 commands per second, where nothing else is said, and the command's
//! latency are estimates of ours for controllers of that generation.

#![forbid(unsafe_code)]

use crate::device::service::disk::DiskModel;
use crate::device::service::flash::FlashModel;
use crate::device::service::{Mechanism, ServiceOp, transfer_ns};
use crate::request::Op;

/// Most drives of an array.
pub(super) const MOST_DRIVES: usize = 256;
/// Most chunks of one operation that are looked at one by one; longer ones occupy every drive anyway.
const MOST_PIECES: u64 = 4 * MOST_DRIVES as u64;
/// Commands per second of a controller of which nothing else is said.
pub(super) const COMMANDS_PER_S: u32 = 450_000;
/// Most that is taken.
pub(super) const MOST_COMMANDS_PER_S: u32 = 100_000_000;

/// What stands before the drives.
#[derive(Clone, Debug)]
struct Controller {
    /// Handling of a command, one after the other, while data of others moves: the limit of operations per
    /// second.
    command_ns: f64,
    /// Bytes per second in both directions together.
    bytes_per_s: f64,
    /// What it adds to the latency of a command.
    latency_ns: u64,
    free_ns: u64,
}

/// An array with its state.
#[derive(Clone, Debug)]
pub(super) struct ArrayModel {
    chunk_bytes: u64,
    controller: Option<Controller>,
    drives: Box<[Mechanism]>,
}

impl ArrayModel {
    /// SATA SSDs behind a hardware controller that handles so many commands per second.
    pub(super) fn sata_ssds(count: usize, commands_per_s: u32) -> Self {
        Self {
            chunk_bytes: 64 << 10,
            controller: Some(Controller {
                command_ns: 1e9 / f64::from(commands_per_s),
                bytes_per_s: 6_400e6,
                latency_ns: 10_000,
                free_ns: 0,
            }),
            drives: vec![Mechanism::Flash(FlashModel::sata_ssd()); count].into(),
        }
    }

    /// Disks striped in software; `size_bytes` are those of the whole.
    pub(super) fn disks(count: usize, size_bytes: u64) -> Self {
        let disk = DiskModel::new(size_bytes / count as u64);
        Self {
            chunk_bytes: 512 << 10,
            controller: None,
            drives: vec![Mechanism::Disk(disk); count].into(),
        }
    }

    /// When the operation completes.
    pub(super) fn admit(&mut self, now_ns: u64, op: ServiceOp, random: &mut fastrand::Rng) -> u64 {
        let start_ns = match &mut self.controller {
            Some(controller) => controller.pass(now_ns, op),
            None => now_ns,
        };
        if op.op == Op::Flush {
            let ends = self.drives.iter_mut();
            let ends = ends.map(|drive| drive.admit(start_ns, op, random));
            return ends.max().unwrap_or(start_ns);
        }
        let mut end_ns = start_ns;
        let first = op.offset_bytes / self.chunk_bytes;
        let last = op
            .offset_bytes
            .saturating_add(op.len_bytes.saturating_sub(1))
            / self.chunk_bytes;
        for chunk in first..=last.min(first.saturating_add(MOST_PIECES)) {
            let drive = (chunk % self.drives.len() as u64) as usize;
            let piece = self.piece(op, chunk);
            end_ns = end_ns.max(self.drives[drive].admit(start_ns, piece, random));
        }
        end_ns
    }

    /// The part of an operation that is in a chunk, as the chunk's drive sees it.
    fn piece(&self, op: ServiceOp, chunk: u64) -> ServiceOp {
        let chunk_start = chunk.saturating_mul(self.chunk_bytes);
        let start = op.offset_bytes.max(chunk_start);
        let op_end = op.offset_bytes.saturating_add(op.len_bytes);
        let end = op_end.min(chunk_start.saturating_add(self.chunk_bytes));
        let row = chunk / self.drives.len() as u64;
        ServiceOp {
            offset_bytes: row * self.chunk_bytes + (start - chunk_start),
            len_bytes: end.saturating_sub(start),
            ..op
        }
    }
}

impl Controller {
    /// Handles a command; the time at which the drives have it.
    fn pass(&mut self, now_ns: u64, op: ServiceOp) -> u64 {
        let moves = matches!(op.op, Op::Read | Op::Write);
        let len_bytes = if moves { op.len_bytes } else { 0 };
        let cost_ns = self
            .command_ns
            .max(transfer_ns(len_bytes, self.bytes_per_s));
        let start_ns = self.free_ns.max(now_ns);
        self.free_ns = start_ns.saturating_add(cost_ns as u64);
        self.free_ns.saturating_add(self.latency_ns)
    }
}
