//! The parameters of a cell as axes: which there are, how they are named, printed and ordered.

#![forbid(unsafe_code)]

use super::format::{Unit, size};
use crate::result::{CellParams, Rw};

/// One parameter of a cell that can vary over a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// Device.
    Device,
    /// Direction and order.
    Rw,
    /// Length of a request.
    BlockSize,
    /// Requests in flight per job.
    Depth,
    /// Threads that submit.
    Jobs,
    /// Dispatch policy.
    Policy,
    /// Cipher with its key length.
    Cipher,
    /// Unit of one IV.
    SectorSize,
    /// Share of reads.
    Mix,
    /// Volumes that share a pool.
    Devices,
    /// Cores of a simulated machine.
    Cores,
    /// Threads of the pool.
    Workers,
    /// Polled or not.
    Hipri,
    /// Marked as read-ahead or not.
    Readahead,
    /// Past the page cache or not.
    Direct,
    /// Mechanism of files.
    Engine,
    /// Upper bound of the cipher's speed.
    Throttle,
    /// CPUs of the jobs.
    IssuerCpus,
    /// Size of a volume.
    Size,
    /// Measuring time.
    Runtime,
    /// Warm-up time.
    Ramp,
    /// Slices of throughput over time.
    Slice,
    /// Seed of the generators.
    Seed,
}

impl Axis {
    /// Every axis.
    pub const ALL: [Self; 23] = [
        Self::Device,
        Self::Rw,
        Self::BlockSize,
        Self::Depth,
        Self::Jobs,
        Self::Policy,
        Self::Cipher,
        Self::SectorSize,
        Self::Mix,
        Self::Devices,
        Self::Cores,
        Self::Workers,
        Self::Hipri,
        Self::Readahead,
        Self::Direct,
        Self::Engine,
        Self::Throttle,
        Self::IssuerCpus,
        Self::Size,
        Self::Runtime,
        Self::Ramp,
        Self::Slice,
        Self::Seed,
    ];

    /// The name on the command line, the matrix flag's own.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Rw => "rw",
            Self::BlockSize => "bs",
            Self::Depth => "depth",
            Self::Jobs => "jobs",
            Self::Policy => "policy",
            Self::Cipher => "cipher",
            Self::SectorSize => "sector-size",
            Self::Mix => "rwmixread",
            Self::Devices => "devices",
            Self::Cores => "cores",
            Self::Workers => "workers",
            Self::Hipri => "hipri",
            Self::Readahead => "readahead",
            Self::Direct => "direct",
            Self::Engine => "engine",
            Self::Throttle => "cipher-throttle",
            Self::IssuerCpus => "issuers",
            Self::Size => "size",
            Self::Runtime => "runtime",
            Self::Ramp => "ramp",
            Self::Slice => "slice",
            Self::Seed => "seed",
        }
    }

    /// The axis with this command-line name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|axis| axis.name() == name)
    }

    /// The name in pictures, with the unit.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::BlockSize => "block size (bytes)",
            Self::Depth => "depth (requests in flight per job)",
            Self::SectorSize => "crypto sector (bytes)",
            Self::Mix => "reads (%)",
            Self::Throttle => "cipher bound",
            other => other.name(),
        }
    }

    /// The cell's position in words.
    #[must_use]
    pub fn text(self, cell: &CellParams) -> String {
        match self {
            Self::Device => cell.device.clone(),
            Self::Rw => cell.rw.name().to_owned(),
            Self::Policy => cell.policy.clone(),
            Self::Engine => cell.engine.clone(),
            Self::Cipher => match cell.key_bits {
                Some(bits) => format!("{} ({bits}-bit key)", cell.cipher),
                None => cell.cipher.clone(),
            },
            Self::BlockSize => match &cell.block_sizes {
                Some(sizes) => sizes.clone(),
                None => size(cell.block_size_bytes),
            },
            Self::SectorSize => size(u64::from(cell.sector_size_bytes)),
            Self::Size => size(cell.size_bytes),
            Self::Hipri => on_off(cell.hipri),
            Self::Readahead => on_off(cell.readahead),
            Self::Direct => on_off(cell.direct),
            Self::Throttle => cell
                .cipher_throttle_bytes_per_s
                .map_or("none".to_owned(), |rate| {
                    Unit::BytesPerSecond.text(rate as f64)
                }),
            Self::IssuerCpus if cell.issuer_cpus.is_empty() => "not pinned".to_owned(),
            Self::IssuerCpus => {
                let cpus: Vec<String> = cell.issuer_cpus.iter().map(u32::to_string).collect();
                cpus.join(",")
            }
            Self::Cores => cell
                .cores
                .map_or("the machine's".to_owned(), |cores| cores.to_string()),
            Self::Slice => cell
                .slice_us
                .map_or("by runtime".to_owned(), |us| format!("{us} µs")),
            Self::Runtime | Self::Ramp => format!("{} ms", self.rank(cell)),
            Self::Depth | Self::Jobs | Self::Mix | Self::Devices | Self::Workers | Self::Seed => {
                self.rank(cell).to_string()
            }
        }
    }

    /// Orders positions; equal ranks keep the order of the plan.
    #[must_use]
    pub fn rank(self, cell: &CellParams) -> u64 {
        match self {
            Self::Device | Self::Policy | Self::Cipher | Self::Engine => 0,
            Self::Rw => Rw::ALL.iter().position(|rw| *rw == cell.rw).unwrap_or(0) as u64,
            Self::BlockSize => cell.block_size_bytes,
            Self::Depth => u64::from(cell.depth),
            Self::Jobs => u64::from(cell.jobs),
            Self::SectorSize => u64::from(cell.sector_size_bytes),
            Self::Mix => u64::from(cell.rwmixread_percent),
            Self::Devices => u64::from(cell.devices),
            Self::Cores => cell.cores.map_or(0, u64::from),
            Self::Workers => u64::from(cell.workers),
            Self::Hipri => u64::from(cell.hipri),
            Self::Readahead => u64::from(cell.readahead),
            Self::Direct => u64::from(cell.direct),
            Self::Throttle => cell.cipher_throttle_bytes_per_s.unwrap_or(u64::MAX),
            Self::IssuerCpus => cell.issuer_cpus.len() as u64,
            Self::Size => cell.size_bytes,
            Self::Runtime => cell.runtime_ms,
            Self::Ramp => cell.ramp_ms,
            Self::Slice => cell.slice_us.unwrap_or(u64::MAX),
            Self::Seed => cell.seed,
        }
    }

    /// The distinct positions of `cells`, in order.
    pub fn positions<'a>(self, cells: impl IntoIterator<Item = &'a CellParams>) -> Vec<String> {
        let mut seen: Vec<(u64, String)> = Vec::new();
        for cell in cells {
            let position = (self.rank(cell), self.text(cell));
            if !seen.contains(&position) {
                seen.push(position);
            }
        }
        seen.sort_by_key(|(rank, _)| *rank);
        seen.into_iter().map(|(_, text)| text).collect()
    }
}

fn on_off(flag: bool) -> String {
    if flag { "on" } else { "off" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell;

    #[test]
    fn names_are_unique_and_lead_back_to_their_axis() {
        for axis in Axis::ALL {
            assert_eq!(Axis::from_name(axis.name()), Some(axis));
        }
        assert_eq!(Axis::from_name("colour"), None);
    }

    #[test]
    fn numbers_are_ordered_as_numbers_and_names_as_planned() {
        let cells = [
            cell("workqueue", 65536, 32),
            cell("inline", 4096, 4),
            cell("inline", 4096, 32),
        ];
        assert_eq!(Axis::BlockSize.positions(&cells), ["4k", "64k"]);
        assert_eq!(Axis::Depth.positions(&cells), ["4", "32"]);
        assert_eq!(Axis::Policy.positions(&cells), ["workqueue", "inline"]);
        assert_eq!(Axis::Rw.positions(&cells), ["randread"]);
    }
}
