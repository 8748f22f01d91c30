//! dm-crypt's placement: all cipher work goes to workers, and encrypted writes to a thread that
//! sorts them, except where a flag says otherwise.
//!
//! The flags mean what they mean in a dm-crypt table
//! (`Documentation/admin-guide/device-mapper/dm-crypt.rst`; `kcryptd_queue_crypt` and
//! `kcryptd_crypt_write_io_submit` in `drivers/md/dm-crypt.c`):
//! - `no_read_workqueue`, `no_write_workqueue`: reads (writes) run inline. Inline writes don't go
//!   through the write thread either.
//! - `submit_from_crypt_cpus`: no write thread, and no order; the worker that encrypted a write brings
//!   it to the device. A submission ring has one issuer, so that holds for devices that any thread may
//!   call (`null`, `memory`, and decorators over them); with others the encrypted write comes back and is
//!   submitted like any other.
//! - `same_cpu_crypt`: work stays on the CPU that handed it off.
//! - `high_priority`: workers run at raised priority.
#![forbid(unsafe_code)]

use super::{Direction, Job, Load, OffloadRules, Outcome, Placement, Policy, WriteRoute};
use crate::error::{Error, ErrorKind, Result};

bitflags::bitflags! {
    /// dm-crypt's flags, by its names. See the module documentation.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WorkqueueFlags: u8 {
        /// Decrypt inline.
        const NO_READ_WORKQUEUE = 1;
        /// Encrypt and submit inline.
        const NO_WRITE_WORKQUEUE = 2;
        /// Keep work on the CPU that hands it off.
        const SAME_CPU_CRYPT = 4;
        /// Don't send encrypted writes through the sorting thread.
        const SUBMIT_FROM_CRYPT_CPUS = 8;
        /// Raise the priority of the workers.
        const HIGH_PRIORITY = 16;
    }
}

impl WorkqueueFlags {
    /// Every flag with its name, in the order of the kernel's documentation.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("same_cpu_crypt", Self::SAME_CPU_CRYPT),
        ("high_priority", Self::HIGH_PRIORITY),
        ("submit_from_crypt_cpus", Self::SUBMIT_FROM_CRYPT_CPUS),
        ("no_read_workqueue", Self::NO_READ_WORKQUEUE),
        ("no_write_workqueue", Self::NO_WRITE_WORKQUEUE),
    ];

    /// The names of those that are set, in the same order.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let set = Self::NAMES.iter().filter(|(_, flag)| self.contains(*flag));
        set.map(|(name, _)| *name).collect()
    }

    /// Reads names between commas.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a name that is no flag, with those that are.
    pub(super) fn parse(names: &str) -> Result<Self> {
        names.split(',').try_fold(Self::empty(), |flags, name| {
            let known = Self::NAMES.iter().find(|(known, _)| *known == name);
            let (_, flag) = known.ok_or_else(|| {
                let known = Self::NAMES.map(|(known, _)| known).join(", ");
                let context =
                    format!("the policy 'workqueue' has no flag '{name}'; there are {known}");
                Error::new(ErrorKind::InvalidInput, context)
            })?;
            Ok(flags | *flag)
        })
    }

    /// Whether work of this direction runs on the queue's thread.
    #[must_use]
    pub const fn is_inline(self, direction: Direction) -> bool {
        self.contains(match direction {
            Direction::Decrypt => Self::NO_READ_WORKQUEUE,
            Direction::Encrypt => Self::NO_WRITE_WORKQUEUE,
        })
    }

    /// How the queue treats what is handed off.
    #[must_use]
    pub const fn rules(self) -> OffloadRules {
        let writes = if self.contains(Self::NO_WRITE_WORKQUEUE) {
            WriteRoute::Queue
        } else if self.contains(Self::SUBMIT_FROM_CRYPT_CPUS) {
            WriteRoute::Worker
        } else {
            WriteRoute::WriteThread
        };
        OffloadRules {
            writes,
            same_cpu: self.contains(Self::SAME_CPU_CRYPT),
            wake_each: !self.contains(Self::SAME_CPU_CRYPT),
            high_priority: self.contains(Self::HIGH_PRIORITY),
            assist: false,
        }
    }
}

/// The policy `workqueue`, with its flags.
#[derive(Clone, Copy, Debug, Default)]
pub struct Workqueue {
    flags: WorkqueueFlags,
}

impl Workqueue {
    /// The policy with these flags.
    #[must_use]
    pub const fn new(flags: WorkqueueFlags) -> Self {
        Self { flags }
    }
}

impl Policy for Workqueue {
    fn name(&self) -> String {
        super::PolicySpec::Workqueue(self.flags).to_string()
    }

    fn place(&mut self, jobs: &[Job], load: &Load, placements: &mut [Placement]) {
        for (job, placement) in jobs.iter().zip(placements) {
            *placement = if load.workers == 0 || self.flags.is_inline(job.direction) {
                Placement::Inline
            } else {
                Placement::Offload
            };
        }
    }

    fn observe(&mut self, _outcome: &Outcome) {}

    fn offload_rules(&self) -> OffloadRules {
        self.flags.rules()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_write_thread_is_for_offloaded_writes_only() {
        let writes = |flags: WorkqueueFlags| flags.rules().writes;
        let (direct, inline) = (
            WorkqueueFlags::SUBMIT_FROM_CRYPT_CPUS,
            WorkqueueFlags::NO_WRITE_WORKQUEUE,
        );
        assert_eq!(writes(WorkqueueFlags::empty()), WriteRoute::WriteThread);
        let reads_inline = WorkqueueFlags::NO_READ_WORKQUEUE;
        assert_eq!(writes(reads_inline), WriteRoute::WriteThread);
        assert_eq!(writes(direct), WriteRoute::Worker);
        assert_eq!(writes(inline), WriteRoute::Queue);
        assert_eq!(writes(inline.union(direct)), WriteRoute::Queue);
    }

    #[test]
    fn each_direction_has_its_own_bypass() {
        let flags = WorkqueueFlags::NO_READ_WORKQUEUE;
        assert!(flags.is_inline(Direction::Decrypt));
        assert!(!flags.is_inline(Direction::Encrypt));
        let flags = WorkqueueFlags::NO_WRITE_WORKQUEUE;
        assert!(!flags.is_inline(Direction::Decrypt));
        assert!(flags.is_inline(Direction::Encrypt));
    }
}
