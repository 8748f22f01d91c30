//! How long work takes a thread where it runs.

#![forbid(unsafe_code)]

use crypt_core::pipeline::Transfer;

use super::agenda::Actor;
use super::pool::Part;
use super::scene::Scene;

impl Scene<'_> {
    /// What fetching data costs a thread that another CPU has written.
    #[inline]
    pub(super) fn fetch_ns(&self, actor: Actor, written_on: usize, len_bytes: u64) -> f64 {
        let cpu = self.cores.cpu(actor);
        if cpu == written_on {
            return 0.0;
        }
        let memory = &self.machine.memory;
        let near_ns = memory.fetch_ns_per_byte * len_bytes as f64;
        if self.cores.are_near(cpu, written_on) {
            near_ns
        } else {
            near_ns * memory.node_factor
        }
    }

    /// What handing an operation to a device costs the thread, its copying included.
    pub(super) fn push_ns(
        &self,
        actor: Actor,
        volume: usize,
        transfer: &Transfer,
        written_on: Option<usize>,
    ) -> f64 {
        let device = &self.devices[volume];
        let mut ns = if device.is_drive() {
            self.machine.device.push_ns
        } else {
            0.0
        };
        if device.copies(self.machine.device.copies) {
            let len_bytes = transfer.len_bytes;
            ns += self.copy_ns(len_bytes);
            ns += written_on.map_or(0.0, |cpu| self.fetch_ns(actor, cpu, len_bytes));
        }
        ns
    }

    /// What copying to or from a device in memory costs.
    pub(super) fn copy_ns(&self, len_bytes: u64) -> f64 {
        let memory = &self.machine.memory;
        memory.reach_ns + memory.copy_ns_per_byte * len_bytes as f64
    }

    /// What cipher work costs on a CPU that has the data.
    #[inline]
    pub(super) fn cipher_ns(&self, encrypts: bool, len_bytes: u32) -> f64 {
        let cipher = &self.cipher;
        let ns_per_byte = if encrypts {
            cipher.encrypt_ns_per_byte
        } else {
            cipher.decrypt_ns_per_byte
        };
        cipher.call_ns + ns_per_byte * f64::from(len_bytes)
    }

    /// What a part costs a thread.
    pub(super) fn part_ns(&self, actor: Actor, part: &Part) -> f64 {
        let fetch_ns = part
            .written_on
            .map_or(0.0, |cpu| self.fetch_ns(actor, cpu, part.len_bytes.into()));
        self.cipher_ns(part.encrypts, part.len_bytes) + fetch_ns + part.write_ns
    }
}
