//! How long a drive takes: service-time models of an HDD, a SATA SSD, an Optane and an NVMe drive.
//!
//! A [`ServiceModel`] is pure: it owns no clock, no thread and no data. [`ServiceModel::admit`] is
//! told the time at which an operation arrives and answers when it completes; the caller's clock may
//! be real (the model device) or virtual (a simulator). The same seed and
//! the same operations at the same times give the same answers. Nothing allocates after
//! construction, nothing panics.
//!
//! The models aim at the shape that matters to a layer above: latency at depth 1, the ceilings of
//! operations and bytes per second, how both grow with depth, a write cache that fills and drains,
//! what a flush costs, and a tail. They leave out garbage collection's long waves, thermal limits,
//! reads delayed by writes, and bad sectors. Each preset names the sources of its figures; what is
//! an estimate of ours says so.

#![forbid(unsafe_code)]

mod cache;
mod disk;
mod flash;

use crate::device::DeviceOp;
use crate::error::{Error, ErrorKind, Result};
use crate::request::{Flags, Op};

use disk::DiskModel;
use flash::FlashModel;

/// The part of an operation that its service time depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceOp {
    /// What is done.
    pub op: Op,
    /// Only `FUA` matters.
    pub flags: Flags,
    /// First byte on the device.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub len_bytes: u64,
}

impl From<&DeviceOp> for ServiceOp {
    fn from(op: &DeviceOp) -> Self {
        Self {
            op: op.op,
            flags: op.flags,
            offset_bytes: op.offset_bytes,
            len_bytes: op.len_bytes,
        }
    }
}

/// A drive, as far as time is concerned.
#[derive(Clone, Debug)]
pub struct ServiceModel {
    name: &'static str,
    mechanism: Mechanism,
    random: fastrand::Rng,
}

#[derive(Clone, Debug)]
enum Mechanism {
    Flash(FlashModel),
    Disk(DiskModel),
}

impl ServiceModel {
    /// Names of the presets.
    pub const NAMES: [&'static str; 4] = ["hdd", "sata-ssd", "optane", "nvme"];

    /// The preset called `name`, for a drive of `size_bytes` (which places a disk's cylinders).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for another name, with the list of names.
    pub fn named(name: &str, size_bytes: u64, seed: u64) -> Result<Self> {
        let (name, mechanism) = match name {
            "hdd" => ("hdd", Mechanism::Disk(DiskModel::new(size_bytes))),
            "sata-ssd" => ("sata-ssd", Mechanism::Flash(FlashModel::sata_ssd())),
            "optane" => ("optane", Mechanism::Flash(FlashModel::optane())),
            "nvme" => ("nvme", Mechanism::Flash(FlashModel::nvme())),
            _ => return Err(unknown(name)),
        };
        let random = fastrand::Rng::with_seed(seed);
        Ok(Self {
            name,
            mechanism,
            random,
        })
    }

    /// The name of the preset.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Takes an operation that arrives at `now_ns`; the time at which it completes, later than
    /// `now_ns`.
    ///
    /// Times don't have to be in order: an operation that arrives in the past of another one queues
    /// behind it.
    pub fn admit(&mut self, now_ns: u64, op: ServiceOp) -> u64 {
        let end_ns = match &mut self.mechanism {
            Mechanism::Flash(flash) => flash.admit(now_ns, op, &mut self.random),
            Mechanism::Disk(disk) => disk.admit(now_ns, op, &mut self.random),
        };
        end_ns.max(now_ns.saturating_add(1))
    }
}

fn unknown(name: &str) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!(
            "there is no device model {name:?}; use one of {}",
            ServiceModel::NAMES.join(", ")
        ),
    )
}

/// Nanoseconds for `len_bytes` at `bytes_per_s`.
fn transfer_ns(len_bytes: u64, bytes_per_s: f64) -> f64 {
    len_bytes as f64 * 1e9 / bytes_per_s
}

#[cfg(test)]
mod tests;
