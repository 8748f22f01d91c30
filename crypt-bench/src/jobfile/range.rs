//! Byte ranges of a copy of a job in its files: sizes, shares, offsets, and the checks that they are there. Pure.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use super::job::{Access, Job};
use super::value::Share;
use super::{Refusal, files, offsets};

/// Gives the size in bytes of a file or block device; `None` where there is none of this name.
///
/// Its errors say in words what is there instead, or why nobody can tell.
pub type SizeOf<'a> = &'a dyn Fn(&Path) -> Result<Option<u64>, String>;

/// What a copy of a job works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing.
    Null,
    /// An existing or new file or block device.
    File(PathBuf),
}

/// What a copy works on in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The file.
    pub place: Place,
    /// Where the file starts on the device that all files of a copy are.
    pub base_bytes: u64,
    /// First byte in the file.
    pub start_bytes: u64,
    /// Length of the range in bytes.
    pub len_bytes: u64,
}

impl Range {
    /// Where it ends on the device that all files of a copy are.
    #[must_use]
    pub fn end_bytes(&self) -> u64 {
        self.base_bytes
            .saturating_add(self.start_bytes)
            .saturating_add(self.len_bytes)
    }
}

/// The ranges of a copy, and how many bytes of them a pass transfers.
///
/// # Errors
/// A range that is not there or is too small, a file that would have to grow.
pub(super) fn ranges(
    job: &Job,
    number: u32,
    size_of: SizeOf<'_>,
) -> Result<(Vec<Range>, u64), Refusal> {
    let files = sized_files(job, number, size_of)?;
    let shares = shares(job, files.len());
    let mut ranges = Vec::with_capacity(files.len());
    let mut asked_bytes = 0_u64;
    for (file, share_bytes) in files.into_iter().zip(shares) {
        let (range, bytes) = range(job, number, file, share_bytes)?;
        asked_bytes = asked_bytes.saturating_add(bytes);
        ranges.push(range);
    }
    if job.settings.range("filesize").is_some()
        && let Some(share) = job.settings.share("size")
    {
        // Where files have a size of their own, this one only says how much is transferred.
        asked_bytes = match share.bytes_of(asked_bytes) {
            0 => asked_bytes,
            bytes => bytes,
        };
    }
    Ok((ranges, asked_bytes))
}

/// A file of a copy.
struct SizedFile {
    place: Place,
    existing_bytes: Option<u64>,
    /// What of it may be used, where that is known: all of it, or what `filesize` says.
    whole_bytes: Option<u64>,
}

fn sized_files(job: &Job, number: u32, size_of: SizeOf<'_>) -> Result<Vec<SizedFile>, Refusal> {
    let places: Vec<Place> = match job.access {
        Access::Null => vec![Place::Null],
        Access::File(_) => {
            let paths = files::paths(job, number)?;
            paths.into_iter().map(Place::File).collect()
        }
    };
    let files = places.into_iter().enumerate().map(|(index, place)| {
        let existing_bytes = match &place {
            Place::Null => None,
            Place::File(path) => existing_bytes(job, path, size_of)?,
        };
        let wanted_bytes = files::wanted_bytes(job, number, index, existing_bytes);
        Ok(SizedFile {
            place,
            existing_bytes,
            whole_bytes: wanted_bytes.or(existing_bytes),
        })
    });
    files.collect()
}

/// The size of a file that exists.
///
/// # Errors
/// What is there and is no file, or can't be looked at.
pub(super) fn existing_bytes(
    job: &Job,
    path: &Path,
    size_of: SizeOf<'_>,
) -> Result<Option<u64>, Refusal> {
    size_of(path).map_err(|why| {
        let message = format!("[{}]: {}: {why}", job.section, path.display());
        job.refuse("filename", message)
    })
}

/// What a `size` in bytes leaves to each of several files: the same, in whole blocks; what is left over goes to the
/// first ones. `None` where it says nothing of a file.
fn shares(job: &Job, count: usize) -> Vec<Option<u64>> {
    let asked = match job.settings.share("size") {
        Some(Share::Bytes(bytes)) if bytes > 0 && job.settings.range("filesize").is_none() => bytes,
        _ => return vec![None; count],
    };
    if count == 1 {
        return vec![Some(asked)];
    }
    let block = job.smallest_bytes().max(1);
    let (blocks, count) = (asked / block, count as u64);
    let share = |file| (blocks / count + u64::from(file < blocks % count)) * block;
    (0..count).map(|file| Some(share(file))).collect()
}

/// The range in a file, and how much of it is transferred in a pass.
fn range(
    job: &Job,
    number: u32,
    file: SizedFile,
    share_bytes: Option<u64>,
) -> Result<(Range, u64), Refusal> {
    let SizedFile {
        place,
        existing_bytes,
        whole_bytes,
    } = file;
    let start_bytes = start(job, number, whole_bytes)?;
    let asked_bytes = match share_bytes {
        Some(bytes) => bytes,
        None => len(job, start_bytes, whole_bytes, &place)?,
    };
    // Strided zones go on to the end of the file, as in fio; a size then says how much is transferred.
    let rest_bytes = whole_bytes.map_or(0, |whole| whole.saturating_sub(start_bytes));
    let len_bytes = match job.offsets.strides {
        Some(_) => asked_bytes.max(rest_bytes),
        None => asked_bytes,
    };
    check_end(job, &place, start_bytes, len_bytes, existing_bytes)?;
    check_zones(job, len_bytes)?;
    let largest = job.largest_bytes();
    if len_bytes < largest {
        let message = format!(
            "[{}]: the range of {len_bytes} bytes is smaller than a block of {largest} bytes",
            job.section
        );
        return Err(job.refuse("size", message));
    }
    // A pass leaves out what is shorter than a block.
    let pass_bytes = asked_bytes - asked_bytes % job.smallest_bytes().max(1);
    let range = Range {
        place,
        base_bytes: 0,
        start_bytes,
        len_bytes,
    };
    Ok((range, pass_bytes))
}

/// A percentage is taken of the whole file, and aligned to blocks.
fn bytes_of(job: &Job, option: &str, whole: Option<u64>) -> Result<Option<u64>, Refusal> {
    let Some(share) = job.settings.share(option) else {
        return Ok(None);
    };
    match (share, whole) {
        (Share::Bytes(bytes), _) => Ok(Some(bytes)),
        (Share::Percent(_), None) => Err(job.refuse(
            option,
            format!("{option}: a percentage of a file that does not exist; write bytes"),
        )),
        (Share::Percent(_), Some(whole)) => {
            let bytes = share.bytes_of(whole);
            Ok(Some(bytes - bytes % job.smallest_bytes().max(1)))
        }
    }
}

fn start(job: &Job, number: u32, whole: Option<u64>) -> Result<u64, Refusal> {
    let offset = bytes_of(job, "offset", whole)?.unwrap_or(0);
    let step = bytes_of(job, "offset_increment", whole)?.unwrap_or(0);
    let start = step
        .checked_mul(u64::from(number))
        .and_then(|step| step.checked_add(offset));
    let too_far = || job.refuse("offset_increment", "offsets beyond 64 bits");
    let start = start.ok_or_else(too_far)?;
    let unit = job.crypt.as_ref().map_or(512, |crypt| {
        (crypt.cipher.sector_size().bytes() as u64).min(job.smallest_bytes())
    });
    if !start.is_multiple_of(unit) {
        let message = format!("offset {start} is not a multiple of the sector size, {unit} bytes");
        return Err(job.refuse("offset", message));
    }
    Ok(start)
}

fn len(job: &Job, start: u64, whole: Option<u64>, place: &Place) -> Result<u64, Refusal> {
    let asked = match job.settings.range("filesize") {
        Some(_) => None,
        None => bytes_of(job, "size", whole)?.filter(|bytes| *bytes > 0),
    };
    if let Some(len) = asked {
        return Ok(match (job.settings.share("size"), whole) {
            // fio: a percentage never reaches beyond the end.
            (Some(Share::Percent(_)), Some(whole)) => len.min(whole.saturating_sub(start)),
            _ => len,
        });
    }
    let Some(whole) = whole else {
        let message = match place {
            Place::Null => format!(
                "[{}]: ioengine=null needs a size; add size=SIZE",
                job.section
            ),
            Place::File(path) => format!(
                "[{}]: {} does not exist, so its size is unknown; add size=SIZE",
                job.section,
                path.display()
            ),
        };
        return Err(Refusal::at(&job.position, message));
    };
    if let (0, Place::File(path)) = (whole, place) {
        let message = format!(
            "[{}]: {} has 0 bytes; name a file with data, or remove it and add size=SIZE",
            job.section,
            path.display()
        );
        return Err(job.refuse("filename", message));
    }
    match whole.checked_sub(start) {
        Some(len) if len > 0 => Ok(len),
        _ => {
            let message = format!("offset {start} is not inside of the {whole} bytes there are");
            Err(job.refuse("offset", message))
        }
    }
}

/// fio would let the file grow, or go on reading somewhere else.
fn check_end(
    job: &Job,
    place: &Place,
    start: u64,
    len: u64,
    whole: Option<u64>,
) -> Result<(), Refusal> {
    let end = start
        .checked_add(len)
        .filter(|end| i64::try_from(*end).is_ok());
    let Some(end) = end else {
        return Err(job.refuse("size", "the range ends beyond 63 bits"));
    };
    match (place, whole) {
        (Place::File(path), Some(whole)) if end > whole => {
            let message = format!(
                "[{}]: the range ends at byte {end}, but {} has {whole} bytes, and a file is never \
                 made longer; use a smaller size or offset",
                job.section,
                path.display()
            );
            Err(job.refuse("size", message))
        }
        _ => Ok(()),
    }
}

/// Zones must be there.
fn check_zones(job: &Job, len: u64) -> Result<(), Refusal> {
    let zone = job.offsets.strides.map_or(0, |strides| strides.zone_bytes);
    let zoned = offsets::zoned_bytes(&job.offsets.spread);
    for (option, needed) in [("zonerange", zone), ("random_distribution", zoned)] {
        let option = match job.settings.find(option) {
            None if needed > 0 => "zonesize",
            _ => option,
        };
        if needed > len {
            let message = format!(
                "{option}: the zones need {needed} bytes, but the range has {len}; use smaller zones \
                 or a larger size"
            );
            return Err(job.refuse(option, message));
        }
    }
    Ok(())
}
