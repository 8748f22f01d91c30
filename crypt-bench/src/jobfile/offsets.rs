//! How the offsets of a job follow from each other: patterns with their modifiers, distributions,
//! alignment, zones.

#![forbid(unsafe_code)]

use super::settings::Settings;
use super::value::{Pattern, Value};
use super::{Position, Refusal};
use crate::generate::{Lengths, Run, Spread, Strides, ZoneSize};

/// How offsets follow from each other. All sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Offsets {
    /// Random offsets of reads and of writes are multiples of this.
    pub align_bytes: [u64; 2],
    /// Share of random offsets, of reads and of writes.
    pub random_percent: [u8; 2],
    /// Random offsets may repeat within a pass.
    pub repeats: bool,
    /// How random offsets are distributed.
    pub spread: Spread,
    /// Requests per random offset.
    pub run_ios: u64,
    /// Where those are.
    pub run: Run,
    /// Sequential patterns: bytes added to each offset.
    pub step_bytes: i64,
    /// Requests stay in one zone at a time.
    pub strides: Option<Strides>,
}

impl Offsets {
    /// Of a job whose sectors have `unit` bytes; `lengths` are those of reads and of writes.
    ///
    /// # Errors
    /// What contradicts itself or is not a multiple of sectors, at its line.
    pub(super) fn new(
        settings: &Settings,
        pattern: Pattern,
        lengths: [&Lengths; 2],
        unit: u64,
    ) -> Result<Self, Refusal> {
        let random = pattern.rw.is_random();
        let modifier = pattern.modifier.unwrap_or(0);
        let align_bytes = align(settings, random, lengths, unit)?;
        let aligned_apart = (0..2).any(|one| align_bytes[one] != lengths[one].smallest());
        let spread = spread(settings)?;
        let lfsr = settings.text("random_generator") == Some("lfsr");
        Ok(Self {
            align_bytes,
            random_percent: random_percent(settings, random),
            // fio's register runs through all blocks, map or not.
            repeats: settings.flag("norandommap") && !lfsr || aligned_apart,
            spread,
            run_ios: if random { modifier.max(1) as u64 } else { 1 },
            run: match settings.text("rw_sequencer") {
                Some("identical") => Run::Identical,
                _ => Run::Sequential,
            },
            step_bytes: if random {
                0
            } else {
                step(settings, modifier, unit)?
            },
            strides: strides(settings, lengths, pattern, unit)?,
        })
    }
}

/// Without percentage_random all offsets are as `rw` says. fio knows it for random patterns only.
fn random_percent(settings: &Settings, random: bool) -> [u8; 2] {
    if !random {
        return [0, 0];
    }
    let [read, write, _] = settings.numbers("percentage_random");
    [read, write].map(|percent| percent.unwrap_or(100) as u8)
}

/// fio knows `blockalign` for random patterns only, and leaves its random map out with it.
fn align(
    settings: &Settings,
    random: bool,
    lengths: [&Lengths; 2],
    unit: u64,
) -> Result<[u64; 2], Refusal> {
    let mut align = lengths.map(Lengths::smallest);
    let Some(setting) = settings.find("ba").filter(|_| random) else {
        return Ok(align);
    };
    let asked = settings.numbers("ba");
    for (align, asked) in align.iter_mut().zip(asked) {
        let Some(bytes) = asked.filter(|bytes| *bytes > 0) else {
            continue;
        };
        if !bytes.is_multiple_of(unit) {
            let message = format!("ba: write multiples of the sector size, {unit} bytes");
            return Err(Refusal::at(&setting.position, message));
        }
        *align = bytes;
    }
    Ok(align)
}

fn spread(settings: &Settings) -> Result<Spread, Refusal> {
    let Some(setting) = settings.find("random_distribution") else {
        return Ok(Spread::Even);
    };
    let Value::Spread(spread) = &setting.value else {
        return Ok(Spread::Even);
    };
    let lfsr = settings.text("random_generator") == Some("lfsr");
    if lfsr && matches!(spread, Spread::Zones(_)) {
        let message = "random_distribution: the generator lfsr runs through the whole range and can't \
                       keep to zones; use random_generator=tausworthe64";
        return Err(Refusal::at(&setting.position, message));
    }
    Ok(spread.clone())
}

fn step(settings: &Settings, modifier: i64, unit: u64) -> Result<i64, Refusal> {
    if modifier.unsigned_abs().is_multiple_of(unit) {
        return Ok(modifier);
    }
    let message = format!("rw: write a multiple of the sector size, {unit} bytes, after the `:`");
    let position = settings.find("rw").map(|setting| &setting.position);
    Err(refusal(position, message))
}

fn refusal(position: Option<&Position>, message: String) -> Refusal {
    match position {
        Some(position) => Refusal::at(position, message),
        None => Refusal::whole(message),
    }
}

fn strides(
    settings: &Settings,
    lengths: [&Lengths; 2],
    pattern: Pattern,
    unit: u64,
) -> Result<Option<Strides>, Refusal> {
    let find = |name: &str| settings.find(name);
    if settings.text("zonemode") != Some("strided") {
        let lonely = ["zonesize", "zonerange", "zoneskip"].map(find);
        return match lonely.into_iter().flatten().next() {
            Some(setting) if settings.text("zonemode").is_none() => Err(Refusal::at(
                &setting.position,
                "zones need zonemode=strided; add it",
            )),
            _ => Ok(None),
        };
    }
    let refuse = |name: &str, message: String| {
        let setting = find(name).or(find("zonemode"));
        Err(refusal(setting.map(|setting| &setting.position), message))
    };
    let number = |name: &str| settings.number(name).filter(|bytes| *bytes > 0);
    let Some(transfer_bytes) = number("zonesize") else {
        return refuse(
            "zonesize",
            "zonemode=strided needs a zonesize; add zonesize=SIZE".to_owned(),
        );
    };
    let zone_bytes = number("zonerange").unwrap_or(transfer_bytes);
    let skip_bytes = number("zoneskip").unwrap_or(0);
    for (name, bytes) in [("zonerange", zone_bytes), ("zoneskip", skip_bytes)] {
        if !bytes.is_multiple_of(unit) {
            let message = format!("{name}: write a multiple of the sector size, {unit} bytes");
            return refuse(name, message);
        }
    }
    let directions = [pattern.rw.reads(), pattern.rw.writes()];
    let used = lengths
        .into_iter()
        .zip(directions)
        .filter(|(_, used)| *used);
    let largest = used
        .map(|(lengths, _)| lengths.largest())
        .max()
        .unwrap_or(0);
    if zone_bytes < largest {
        let message =
            format!("a zone of {zone_bytes} bytes is smaller than a block of {largest} bytes");
        return refuse("zonerange", message);
    }
    Ok(Some(Strides {
        transfer_bytes,
        zone_bytes,
        skip_bytes,
    }))
}

/// Bytes that the zones of a distribution need, where they are given in bytes.
pub(super) fn zoned_bytes(spread: &Spread) -> u64 {
    let Spread::Zones(zones) = spread else {
        return 0;
    };
    let of_one = zones.iter().flatten().map(|zones| {
        zones.iter().fold(0_u64, |sum, zone| match zone.size {
            ZoneSize::Bytes(bytes) => sum.saturating_add(bytes),
            ZoneSize::Percent(_) => sum,
        })
    });
    of_one.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    fn offsets(options: &str) -> Result<Offsets, Refusal> {
        let fake = Fake::default().file("a.fio", &format!("[a]\n{options}\n"));
        let mut jobs = super::super::load(&["a.fio".to_owned()], &[], &fake)?;
        Ok(jobs.remove(0).offsets)
    }

    #[test]
    fn alignment_is_that_of_blocks_unless_it_is_given() {
        let read = |options| {
            let offsets = offsets(options).unwrap();
            (offsets.align_bytes, offsets.repeats)
        };
        assert_eq!(read("rw=randrw\nbs=4k,64k"), ([4096, 65536], false));
        assert_eq!(read("rw=randrw\nbs=4k\nba=2k,8k"), ([2048, 8192], true));
        assert_eq!(read("rw=read\nbs=4k\nblockalign=8k"), ([4096; 2], false));
        assert_eq!(read("rw=randread\nblockalign=4k"), ([4096; 2], false));
        assert_eq!(read("rw=randread\nnorandommap"), ([4096; 2], true));
        let lfsr = "rw=randread\nnorandommap\nrandom_generator=lfsr";
        assert_eq!(read(lfsr), ([4096; 2], false));
    }

    #[test]
    fn modifiers_are_steps_or_runs() {
        let read = |options| {
            let offsets = offsets(options).unwrap();
            (offsets.step_bytes, offsets.run_ios, offsets.run)
        };
        assert_eq!(read("rw=read:-8k"), (-8192, 1, Run::Sequential));
        assert_eq!(read("rw=write:4k"), (4096, 1, Run::Sequential));
        assert_eq!(read("rw=randread:8"), (0, 8, Run::Sequential));
        let identical = "rw=randread:8\nrw_sequencer=identical";
        assert_eq!(read(identical), (0, 8, Run::Identical));
    }

    #[test]
    fn zones_have_the_size_that_is_transferred_unless_it_is_given() {
        let strides = |options: &str| {
            let options = format!("zonemode=strided\n{options}");
            let strides = offsets(&options).unwrap().strides.unwrap();
            (
                strides.transfer_bytes,
                strides.zone_bytes,
                strides.skip_bytes,
            )
        };
        assert_eq!(strides("zonesize=8k"), (8192, 8192, 0));
        assert_eq!(
            strides("zonesize=8k\nzonerange=64k\nzoneskip=4k"),
            (8192, 65536, 4096)
        );
        assert_eq!(offsets("zonemode=none\nzonesize=8k").unwrap().strides, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused_at_its_line() {
        for (options, expected) in [
            ("rw=read:100", "a.fio:2: rw: write a multiple"),
            ("rw=randread\nba=100", "a.fio:3: ba: write multiples"),
            ("zonesize=4k", "a.fio:2: zones need zonemode=strided"),
            (
                "zonemode=strided",
                "a.fio:2: zonemode=strided needs a zonesize",
            ),
            (
                "zonemode=strided\nzonesize=64k\nzonerange=1000",
                "a.fio:4: zonerange: write a multiple",
            ),
            (
                "zonemode=strided\nzonesize=4k\nbs=8k",
                "a.fio:2: a zone of 4096 bytes is smaller than a block",
            ),
            (
                "random_generator=lfsr\nrandom_distribution=zoned:100/50",
                "a.fio:3: random_distribution: the generator lfsr",
            ),
        ] {
            let refusal = offsets(options).unwrap_err().to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
    }

    #[test]
    fn zones_in_bytes_need_room() {
        let spread = offsets("random_distribution=zoned_abs:50/1m:50/2m,100/5m")
            .unwrap()
            .spread;
        assert_eq!(zoned_bytes(&spread), 5 << 20);
        assert_eq!(zoned_bytes(&Spread::Even), 0);
    }
}
