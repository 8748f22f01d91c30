//! Values with parts: per direction, ranges, weighted splits, patterns, CPUs, percentiles.

#![forbid(unsafe_code)]

use super::PerDirection;
use super::number::{Units, amount};
use crate::definition::quantity::CpuList;
use crate::result::Rw;

/// Most sizes of a split, and most percentiles.
const MOST_PARTS: usize = 64;

/// A pattern of `rw`: direction and order, with fio's `:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Direction and order.
    pub rw: Rw,
    /// `:N`: for random patterns requests per new offset, for others bytes added to each offset.
    pub modifier: Option<i64>,
}

/// Up to three values with commas between them: read, write, trim. The last one stands for those
/// after it; an empty one leaves what was there.
pub(super) fn directions<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<PerDirection<T>, String> {
    per_direction(text, |part| {
        parse(part).map_err(|error| hint_at_range(part, error))
    })
}

/// As [`directions`], for parts that may have a `:` or `-` themselves.
pub(super) fn per_direction<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<PerDirection<T>, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err(format!("`{text}`: at most three values: read,write,trim"));
    }
    if parts.iter().all(|part| part.is_empty()) {
        return Err(format!("`{text}`: a value is missing"));
    }
    let mut values = [None, None, None];
    for (value, part) in values.iter_mut().zip(&parts) {
        if !part.is_empty() {
            *value = Some(parse(part)?);
        }
    }
    if let Some(last) = values.get(parts.len() - 1).cloned() {
        for value in values.iter_mut().skip(parts.len()) {
            value.clone_from(&last);
        }
    }
    Ok(values)
}

/// fio takes `bs=4k-8k` for 4k reads and 8k writes.
fn hint_at_range(part: &str, error: String) -> String {
    match part.split_once(['-', ':']) {
        Some((from, to)) if !from.is_empty() && !part.contains('(') => format!(
            "`{part}`: fio takes this for {from} reads and {to} writes; write {from},{to} for that, \
             or bsrange={from}-{to} for block sizes in between"
        ),
        _ => error,
    }
}

pub(super) fn ranges(text: &str, units: Units) -> Result<PerDirection<(u64, u64)>, String> {
    // fio separates directions by `,`, and by `/` too.
    per_direction(&text.replace('/', ","), |part| {
        let range = part.split_once(['-', ':']);
        let range =
            range.ok_or_else(|| format!("`{part}` is not a range: write it like 4k-64k"))?;
        bounds(range, units)
    })
}

/// A size stands for itself.
pub(super) fn range_or_size(text: &str, units: Units) -> Result<(u64, u64), String> {
    bounds(text.split_once(['-', ':']).unwrap_or((text, text)), units)
}

fn bounds((from, to): (&str, &str), units: Units) -> Result<(u64, u64), String> {
    let (from, to) = (amount(from, units)?, amount(to, units)?);
    Ok((from.min(to), from.max(to)))
}

pub(super) fn splits(text: &str, units: Units) -> Result<PerDirection<Vec<(u64, u8)>>, String> {
    per_direction(text, |part| split(part, units))
}

/// `size/weight:size/weight`; sizes without a weight share what is left.
fn split(text: &str, units: Units) -> Result<Vec<(u64, u8)>, String> {
    let mut sizes: Vec<(u64, Option<u8>)> = Vec::new();
    for item in text.split(':') {
        let (size, weight) = item.split_once('/').unwrap_or((item, ""));
        let weight = match weight.trim() {
            "" => None,
            weight => Some(
                weight
                    .parse()
                    .ok()
                    .filter(|weight| *weight <= 100)
                    .ok_or_else(|| format!("`{item}`: write a weight from 0 to 100"))?,
            ),
        };
        sizes.push((amount(size, units)?, weight));
        if sizes.len() > MOST_PARTS {
            return Err(format!("`{text}`: more than {MOST_PARTS} sizes"));
        }
    }
    let given: u32 = sizes.iter().filter_map(|size| size.1).map(u32::from).sum();
    let open = sizes.iter().filter(|size| size.1.is_none()).count() as u32;
    if given > 100 || (open == 0 && given != 100) {
        return Err(format!(
            "`{text}`: the weights add up to {given}, not to 100"
        ));
    }
    let (each, mut extra) = match open {
        0 => (0, 0),
        _ => ((100 - given) / open, (100 - given) % open),
    };
    let weights = sizes.into_iter().map(|(size, weight)| {
        let one_more = u32::from(weight.is_none() && extra > 0);
        extra -= one_more;
        (size, weight.unwrap_or((each + one_more) as u8))
    });
    Ok(weights.filter(|(_, weight)| *weight > 0).collect())
}

pub(super) fn pattern(text: &str, units: Units) -> Result<Pattern, String> {
    let (name, modifier) = match text.split_once(':') {
        Some((name, modifier)) => (name, Some(modifier)),
        None => (text, None),
    };
    let rw = match name {
        "rw" => Rw::ReadWrite,
        "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
            return Err(format!(
                "`{name}`: trims are not supported; use reads and writes"
            ));
        }
        _ => Rw::ALL
            .into_iter()
            .find(|rw| rw.name() == name)
            .ok_or_else(|| {
                format!(
                    "`{name}` is not a pattern: use read, write, randread, randwrite, rw or randrw"
                )
            })?,
    };
    let modifier = modifier.map(|text| signed(text, units)).transpose()?;
    if rw.is_random() && modifier.is_some_and(|number| number < 1) {
        return Err(format!("`{text}`: requests per offset are at least 1"));
    }
    Ok(Pattern { rw, modifier })
}

fn signed(text: &str, units: Units) -> Result<i64, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = amount(digits, units)?;
    let value = i64::try_from(value).map_err(|_| format!("`{text}` is out of range"))?;
    Ok(if negative { -value } else { value })
}

pub(super) fn cpus(text: &str) -> Result<Vec<u32>, String> {
    let mut cpus = CpuList::parse(text, &[',', ':'])?;
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

pub(super) fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > MOST_PARTS {
        return Err(format!("more than {MOST_PARTS} percentiles"));
    }
    let mut list = Vec::with_capacity(parts.len());
    for part in parts {
        let value = decimal(part).filter(|value| *value > 0.0 && *value <= 100.0);
        list.push(value.ok_or_else(|| {
            format!("`{part}` is not a percentile: write numbers over 0, up to 100, like 99:99.9")
        })?);
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}

/// A decimal number as people write it, not `inf`, `nan` or `1e9`.
pub(in crate::jobfile) fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    (plain && text.len() < 24).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: Units = Units { decimal: false };

    fn sizes(text: &str) -> Result<PerDirection<u64>, String> {
        directions(text, |part| amount(part, UNITS))
    }

    #[test]
    fn the_last_direction_stands_for_the_rest() {
        assert_eq!(sizes("1"), Ok([Some(1), Some(1), Some(1)]));
        assert_eq!(sizes("1,2"), Ok([Some(1), Some(2), Some(2)]));
        assert_eq!(sizes(",2"), Ok([None, Some(2), Some(2)]));
        assert_eq!(sizes("1,"), Ok([Some(1), None, None]));
        assert_eq!(sizes("1,,3"), Ok([Some(1), None, Some(3)]));
        for text in ["1,2,3,4", ",", "1,x"] {
            assert!(sizes(text).is_err(), "{text}");
        }
        let message = sizes("4k-8k").unwrap_err();
        assert!(message.contains("bsrange=4k-8k"), "{message}");
    }

    #[test]
    fn ranges_are_ordered() {
        let expected = Ok([Some((1024, 4096)), Some((8192, 8192)), Some((8192, 8192))]);
        assert_eq!(ranges("4k-1k,8k-8k", UNITS), expected);
        assert_eq!(ranges("1k:4k/8k-8k", UNITS), expected);
        assert!(ranges("4k", UNITS).is_err());
        assert_eq!(range_or_size("8k-4k", UNITS), Ok((4096, 8192)));
        assert_eq!(range_or_size("4k", UNITS), Ok((4096, 4096)));
    }

    #[test]
    fn weights_add_up_to_a_hundred() {
        let read = |text| splits(text, UNITS).map(|splits| splits[0].clone().unwrap());
        assert_eq!(read("4k/60:8k/40"), Ok(vec![(4096, 60), (8192, 40)]));
        assert_eq!(
            read("4k/50:1k/:2k/"),
            Ok(vec![(4096, 50), (1024, 25), (2048, 25)])
        );
        assert_eq!(
            read("1k:2k:3k"),
            Ok(vec![(1024, 34), (2048, 33), (3072, 33)])
        );
        for text in ["4k/60:8k/60", "4k/60", "4k/-1", "4k/x", "/50:4k/50"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_have_modifiers() {
        let parse = |text| pattern(text, UNITS).map(|pattern| (pattern.rw, pattern.modifier));
        assert_eq!(parse("rw"), Ok((Rw::ReadWrite, None)));
        assert_eq!(parse("randread:8"), Ok((Rw::RandRead, Some(8))));
        assert_eq!(parse("read:-4k"), Ok((Rw::Read, Some(-4096))));
        for text in ["trim", "randread:0", "sideways", "randwrite,x", "read:x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cpus_and_percentiles_are_sorted_sets() {
        assert_eq!(cpus("3,0-1,1"), Ok(vec![0, 1, 3]));
        assert!(cpus("2-1").is_err() && cpus("x").is_err());
        assert_eq!(percentiles("99.9:50"), Ok(vec![50.0, 99.9]));
        for text in ["0", "101", "x", "inf", "", "5e1"] {
            assert!(percentiles(text).is_err(), "{text}");
        }
    }
}
