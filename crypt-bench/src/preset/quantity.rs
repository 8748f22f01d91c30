//! Quantities with their unit, by the names that columns of published tables have: `mb_s`, `clat_us_p99`.

#![forbid(unsafe_code)]

use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Throughput of both directions together.
    Throughput,
    /// Throughput of each direction, where both have the same share.
    EachWay,
    /// Mean of the whole latency.
    LatMean,
    /// 99th percentile of the whole latency.
    LatP99,
    /// Mean of the latency from issue to the device to completion.
    ClatMean,
    /// 99th percentile of it.
    ClatP99,
    /// Mean of the whole latency of reads.
    ReadLatMean,
    /// Mean of the whole latency of writes.
    WriteLatMean,
}

/// A quantity in a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// What it is of.
    pub quantity: Quantity,
    /// The unit in bytes per second or in nanoseconds.
    pub scale: f64,
    /// Name in tables.
    pub name: &'static str,
    /// Title, unit included.
    pub title: &'static str,
}

impl Measure {
    /// Every quantity in every unit that tables use.
    pub const ALL: [Self; 11] = {
        use Quantity::{
            ClatMean, ClatP99, EachWay, LatMean, LatP99, ReadLatMean, Throughput, WriteLatMean,
        };
        [
            Self::new(Throughput, 1e6, "mb_s", "Throughput, MB/s"),
            Self::new(Throughput, 1_048_576.0, "mib_s", "Throughput, MiB/s"),
            Self::new(Throughput, 1e9, "gb_s", "Throughput, GB/s"),
            Self::new(EachWay, 1e6, "mb_s_each_way", "Throughput each way, MB/s"),
            Self::new(LatMean, 1e3, "lat_us_mean", "Mean latency (lat), µs"),
            Self::new(LatP99, 1e3, "lat_us_p99", "p99 latency (lat), µs"),
            Self::new(ClatMean, 1e3, "clat_us_mean", "Mean latency (clat), µs"),
            Self::new(ClatP99, 1e3, "clat_us_p99", "p99 latency (clat), µs"),
            Self::new(
                ReadLatMean,
                1e3,
                "read_lat_us_mean",
                "Mean latency of reads (lat), µs",
            ),
            Self::new(
                WriteLatMean,
                1e3,
                "write_lat_us_mean",
                "Mean latency of writes (lat), µs",
            ),
            Self::new(LatMean, 1e6, "lat_ms_mean", "Mean latency (lat), ms"),
        ]
    };

    const fn new(quantity: Quantity, scale: f64, name: &'static str, title: &'static str) -> Self {
        Self {
            quantity,
            scale,
            name,
            title,
        }
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|measure| measure.name == text);
        known.ok_or_else(|| format!("`{text}` is no quantity of a table"))
    }
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
