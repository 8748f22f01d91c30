//! From a definition to a plan: every combination of the axes, checked, in the order of execution.
//!
//! Pure but for the sizes of existing files, which the caller looks up. What can't be measured is
//! refused here, before anything is opened or written.

#![forbid(unsafe_code)]

mod check;

use std::collections::HashSet;

use crypt_core::spec::CipherSpec;
use crypt_core::units::SectorSize;

use crate::definition::device::DeviceSpec;
use crate::definition::{Definition, policy};
use crate::generate::{Blocks, Random};
use crate::result::{CellParams, Rw};
use check::{check_block, check_ranges, check_runs, slice_us};

/// Bytes of each volume where neither the definition nor a file says how many.
pub const DEFAULT_SIZE_BYTES: u64 = 128 << 20;

/// A checked matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Cells without their policy, in the order of execution.
    pub cells: Vec<CellParams>,
    /// Policies that every cell runs under, interleaved.
    pub policies: Vec<String>,
    /// Runs of each cell under each policy.
    pub repeats: u32,
}

/// What is known about the machine and its files.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// CPUs that the process may use.
    pub cpus: &'a [u32],
    /// Capacity of a device, in bytes, where it exists already.
    pub size_bytes: &'a dyn Fn(&DeviceSpec) -> Option<u64>,
    /// Logical CPUs of each core of a machine that may have any number of cores; `None` for one that has its own.
    pub threads_per_core: Option<u32>,
}

/// Cipher, key length and sector size.
type Crypt = (String, Option<u32>, u32);

impl Matrix {
    /// Every combination of the definition's axes.
    ///
    /// # Errors
    /// The first thing that can't be measured: what, and what to write instead.
    pub fn new(definition: &Definition, facts: &Facts<'_>) -> Result<Self, String> {
        let policies = policy::join_flags(&definition.policy)?;
        let policies = policy::with_baselines(policies, definition.only.unwrap_or(false));
        let repeats = definition.repeats.unwrap_or(1);
        let products = definition.products()?;
        check_runs(&products)?;
        let mut cells: Vec<CellParams> = Vec::new();
        for product in &products {
            multiply(product, facts, &mut cells)?;
        }
        let mut seen = HashSet::new();
        cells.retain(|cell| seen.insert(cell.clone()));
        if let Some(count) = definition.sample {
            cells = sample(cells, count, definition.seed.unwrap_or(1))?;
        }
        if let Some(shard) = definition.shard {
            cells = shard.of(cells)?;
        }
        Ok(Self {
            cells,
            policies,
            repeats,
        })
    }

    /// Every cell under every policy, in the order of execution.
    #[must_use]
    pub fn plan(&self) -> Vec<CellParams> {
        let with_policy = |cell: &CellParams, policy: &String| CellParams {
            policy: policy.clone(),
            ..cell.clone()
        };
        self.cells
            .iter()
            .flat_map(|cell| {
                self.policies
                    .iter()
                    .map(move |name| with_policy(cell, name))
            })
            .collect()
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.cells.len() as u64 * self.policies.len() as u64 * u64::from(self.repeats)
    }
}

/// `count` of the cells, in their order: the matrix is cut into as many stretches of about equal length, and one cell
/// is drawn from each, so that every device and every case has its share. The same seed draws the same cells.
fn sample(cells: Vec<CellParams>, count: u32, seed: u64) -> Result<Vec<CellParams>, String> {
    if count == 0 {
        return Err("--sample 0: at least 1 cell".to_owned());
    }
    let (len, count) = (cells.len() as u64, u64::from(count));
    if count >= len {
        return Ok(cells);
    }
    let mut random = Random::new(seed);
    let drawn: HashSet<u64> = (0..count)
        .map(|stretch| {
            let (start, end) = (stretch * len / count, (stretch + 1) * len / count);
            start + random.below_u64(end - start)
        })
        .collect();
    let wanted = (0..).zip(cells).filter(|(index, _)| drawn.contains(index));
    Ok(wanted.map(|(_, cell)| cell).collect())
}

/// Adds every combination of the axes of a definition without cases.
fn multiply(
    definition: &Definition,
    facts: &Facts<'_>,
    cells: &mut Vec<CellParams>,
) -> Result<(), String> {
    check_ranges(definition, facts)?;
    let crypts = crypts(definition)?;
    let patterns = patterns(definition)?;
    for device in &definition.device {
        for crypt in &crypts {
            for &(rw, percent) in &patterns {
                let base = base(definition, device, crypt, (rw, percent))?;
                spread(definition, &base, facts, device, cells)?;
            }
        }
    }
    Ok(())
}

/// Adds `base` with every block size, depth, number of jobs and of volumes.
fn spread(
    definition: &Definition,
    base: &CellParams,
    facts: &Facts<'_>,
    device: &DeviceSpec,
    cells: &mut Vec<CellParams>,
) -> Result<(), String> {
    for &devices in &definition.devices {
        let size_bytes = volume_size(definition, device, devices, base, facts)?;
        for (largest, block_sizes) in blocks(definition, size_bytes, base)? {
            for &depth in &definition.depth {
                for (cores, cpus) in machines(definition, facts) {
                    cells.extend(definition.jobs.iter().map(|jobs| CellParams {
                        block_size_bytes: largest,
                        block_sizes: block_sizes.clone(),
                        depth,
                        jobs: jobs.on(cpus),
                        devices,
                        cores,
                        workers: definition.workers.unwrap_or(cpus),
                        size_bytes,
                        ..base.clone()
                    }));
                }
            }
        }
    }
    Ok(())
}

/// Cores and logical CPUs of each machine; one, that there is, without the axis.
fn machines(definition: &Definition, facts: &Facts<'_>) -> Vec<(Option<u32>, u32)> {
    let there = facts.cpus.len() as u32;
    if definition.cores.is_empty() {
        return vec![(None, there)];
    }
    let threads = facts.threads_per_core.unwrap_or(1);
    let cores = definition.cores.iter();
    cores
        .map(|&cores| (Some(cores), cores.saturating_mul(threads)))
        .collect()
}

fn base(
    definition: &Definition,
    device: &DeviceSpec,
    (cipher, key_bits, sector_size_bytes): &Crypt,
    (rw, rwmixread_percent): (Rw, u8),
) -> Result<CellParams, String> {
    let millis = |time: Option<crate::definition::quantity::Time>| {
        time.map_or(0, |time| time.0.as_millis() as u64)
    };
    let runtime_ms = millis(definition.runtime);
    if runtime_ms == 0 {
        return Err("--runtime: at least 1ms".to_owned());
    }
    Ok(CellParams {
        device: device.to_string(),
        cipher: cipher.clone(),
        key_bits: *key_bits,
        sector_size_bytes: *sector_size_bytes,
        rw,
        rwmixread_percent,
        block_size_bytes: 0,
        block_sizes: None,
        depth: 0,
        jobs: 0,
        issuer_cpus: definition.issuers.clone().unwrap_or_default().0,
        devices: 0,
        cores: None,
        workers: 0,
        policy: String::new(),
        hipri: definition.hipri.unwrap_or(false),
        readahead: definition.readahead.unwrap_or(false),
        direct: device.is_file() && definition.direct.unwrap_or(true),
        engine: definition.engine.unwrap_or_default().to_string(),
        cipher_throttle_bytes_per_s: definition.cipher_throttle.map(|rate| rate.0),
        size_bytes: 0,
        runtime_ms,
        ramp_ms: millis(definition.ramp),
        slice_us: slice_us(definition, runtime_ms)?,
        seed: definition.seed.unwrap_or(1),
    })
}

/// Patterns with their share of reads; a pure pattern appears once whatever the mixes are.
fn patterns(definition: &Definition) -> Result<Vec<(Rw, u8)>, String> {
    if let Some(percent) = definition.rwmixread.iter().find(|&&percent| percent > 100) {
        return Err(format!("--rwmixread {percent}: from 0 to 100 percent"));
    }
    let mut patterns = Vec::new();
    for &rw in &definition.rw {
        let percents: &[u8] = match (rw.reads(), rw.writes()) {
            (true, true) => &definition.rwmixread,
            (true, false) => &[100],
            _ => &[0],
        };
        for &percent in percents {
            if !patterns.contains(&(rw, percent)) {
                patterns.push((rw, percent));
            }
        }
    }
    Ok(patterns)
}

/// Ciphers with their key length and sector size; each combination that means something, once.
fn crypts(definition: &Definition) -> Result<Vec<Crypt>, String> {
    let mut crypts: Vec<Crypt> = Vec::new();
    for cipher in &definition.cipher {
        for &sector_size in &definition.sector_size {
            if SectorSize::from_bytes(sector_size.0).is_none() {
                return Err(format!(
                    "--sector-size {sector_size}: use 512, 1k, 2k or 4k"
                ));
            }
            for key_bits in key_lengths(cipher, &definition.key_bits)? {
                // Without a crypt stage there is no crypto sector; requests are whole 512-byte sectors.
                let sector = if cipher == "none" {
                    512
                } else {
                    sector_size.0 as u32
                };
                let crypt = (cipher.clone(), key_bits, sector);
                if !crypts.contains(&crypt) {
                    crypts.push(crypt);
                }
            }
        }
    }
    Ok(crypts)
}

fn key_lengths(cipher: &str, asked: &[u32]) -> Result<Vec<Option<u32>>, String> {
    if cipher == "none" {
        return Ok(vec![None]);
    }
    let spec: CipherSpec = cipher
        .parse()
        .map_err(|error| format!("--cipher: {error}, none"))?;
    let possible: Vec<u32> = spec
        .key_lens_bytes()
        .iter()
        .map(|&bytes| 8 * bytes as u32)
        .collect();
    if possible == [0] {
        return Ok(vec![None]);
    }
    for bits in asked {
        if !possible.contains(bits) {
            let possible: Vec<String> = possible.iter().map(u32::to_string).collect();
            return Err(format!(
                "--key-bits {bits}: {cipher} takes {} (XTS has two keys: 256 is AES-128, 512 is \
                 AES-256)",
                possible.join(" or ")
            ));
        }
    }
    Ok(asked.iter().copied().map(Some).collect())
}

/// Length of each volume: as asked, or an even share of what exists.
fn volume_size(
    definition: &Definition,
    device: &DeviceSpec,
    devices: u32,
    base: &CellParams,
    facts: &Facts<'_>,
) -> Result<u64, String> {
    let sector = u64::from(base.sector_size_bytes);
    let existing = (facts.size_bytes)(device);
    let size = match (definition.size, existing) {
        (Some(size), _) => size.0,
        (None, Some(bytes)) if devices == 1 => bytes,
        (None, Some(bytes)) => bytes / u64::from(devices) / sector * sector,
        (None, None) => DEFAULT_SIZE_BYTES,
    };
    if size == 0 || !size.is_multiple_of(sector) {
        return Err(format!(
            "{device}: a size of {size} bytes is not a multiple of the {sector}-byte sector ({} \
             bytes too many); give another --size or --sector-size",
            size % sector
        ));
    }
    let needed = size.checked_mul(u64::from(devices));
    match (needed, existing) {
        (None, _) => Err(format!(
            "{devices} volumes of {size} bytes are beyond 64 bits"
        )),
        (Some(needed), Some(bytes)) if needed > bytes => Err(format!(
            "{device} has {bytes} bytes, but {devices} x {size} are asked for; give a smaller --size"
        )),
        _ => Ok(size),
    }
}

/// The longest length of each position of the block axis, and the text of those that have several.
fn blocks(
    definition: &Definition,
    size_bytes: u64,
    base: &CellParams,
) -> Result<Vec<(u64, Option<String>)>, String> {
    let fixed = definition.bs.iter().map(|size| Ok(Blocks::fixed(size.0)));
    let parse = |text: &String| text.parse().map_err(|error| format!("--bssplit: {error}"));
    let several = definition.bssplit.iter().map(parse);
    fixed
        .chain(several)
        .map(|blocks: Result<Blocks, String>| {
            let blocks = blocks?;
            check_block(&blocks, size_bytes, base)?;
            let text = blocks.only(base.rw).is_none().then(|| blocks.to_string());
            Ok((blocks.largest(base.rw), text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(toml: &str) -> Result<Matrix, String> {
        let definition = Definition::parse(toml).unwrap();
        let definition = definition.over(Definition::fallback().unwrap());
        let facts = Facts {
            cpus: &[0, 1],
            size_bytes: &|device| matches!(device, DeviceSpec::File(_)).then_some(10_000_000),
            threads_per_core: toml.contains("cores").then_some(2),
        };
        Matrix::new(&definition, &facts)
    }

    #[test]
    fn every_combination_is_there_once_with_its_policies_together() {
        let matrix = matrix(
            "device = ['null']\nrw = ['randread', 'randrw']\nrwmixread = [30, 70]\n\
             bs = ['4k', '8k']\ndepth = [1, 2]\ncipher = ['aes-xts-plain64', 'none']\n\
             key-bits = [256, 512]\npolicy = ['adaptive']",
        )
        .unwrap();
        // (two key lengths + none) x (randread + two mixes) x two block sizes x two depths
        assert_eq!(matrix.cells.len(), 3 * 3 * 2 * 2);
        let plan = matrix.plan();
        assert_eq!(plan.len(), matrix.cells.len() * 3);
        assert_eq!(plan[0].without_policy(), plan[2].without_policy());
        let names: Vec<&str> = plan[..3].iter().map(|cell| cell.policy.as_str()).collect();
        assert_eq!(names, ["inline", "workqueue", "adaptive"]);
    }

    #[test]
    fn cases_add_up_and_splits_are_positions_of_the_block_axis() {
        let matrix = matrix(
            "device = ['null']\nrw = ['randrw', 'randread']\nrwmixread = [66]\njobs = ['cpus']\n\
             [[case]]\nbssplit = ['64k/60:1m/40,1m']\ndepth = [8]\n\
             [[case]]\nbs = ['4k']\ndepth = [1, 8]\n[[case]]\nbs = ['4k']\ndepth = [8]\n",
        )
        .unwrap();
        let seen: Vec<_> = matrix
            .cells
            .iter()
            .map(|cell| {
                (
                    cell.block_size_bytes,
                    cell.block_sizes.as_deref(),
                    cell.depth,
                    cell.jobs,
                )
            })
            .collect();
        let split = (1 << 20, Some("64k/60:1m/40,1m"), 8, 2);
        let (one, eight) = ((4096, None, 1, 2), (4096, None, 8, 2));
        assert_eq!(seen, [split, split, one, eight, one, eight]);
    }

    #[test]
    fn machines_of_several_sizes_have_jobs_and_workers_of_theirs() {
        let matrix = matrix(
            "bs = ['4k']\nrw = ['read']\ndevice = ['null']\njobs = ['cpus']\ncores = [1, 8]",
        )
        .unwrap();
        let seen: Vec<_> = matrix
            .cells
            .iter()
            .map(|cell| (cell.cores, cell.jobs, cell.workers))
            .collect();
        assert!(seen.contains(&(Some(1), 2, 2)) && seen.contains(&(Some(8), 16, 16)));
    }

    #[test]
    fn a_sample_is_even_in_order_and_the_same_for_a_seed() {
        let plan = "device = ['null', 'memory']\nbs = ['4k', '8k']\ndepth = [1, 2, 3, 4, 5, 6, 7, 8]\nrw = ['read']";
        let drawn = |sample: &str| matrix(&format!("{sample}\n{plan}")).unwrap().cells;
        let all = drawn("");
        assert_eq!(all.len(), 32);
        let some = drawn("sample = 8");
        assert_eq!(some, drawn("sample = 8"));
        assert_ne!(some, drawn("sample = 8\nseed = 2"));
        let places: Vec<usize> = some
            .iter()
            .map(|cell| all.iter().position(|other| other == cell).unwrap())
            .collect();
        assert!((0..8).all(|n| places[n] / 4 == n), "{places:?}");
        assert_eq!(drawn("sample = 33"), all);
        assert!(matrix("sample = 0").unwrap_err().contains("--sample 0"));
    }

    #[test]
    fn volumes_share_an_existing_file() {
        let matrix =
            matrix("device = ['file:x']\ndevices = [3]\nbs = ['4k']\nrw = ['read']").unwrap();
        assert_eq!(matrix.cells[0].size_bytes, 10_000_000 / 3 / 4096 * 4096);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_a_reason() {
        for (toml, reason) in [
            ("depth = [0]", "--depth 0"),
            ("depth = [20000]", "16384"),
            ("bs = ['512']", "sector size of 4096"),
            ("bs = ['6k']", "sector size of 4096"),
            ("bs = ['0']", "--bs 0"),
            ("bs = ['1g']", "at most 64m"),
            (
                "size = '2k'\nsector-size = ['512']\nbs = ['4k']",
                "smaller than a block",
            ),
            ("size = '4097'", "1 bytes too many"),
            ("device = ['file:x']\nsize = '1g'", "10000000 bytes"),
            ("device = ['file:x']", "too many"),
            ("rwmixread = [101]", "0 to 100"),
            ("cipher = ['aes-cbc-essiv']", "none"),
            ("key-bits = [128]", "256 is AES-128"),
            ("sector-size = ['8k']", "512, 1k, 2k or 4k"),
            ("jobs = [0]", "--jobs 0"),
            ("cores = [0]", "--cores 0"),
            ("cores = [4000]", "at most 4096"),
            ("cores = [600]\njobs = ['cpus']", "1200 jobs"),
            ("issuers = '7'", "CPU 7"),
            ("repeats = 0", "--repeats"),
            ("repeats = 4000000000", "too many"),
            ("runtime = '0'", "--runtime"),
            ("workers = 0", "--workers"),
            ("policy = ['fast']", "no policy is called"),
            ("devices = [100]\njobs = [100]", "10000 jobs"),
            ("bssplit = ['4k/50:8k/40']", "add up to 90"),
            ("bssplit = ['512/50:8k/50']", "sector size of 4096"),
            ("slice = '0'", "--slice 0"),
            ("slice = '300ms'", "the runtime of 200ms"),
            ("slice = '1us'", "slices"),
            ("[[case]]\nrepeats = 2", "case 1: repeats"),
            ("[[case]]\nbs = ['8k']\n[[case]]\ndepth = [0]", "--depth 0"),
        ] {
            let message = matrix(toml).unwrap_err();
            assert!(message.contains(reason), "{toml}: {message}");
        }
    }
}
