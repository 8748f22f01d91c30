//! Devices in virtual time.

#![forbid(unsafe_code)]

use crypt_core::device::service::{ServiceModel, ServiceOp};
use crypt_core::pipeline::Transfer;

use crate::definition::device::DeviceSpec;

/// A device of the simulation.
#[derive(Debug)]
pub(super) enum Device {
    /// Does nothing, in no time.
    Null,
    /// Copies on the thread that asks.
    Memory,
    /// A modelled drive.
    Drive(Box<ServiceModel>),
}

impl Device {
    /// The device called `name`, of `size_bytes`.
    ///
    /// # Errors
    /// Where it can't be simulated.
    pub(super) fn open(name: &str, size_bytes: u64, seed: u64) -> Result<Self, String> {
        match name.parse::<DeviceSpec>()? {
            DeviceSpec::Null => Ok(Self::Null),
            DeviceSpec::Memory => Ok(Self::Memory),
            DeviceSpec::Model(model) => ServiceModel::named(&model, size_bytes, seed)
                .map(|model| Self::Drive(Box::new(model)))
                .map_err(|error| error.to_string()),
            DeviceSpec::Scratch(_) | DeviceSpec::File(_) => Err(format!(
                "--device {name}: files can't be simulated; use null, memory or model:NAME with one of {}",
                ServiceModel::FORMS
            )),
        }
    }

    /// When an operation ends that arrives now; `None` where it is over with the call.
    #[inline]
    pub(super) fn start(&mut self, now_ns: u64, transfer: &Transfer) -> Option<u64> {
        match self {
            Self::Null | Self::Memory => None,
            Self::Drive(model) => Some(model.admit(
                now_ns,
                ServiceOp {
                    op: transfer.op,
                    flags: transfer.flags,
                    offset_bytes: transfer.offset_bytes,
                    len_bytes: transfer.len_bytes,
                },
            )),
        }
    }

    /// Whether the data is copied by the processor, given whether drives need that.
    #[inline]
    pub(super) fn copies(&self, drives: bool) -> bool {
        match self {
            Self::Null => false,
            Self::Memory => true,
            Self::Drive(model) => drives && model.transfers(),
        }
    }

    /// Whether any thread can write, and that is over with the call.
    pub(super) fn is_immediate(&self) -> bool {
        matches!(self, Self::Null | Self::Memory)
    }

    /// Whether operations take time of their own.
    #[inline]
    pub(super) fn is_drive(&self) -> bool {
        matches!(self, Self::Drive(_))
    }
}
