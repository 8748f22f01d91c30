//! A machine as far as the time of block encryption is concerned: processors, ciphers, copies, hand-offs.
//!
//! Written as TOML; `crypt-bench calibrate` measures one, `benches/machines/` has others. Times are what
//! one logical CPU takes that has its core to itself.

#![forbid(unsafe_code)]

mod hand_off;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use hand_off::HandOff;

use crate::input;

/// The machines that come with the program, by name.
pub const PRESETS: [(&str, &str); 8] = [
    (
        "two-cores",
        include_str!("../../../benches/machines/two-cores.toml"),
    ),
    (
        "server-64",
        include_str!("../../../benches/machines/server-64.toml"),
    ),
    (
        "server-256",
        include_str!("../../../benches/machines/server-256.toml"),
    ),
    (
        "dorminy-host",
        include_str!("../../../benches/machines/dorminy-host.toml"),
    ),
    (
        "dorminy-optane-host",
        include_str!("../../../benches/machines/dorminy-optane-host.toml"),
    ),
    (
        "korchagin-vm",
        include_str!("../../../benches/machines/korchagin-vm.toml"),
    ),
    (
        "cloudflare-server",
        include_str!("../../../benches/machines/cloudflare-server.toml"),
    ),
    (
        "lemoal-xeon",
        include_str!("../../../benches/machines/lemoal-xeon.toml"),
    ),
];

/// Most logical CPUs of a machine.
const MAX_CPUS: u32 = 4096;

/// A machine. See the module documentation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Machine {
    /// Name, which stands for the host in results.
    pub name: String,
    /// What it is, and where its figures come from.
    pub description: String,
    /// Processors.
    pub cpu: Cpu,
    /// Cipher speed by dm-crypt's name of the cipher.
    pub cipher: BTreeMap<String, Cipher>,
    /// What a request costs the thread that makes it, apart from cipher and device.
    pub request: Request,
    /// Copying, and fetching what another CPU has changed.
    pub memory: Memory,
    /// What the path to the device costs.
    pub device: DevicePath,
    /// Handing work to other threads.
    pub hand_off: HandOff,
    /// How threads share CPUs.
    pub scheduler: Scheduler,
}

/// Processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cpu {
    /// Physical cores.
    pub cores: u32,
    /// Logical CPUs of each core.
    #[serde(default = "one")]
    pub threads_per_core: u32,
    /// Speed of a logical CPU while its sibling is busy, as a share of the core's.
    #[serde(default = "two_thirds")]
    pub smt_share: f64,
    /// NUMA nodes, each with an equal share of the cores.
    #[serde(default = "one")]
    pub nodes: u32,
}

/// Speed of a cipher.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cipher {
    /// Encrypting out of place.
    pub encrypt_ns_per_byte: f64,
    /// Decrypting in place.
    pub decrypt_ns_per_byte: f64,
    /// Fixed cost of a call.
    #[serde(default)]
    pub call_ns: f64,
}

/// What a request costs its thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Request {
    /// Making and submitting it.
    pub submit_ns: f64,
    /// Completing and recording it.
    pub complete_ns: f64,
}

/// Memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Memory {
    /// Reaching a place in a device in memory that is in no cache.
    #[serde(default)]
    pub reach_ns: f64,
    /// Copying a byte, as such a device does.
    pub copy_ns_per_byte: f64,
    /// What a byte costs on top that another CPU has written.
    pub fetch_ns_per_byte: f64,
    /// How many times as much where that CPU is on another node.
    #[serde(default = "double")]
    pub node_factor: f64,
}

/// The path to the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DevicePath {
    /// Handing an operation to the device: the thread's share of the system call and the driver.
    pub push_ns: f64,
    /// Taking its completion.
    pub reap_ns: f64,
    /// Whether the processor copies the data of modelled drives, as the model over memory does that
    /// `matrix` runs on; drives that move it themselves don't.
    pub copies: bool,
    /// Whether a completion ends a sleep as late as any wake-up does (`interrupt`), or in time since the
    /// sleeper knows when to look (`timer`, as `matrix` on its models).
    pub wakes_by: WakesBy,
}

/// What ends a sleep when the device has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WakesBy {
    /// An interrupt, and then the scheduler.
    Interrupt,
    /// The sleeper's own timer.
    Timer,
}

/// How threads share CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scheduler {
    /// From one thread to another on the same CPU; a sleeper that is woken from its own CPU takes no longer.
    pub switch_ns: f64,
    /// How long a thread runs while others wait for its CPU.
    pub slice_ns: f64,
}

impl Machine {
    /// Reads a machine: a file, or the name of a preset where there is no such file.
    ///
    /// # Errors
    /// A missing file (with the presets' names), one that does not parse (with line and column), or a
    /// figure that no machine has.
    pub fn load(name: &Path) -> Result<Self, String> {
        let shown = name.display();
        let preset = PRESETS
            .iter()
            .find(|(preset, _)| name.as_os_str() == *preset);
        let text = match (input::text(name, input::MOST_BYTES), preset) {
            (Ok(text), _) => text,
            (Err(_), Some((_, text))) => (*text).to_owned(),
            (Err(error), None) => {
                let names = PRESETS.map(|(name, _)| name).join(", ");
                return Err(format!(
                    "{shown}: {error}; a file (crypt-bench calibrate makes one of this machine), or one of \
                     the machines {names}"
                ));
            }
        };
        Self::parse(&text).map_err(|error| format!("{shown}: {error}"))
    }

    /// The preset of this name.
    ///
    /// # Errors
    /// An unknown name, with those there are.
    pub fn named(name: &str) -> Result<Self, String> {
        let preset = PRESETS.iter().find(|(preset, _)| *preset == name);
        let names = || PRESETS.map(|(name, _)| name).join(", ");
        let (_, text) =
            preset.ok_or_else(|| format!("there is no machine {name}; there are {}", names()))?;
        Self::parse(text).map_err(|error| format!("{name}: {error}"))
    }

    /// Parses and checks a machine.
    ///
    /// # Errors
    /// As [`Machine::load`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let machine: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        machine.check()?;
        Ok(machine)
    }

    /// The machine as TOML; parses to the same again.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_else(|error| unreachable!("plain data: {error}"))
    }

    /// The machine with so many cores, where a number is given. Cores that its nodes can't share evenly are on one.
    #[must_use]
    pub fn with_cores(&self, cores: Option<u32>) -> Cow<'_, Self> {
        let Some(cores) = cores else {
            return Cow::Borrowed(self);
        };
        let mut machine = self.clone();
        machine.cpu.cores = cores;
        if !cores.is_multiple_of(machine.cpu.nodes) {
            machine.cpu.nodes = 1;
        }
        Cow::Owned(machine)
    }

    /// Logical CPUs.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.cpu.cores * self.cpu.threads_per_core
    }

    /// The speed of a cipher of a cell; no time at all for `none`.
    ///
    /// # Errors
    /// Where the machine doesn't say, with the ciphers that it knows.
    pub fn cipher(&self, name: &str) -> Result<Cipher, String> {
        if name == "none" {
            return Ok(Cipher {
                encrypt_ns_per_byte: 0.0,
                decrypt_ns_per_byte: 0.0,
                call_ns: 0.0,
            });
        }
        self.cipher.get(name).copied().ok_or_else(|| {
            let known: Vec<&str> = self.cipher.keys().map(String::as_str).collect();
            format!(
                "the machine {} says nothing of the cipher {name}, only of {}; add a [cipher.{name}] to its \
                 file",
                self.name,
                known.join(", ")
            )
        })
    }

    fn check(&self) -> Result<(), String> {
        let cpu = &self.cpu;
        let cpus = u64::from(cpu.cores) * u64::from(cpu.threads_per_core);
        if cpus == 0 || cpus > u64::from(MAX_CPUS) {
            return Err(format!(
                "cpu: {cpus} logical CPUs are outside 1..={MAX_CPUS}"
            ));
        }
        if cpu.nodes == 0 || !cpu.cores.is_multiple_of(cpu.nodes) {
            let (cores, nodes) = (cpu.cores, cpu.nodes);
            return Err(format!(
                "cpu: {cores} cores can't be shared evenly by {nodes} nodes"
            ));
        }
        if !(cpu.smt_share > 0.0 && cpu.smt_share <= 1.0) {
            let share = cpu.smt_share;
            return Err(format!("cpu: smt-share {share} is outside 0..=1"));
        }
        self.hand_off.check()?;
        self.figures().try_for_each(|(what, value)| {
            if (0.0..1e12).contains(&value) {
                Ok(())
            } else {
                Err(format!("{what}: {value} is outside 0..1e12"))
            }
        })
    }

    /// Every figure that is a time or a factor.
    fn figures(&self) -> impl Iterator<Item = (String, f64)> {
        let ciphers = self.cipher.iter().flat_map(|(name, cipher)| {
            [
                (
                    format!("cipher.{name}: encrypt-ns-per-byte"),
                    cipher.encrypt_ns_per_byte,
                ),
                (
                    format!("cipher.{name}: decrypt-ns-per-byte"),
                    cipher.decrypt_ns_per_byte,
                ),
                (format!("cipher.{name}: call-ns"), cipher.call_ns),
            ]
        });
        let (request, memory, device) = (&self.request, &self.memory, &self.device);
        let (hand_off, scheduler) = (&self.hand_off, &self.scheduler);
        let others = [
            ("request: submit-ns", request.submit_ns),
            ("request: complete-ns", request.complete_ns),
            ("memory: reach-ns", memory.reach_ns),
            ("memory: copy-ns-per-byte", memory.copy_ns_per_byte),
            ("memory: fetch-ns-per-byte", memory.fetch_ns_per_byte),
            ("memory: node-factor", memory.node_factor),
            ("device: push-ns", device.push_ns),
            ("device: reap-ns", device.reap_ns),
            ("hand-off: self-ns", hand_off.self_ns),
            ("hand-off: wake-self-ns", hand_off.wake_self_ns),
            (
                "hand-off: wake-asleep-self-ns",
                hand_off.wake_asleep_self_ns,
            ),
            ("hand-off: awake-ns", hand_off.awake_ns),
            ("hand-off: doze-ns", hand_off.doze_ns),
            ("hand-off: dozing-ns", hand_off.dozing_ns),
            ("hand-off: spin-ns", hand_off.spin_ns),
            ("hand-off: sort-ns", hand_off.sort_ns),
            ("scheduler: switch-ns", scheduler.switch_ns),
            ("scheduler: slice-ns", scheduler.slice_ns),
        ];
        let quantiles = hand_off.asleep_ns.iter();
        let quantiles = quantiles.map(|&ns| ("hand-off: asleep-ns".to_owned(), ns));
        let others = others.into_iter().map(|(what, ns)| (what.to_owned(), ns));
        ciphers.chain(others).chain(quantiles)
    }
}

fn one() -> u32 {
    1
}

fn two_thirds() -> f64 {
    2.0 / 3.0
}

fn double() -> f64 {
    2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_parses_and_prints_as_itself() {
        for (name, text) in PRESETS {
            let machine = Machine::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(Machine::parse(&machine.to_toml()), Ok(machine), "{name}");
        }
    }

    #[test]
    fn figures_that_no_machine_has_are_named() {
        let good = PRESETS[0].1;
        let wrong = |from: &str, to: &str| {
            let start = good.find(from).unwrap_or_else(|| panic!("{from}"));
            let end = start + good[start..].find('\n').unwrap();
            let text = format!("{}{to}{}", &good[..start], &good[end..]);
            Machine::parse(&text).unwrap_err()
        };
        for (from, to, named) in [
            ("cores =", "cores = 0", "logical CPUs"),
            ("cores =", "cores = 5000", "4096"),
            ("push-ns", "push-ns = -1.0", "push-ns"),
            ("push-ns", "push-ns = nan", "push-ns"),
            ("asleep-ns", "asleep-ns = [3.0, 2.0]", "rising"),
            ("asleep-ns", "asleep-ns = []", "asleep-ns"),
            ("slice-ns", "slices-ns = 1", "slices-ns"),
            (
                "spin-ns",
                "spin-ns = 0.0\nwrites-at-device = 0",
                "writes-at-device 0",
            ),
        ] {
            let message = wrong(from, to);
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn wake_ups_are_spread_over_their_quantiles() {
        let mut hand_off = Machine::parse(PRESETS[0].1).unwrap().hand_off;
        hand_off.asleep_ns = vec![10.0, 20.0, 40.0];
        assert_eq!(hand_off.asleep_ns_mean(), 22.5);
        let at = [0.0, 0.25, 0.5, 0.75, 1.0].map(|at| hand_off.asleep_ns_at(at));
        assert_eq!(at, [10.0, 15.0, 20.0, 30.0, 40.0]);
        hand_off.asleep_ns = vec![7.0];
        assert_eq!(
            (hand_off.asleep_ns_mean(), hand_off.asleep_ns_at(0.7)),
            (7.0, 7.0)
        );
    }
}
