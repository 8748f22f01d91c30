//! Values of `random_distribution`: a law with its numbers, or zones.

#![forbid(unsafe_code)]

use super::list::{decimal, per_direction};
use super::number::{Units, amount};
use crate::generate::{Spread, Zone, ZoneSize};

/// Most zones of a direction, as in fio.
const MOST_ZONES: usize = 256;
/// Largest theta: the first rank has all but 2^-100.
const MOST_THETA: f64 = 100.0;

/// `random`, `zipf[:theta[:center]]`, `pareto[:h[:center]]`, `normal[:percent[:center]]`,
/// `zoned:share/percent:...`, `zoned_abs:share/size:...`.
pub(super) fn spread(text: &str, units: Units) -> Result<Spread, String> {
    let (name, rest) = match text.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    match (name, rest) {
        ("random", None) => Ok(Spread::Even),
        ("zipf", rest) => {
            let (theta, center) = law(name, rest, 1.1)?;
            if theta == 1.0 || theta > MOST_THETA {
                let message = "theta goes from 0 to 100, without 1 itself; write 1.001 for that";
                return Err(format!("`{text}`: {message}"));
            }
            Ok(Spread::Zipf { theta, center })
        }
        ("pareto", rest) => {
            let (h, center) = law(name, rest, 0.2)?;
            if h <= 0.0 || h >= 1.0 {
                return Err(format!("`{text}`: write a number between 0 and 1"));
            }
            Ok(Spread::Pareto { h, center })
        }
        ("normal", rest) => {
            let (width_percent, center) = law(name, rest, 0.0)?;
            if width_percent >= 100.0 {
                return Err(format!("`{text}`: write a percentage from 0, below 100"));
            }
            Ok(Spread::Normal {
                width_percent,
                center,
            })
        }
        ("zoned", Some(rest)) => zones(rest, |size| percent(size).map(ZoneSize::Percent)),
        ("zoned_abs", Some(rest)) => zones(rest, |size| amount(size, units).map(ZoneSize::Bytes)),
        ("zoned" | "zoned_abs", None) => Err(format!(
            "`{text}`: write zones as share/size, like {name}:60/10:40/90"
        )),
        ("sequence", _) => Err(format!(
            "`{text}`: lists of blocks are not supported; use rw=read with an offset modifier or a \
             trace of your own"
        )),
        _ => Err(format!(
            "`{text}` is not a distribution: use random, zipf:THETA, pareto:H, normal:PERCENT, \
             zoned:SHARE/PERCENT:... or zoned_abs:SHARE/SIZE:..."
        )),
    }
}

/// The number of a law and its center.
fn law(name: &str, text: Option<&str>, default: f64) -> Result<(f64, Option<f64>), String> {
    let Some(text) = text else {
        return Ok((default, None));
    };
    if text.contains(',') {
        return Err(format!(
            "`{text}`: {name} holds for all directions; only zones can differ between them"
        ));
    }
    let (number, center) = match text.split_once(':') {
        Some((number, center)) => (number, Some(center)),
        None => (text, None),
    };
    let number = decimal(number)
        .ok_or_else(|| format!("`{number}` is not a number; write {name}:NUMBER"))?;
    let center = center.map(|text| {
        let center = decimal(text).filter(|center| *center <= 1.0);
        center.ok_or_else(|| format!("`{text}`: a center goes from 0 to 1"))
    });
    Ok((number, center.transpose()?))
}

fn zones(text: &str, size: impl Fn(&str) -> Result<ZoneSize, String>) -> Result<Spread, String> {
    let [read, write, _] = per_direction(text, |part| zones_of_one(part, &size))?;
    Ok(Spread::Zones([read, write]))
}

/// A size may be left out where it is a percentage: such zones share what is left.
fn zones_of_one(
    text: &str,
    size: &impl Fn(&str) -> Result<ZoneSize, String>,
) -> Result<Box<[Zone]>, String> {
    let mut zones: Vec<(u8, Option<ZoneSize>)> = Vec::new();
    for item in text.split(':') {
        let Some((share, bytes)) = item.split_once('/') else {
            return Err(format!("`{item}`: write a zone as share/size"));
        };
        let open = bytes.trim().is_empty() && size("1") == Ok(ZoneSize::Percent(1));
        let bytes = (!open).then(|| size(bytes)).transpose()?;
        zones.push((percent(share)?, bytes));
        if zones.len() > MOST_ZONES {
            return Err(format!("`{text}`: more than {MOST_ZONES} zones"));
        }
    }
    let shares: u32 = zones.iter().map(|zone| u32::from(zone.0)).sum();
    if shares != 100 {
        return Err(format!(
            "`{text}`: the shares of requests add up to {shares}, not to 100"
        ));
    }
    let given = zones.iter().filter_map(|zone| match zone.1 {
        Some(ZoneSize::Percent(percent)) => Some(u32::from(percent)),
        _ => None,
    });
    let given: u32 = given.sum();
    if given > 100 {
        return Err(format!(
            "`{text}`: the zones cover {given} percent; at most 100 are there"
        ));
    }
    let open = zones.iter().filter(|zone| zone.1.is_none()).count() as u32;
    let each = ((100 - given) / open.max(1)) as u8;
    let zones = zones.into_iter().map(|(share_percent, size)| Zone {
        share_percent,
        size: size.unwrap_or(ZoneSize::Percent(each)),
    });
    Ok(zones.collect())
}

fn percent(text: &str) -> Result<u8, String> {
    let number = text.trim().trim_end_matches('%').parse().ok();
    number
        .filter(|number| *number <= 100)
        .ok_or_else(|| format!("`{text}`: write a percentage from 0 to 100"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Spread, String> {
        spread(text, Units::default())
    }

    #[test]
    fn laws_have_a_number_and_a_center() {
        assert_eq!(read("random"), Ok(Spread::Even));
        let zipf = |theta, center| Ok(Spread::Zipf { theta, center });
        assert_eq!(read("zipf"), zipf(1.1, None));
        assert_eq!(read("zipf:1.2:0.25"), zipf(1.2, Some(0.25)));
        let h = 0.3;
        assert_eq!(read("pareto:0.3"), Ok(Spread::Pareto { h, center: None }));
        let normal = Spread::Normal {
            width_percent: 20.0,
            center: Some(1.0),
        };
        assert_eq!(read("normal:20:1"), Ok(normal));
        for (text, reason) in [
            ("zipf:1", "write 1.001"),
            ("zipf:1.0", "write 1.001"),
            ("zipf:x", "not a number"),
            ("zipf:-1", "not a number"),
            ("zipf:1.2,1.5", "only zones can differ"),
            ("zipf:1.2:2", "from 0 to 1"),
            ("pareto:1", "between 0 and 1"),
            ("normal:100", "below 100"),
            ("uniform", "not a distribution"),
            ("random:1", "not a distribution"),
            ("sequence:2,0,1", "lists of blocks"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }

    #[test]
    fn zones_are_shares_with_sizes() {
        let zone = |share_percent, size| Zone {
            share_percent,
            size,
        };
        let percent = |share, size| zone(share, ZoneSize::Percent(size));
        let some: Box<[Zone]> = [percent(60, 10), percent(40, 90)].into();
        let both = Spread::Zones([Some(some.clone()), Some(some.clone())]);
        assert_eq!(read("zoned:60/10:40/90"), Ok(both.clone()));
        assert_eq!(read("zoned:60/10:40/"), Ok(both));
        let bytes: Box<[Zone]> = [zone(100, ZoneSize::Bytes(1 << 20))].into();
        assert_eq!(
            read("zoned_abs:100/1m,"),
            Ok(Spread::Zones([Some(bytes), None]))
        );
        for (text, reason) in [
            ("zoned", "write zones as"),
            ("zoned:60/10", "add up to 60"),
            ("zoned:60/60:40/60", "cover 120 percent"),
            ("zoned:60:40", "write a zone as"),
            ("zoned:200/1", "percentage from 0 to 100"),
            ("zoned_abs:100/", "not a number"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }
}
