//! One definition over another: flags over a file, a file over what everything falls back to.

#![forbid(unsafe_code)]

use super::{Definition, cases};

impl Definition {
    /// This definition, with `base` where it says nothing.
    ///
    /// What it says on an axis that the cases of `base` spread over picks the cases that have it; values that
    /// none has are measured in every case.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        let case = if self.case.is_empty() {
            cases::narrowed(&self, &base)
        } else {
            self.case.clone()
        };
        let own_blocks = !(self.bs.is_empty() && self.bssplit.is_empty());
        let (bs, bssplit) = if own_blocks {
            (self.bs, self.bssplit)
        } else {
            (base.bs, base.bssplit)
        };
        Self {
            case,
            bs,
            bssplit,
            device: list(self.device, base.device),
            rw: list(self.rw, base.rw),
            rwmixread: list(self.rwmixread, base.rwmixread),
            depth: list(self.depth, base.depth),
            jobs: list(self.jobs, base.jobs),
            devices: list(self.devices, base.devices),
            cores: list(self.cores, base.cores),
            policy: list(self.policy, base.policy),
            cipher: list(self.cipher, base.cipher),
            key_bits: list(self.key_bits, base.key_bits),
            sector_size: list(self.sector_size, base.sector_size),
            only: self.only.or(base.only),
            issuers: self.issuers.or(base.issuers),
            workers: self.workers.or(base.workers),
            hipri: self.hipri.or(base.hipri),
            readahead: self.readahead.or(base.readahead),
            direct: self.direct.or(base.direct),
            engine: self.engine.or(base.engine),
            cipher_throttle: self.cipher_throttle.or(base.cipher_throttle),
            size: self.size.or(base.size),
            runtime: self.runtime.or(base.runtime),
            ramp: self.ramp.or(base.ramp),
            slice: self.slice.or(base.slice),
            repeats: self.repeats.or(base.repeats),
            seed: self.seed.or(base.seed),
            sample: self.sample.or(base.sample),
            shard: self.shard.or(base.shard),
        }
    }
}

fn list<T>(upper: Vec<T>, lower: Vec<T>) -> Vec<T> {
    if upper.is_empty() { lower } else { upper }
}
