//! How long a drive takes: service-time models of an HDD, a SATA SSD, an Optane and an NVMe drive, of arrays
//! of them, and of the kernel's `null_blk`.
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

mod array;
mod cache;
mod disk;
mod flash;
mod null_blk;

use crate::device::DeviceOp;
use crate::error::{Error, ErrorKind, Result};
use crate::request::{Flags, Op};

use array::ArrayModel;
use disk::DiskModel;
use flash::FlashModel;
use null_blk::{IrqMode, NullBlkModel};

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
    name: String,
    mechanism: Mechanism,
    random: fastrand::Rng,
}

#[derive(Clone, Debug)]
enum Mechanism {
    Flash(FlashModel),
    Disk(DiskModel),
    Array(ArrayModel),
    NullBlk(NullBlkModel),
}

impl ServiceModel {
    /// Names of the presets that need nothing else.
    pub const NAMES: [&'static str; 7] = [
        "hdd",
        "sata-ssd",
        "optane",
        "nvme",
        "null-blk:none",
        "null-blk:softirq",
        "null-blk:timer",
    ];

    /// Every form of a name, for messages and help. `N` is a number of drives, `OPS` operations per second, `NS`
    /// nanoseconds.
    pub const FORMS: &'static str = "hdd, sata-ssd, optane, nvme, hdd-array:N, sata-array:N, sata-array:N:OPS, \
                                     null-blk:none, null-blk:softirq, null-blk:timer, null-blk:timer:NS";

    /// The preset called `name`, for a drive of `size_bytes` (which places a disk's cylinders).
    ///
    /// - `hdd`, `sata-ssd`, `optane`, `nvme`: one drive.
    /// - `hdd-array:N`: N disks as a RAID 0 in software; `sata-array:N`: N SATA SSDs as a RAID 0 behind a
    ///   controller that has limits of its own; `sata-array:N:OPS` says how many operations per second it handles.
    /// - `null-blk:none`, `null-blk:softirq`, `null-blk:timer`, `null-blk:timer:NS`: `null_blk` in its
    ///   `irqmode`s, with `completion_nsec` (10,000 where nothing is said). `null-blk` is `null-blk:softirq`,
    ///   its default.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for another name, with the list of names.
    pub fn named(name: &str, size_bytes: u64, seed: u64) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            mechanism: Mechanism::named(name, size_bytes).ok_or_else(|| unknown(name))?,
            random: fastrand::Rng::with_seed(seed),
        })
    }

    /// The name of the preset.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether data goes to the device and comes from it; `null_blk` leaves memory as it is.
    #[must_use]
    pub fn transfers(&self) -> bool {
        !matches!(self.mechanism, Mechanism::NullBlk(_))
    }

    /// Takes an operation that arrives at `now_ns`; the time at which it completes, later than
    /// `now_ns`.
    ///
    /// Times don't have to be in order: an operation that arrives in the past of another one queues
    /// behind it.
    pub fn admit(&mut self, now_ns: u64, op: ServiceOp) -> u64 {
        let end_ns = self.mechanism.admit(now_ns, op, &mut self.random);
        end_ns.max(now_ns.saturating_add(1))
    }
}

impl Mechanism {
    fn named(name: &str, size_bytes: u64) -> Option<Self> {
        let (kind, parameter) = match name.split_once(':') {
            Some((kind, parameter)) => (kind, Some(parameter)),
            None => (name, None),
        };
        let drives = |text: Option<&str>| {
            let count = text?.parse().ok()?;
            (1..=array::MOST_DRIVES).contains(&count).then_some(count)
        };
        match (kind, parameter) {
            ("hdd", None) => Some(Self::Disk(DiskModel::new(size_bytes))),
            ("sata-ssd", None) => Some(Self::Flash(FlashModel::sata_ssd())),
            ("optane", None) => Some(Self::Flash(FlashModel::optane())),
            ("nvme", None) => Some(Self::Flash(FlashModel::nvme())),
            ("hdd-array", count) => {
                Some(Self::Array(ArrayModel::disks(drives(count)?, size_bytes)))
            }
            ("sata-array", Some(parameter)) => {
                let (count, commands) = match parameter.split_once(':') {
                    Some((count, commands)) => (count, commands.parse().ok()?),
                    None => (parameter, array::COMMANDS_PER_S),
                };
                let is_sane = (1..=array::MOST_COMMANDS_PER_S).contains(&commands);
                is_sane.then_some(Self::Array(ArrayModel::sata_ssds(
                    drives(Some(count))?,
                    commands,
                )))
            }
            ("null-blk", mode) => Some(Self::NullBlk(NullBlkModel::new(IrqMode::named(mode)?))),
            _ => None,
        }
    }

    fn admit(&mut self, now_ns: u64, op: ServiceOp, random: &mut fastrand::Rng) -> u64 {
        match self {
            Self::Flash(flash) => flash.admit(now_ns, op, random),
            Self::Disk(disk) => disk.admit(now_ns, op, random),
            Self::Array(array) => array.admit(now_ns, op, random),
            Self::NullBlk(null_blk) => null_blk.admit(now_ns),
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!(
            "there is no device model {name:?}; use one of {} (N from 1 to {})",
            ServiceModel::FORMS,
            array::MOST_DRIVES
        ),
    )
}

/// Nanoseconds for `len_bytes` at `bytes_per_s`.
fn transfer_ns(len_bytes: u64, bytes_per_s: f64) -> f64 {
    len_bytes as f64 * 1e9 / bytes_per_s
}

#[cfg(test)]
mod tests;
