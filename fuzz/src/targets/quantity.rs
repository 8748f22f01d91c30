//! Sizes, times, rates, counts, CPUs and devices, as flags have them and as job files do.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::str::FromStr;

use crypt_bench::definition::device::DeviceSpec;
use crypt_bench::definition::quantity::{Count, CpuList, Rate, Size, Time};
use crypt_bench::jobfile::catalog::OPTIONS;
use crypt_bench::jobfile::value::{Units, Value, parse};

use super::{bytes, check_message, words};

/// Reads a text as everything that it could be.
///
/// # Panics
/// Where a value prints as another one, or makes no sense.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let mut accepted = read::<Size>(text);
    accepted |= read::<Rate>(text);
    accepted |= read::<Count>(text);
    accepted |= read::<CpuList>(text);
    accepted |= read::<Time>(text);
    let _ = read::<DeviceSpec>(text);
    for info in OPTIONS {
        match parse(info.kind, Some(text), Units::default()) {
            Ok(value) => check_value(&value),
            Err(message) => check_message(&message, text.len()),
        }
    }
    accepted
}

/// Sizes and the like.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    bytes(&[
        "4k",
        "1m",
        "2GiB",
        "512",
        "500us",
        "200ms",
        "1.5s",
        "0.2GB/s",
        "200MiB/s",
        "0,2,4-7",
        "cpus",
        "8",
        "file:/dev/x",
        "model:nvme",
        "4k-64k",
        "50%",
        "zipf:1.2",
        "zoned:50/10:30/20:20/70",
        "0xdeadbeef",
        "1d",
        "99.9:99.99",
        "randrw:8",
        "4k/50:8k/50,1m/100",
        "16KiB,1m",
        "(1+2)*4k",
    ])
}

/// What they are made of.
#[must_use]
pub fn pieces() -> Vec<String> {
    words(&[
        "k", "K", "KiB", "kb", "m", "MiB", "g", "t", "p", "e", "B", "b", "us", "ms", "s", "h", "d",
        "%", "/s", ".", "-", ",", ":", "/", "0x", "+", "*", "(", ")", "^", " ", "é", "\0", "nan",
        "inf", "1e9", "z", "~", "zipf:", "normal:", "zoned:", "pareto:", "\"", "%o",
    ])
    .collect()
}

fn read<T: FromStr<Err = String> + Display>(text: &str) -> bool {
    match text.parse::<T>() {
        Ok(value) => {
            let shown = value.to_string();
            let again = shown.parse::<T>().map(|again| again.to_string());
            assert_eq!(again.as_ref(), Ok(&shown), "{text:?} prints as another one");
            true
        }
        Err(message) => {
            check_message(&message, text.len());
            false
        }
    }
}

fn check_value(value: &Value) {
    match value {
        Value::Range(from, to) | Value::TimeUs(from, to) => assert!(from <= to, "{value:?}"),
        Value::Ranges(ranges) => assert!(
            ranges.iter().flatten().all(|(from, to)| from <= to),
            "{value:?}"
        ),
        Value::Splits(splits) => {
            for split in splits.iter().flatten() {
                let sum: u64 = split.iter().map(|part| u64::from(part.1)).sum();
                assert_eq!(sum, 100, "{value:?}");
            }
        }
        Value::Percentiles(percentiles) => {
            assert!(
                percentiles
                    .iter()
                    .all(|percent| (0.0..=100.0).contains(percent)),
                "{value:?}"
            );
        }
        _ => {}
    }
}
