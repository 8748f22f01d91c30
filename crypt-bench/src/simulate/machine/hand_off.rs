//! Hand-offs between threads: what they cost, and until when.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// Most writes that a write thread may have at its device.
const MOST_WRITES_AT_DEVICE: u32 = 1 << 20;

/// Hand-offs between threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HandOff {
    /// What it costs the thread that hands off, and takes the result back.
    pub self_ns: f64,
    /// What waking a sleeper costs it on top.
    pub wake_self_ns: f64,
    /// The same where the sleeper's CPU is in a deeper sleep: in a virtual machine the interrupt that ends it
    /// goes through the host.
    pub wake_asleep_self_ns: f64,
    /// Until a thread that is awake begins.
    pub awake_ns: f64,
    /// How long an idle CPU is quick to wake, because it only dozes: the kernel's or the hypervisor's
    /// polling before a halt.
    #[serde(default)]
    pub doze_ns: f64,
    /// Until a sleeper begins whose CPU dozes, or is busy with another thread and not that of who wakes it:
    /// what an interrupt to another CPU takes.
    #[serde(default)]
    pub dozing_ns: f64,
    /// Until a sleeper begins whose CPU is in a deeper sleep: quantiles at equal steps from the shortest to the
    /// longest.
    pub asleep_ns: Vec<f64>,
    /// How long an idle worker looks for work before it sleeps.
    pub spin_ns: f64,
    /// What a write costs the write thread besides the device: sorting it in, and taking it out.
    #[serde(default)]
    pub sort_ns: f64,
    /// Most writes that a write thread has at its device.
    #[serde(default = "writes_at_device")]
    pub writes_at_device: u32,
}

impl HandOff {
    /// The mean time until a sleeper begins.
    #[must_use]
    pub fn asleep_ns_mean(&self) -> f64 {
        // Between two quantiles a time is as likely as any other.
        let ends = self
            .asleep_ns
            .windows(2)
            .map(|pair| (pair[0] + pair[1]) / 2.0);
        let steps = self.asleep_ns.len().saturating_sub(1);
        match (steps, self.asleep_ns.first()) {
            (0, first) => first.copied().unwrap_or(0.0),
            (steps, _) => ends.sum::<f64>() / steps as f64,
        }
    }

    /// The time that a share `at` (0 to 1) of all wake-ups stays below.
    #[must_use]
    pub fn asleep_ns_at(&self, at: f64) -> f64 {
        let steps = self.asleep_ns.len().saturating_sub(1) as f64;
        let place = at.clamp(0.0, 1.0) * steps;
        let below = place as usize;
        let Some(&low) = self.asleep_ns.get(below) else {
            return 0.0;
        };
        let high = self.asleep_ns.get(below + 1).copied().unwrap_or(low);
        low + (high - low) * place.fract()
    }

    /// Checks what is no plain time.
    pub(super) fn check(&self) -> Result<(), String> {
        let writes = self.writes_at_device;
        if writes == 0 || writes > MOST_WRITES_AT_DEVICE {
            return Err(format!(
                "hand-off: writes-at-device {writes} is outside 1..={MOST_WRITES_AT_DEVICE}"
            ));
        }
        let quantiles = &self.asleep_ns;
        if quantiles.is_empty() || !quantiles.is_sorted() {
            return Err(
                "hand-off: asleep-ns needs quantiles in rising order, or one figure".to_owned(),
            );
        }
        Ok(())
    }
}

/// As many as a write thread of `crypt_core::exec` has.
fn writes_at_device() -> u32 {
    128
}
