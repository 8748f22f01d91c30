//! A regular file or a block device as a device, or several one behind the other: opens them, learns sizes and
//! block sizes, and makes queues over io_uring, or over plain system calls where that is asked for or io_uring is
//! refused by the system.
//!
//! Nothing falls back in silence: O_DIRECT is had or an error, and a queue that runs without
//! something it was asked for says so in its facts. A file is never created, truncated or
//! extended by [`FileDevice::open`]. A block device is opened for writing with O_EXCL, or under a
//! [`Claim`](crate::device::claim::Claim), so one that
//! is mounted or has a holder is refused by the kernel; the checks before that are in
//! [`guard`](crate::device::guard).

#![forbid(unsafe_code)]

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom, Statx, StatxFlags};

use crate::device::files::Files;
use crate::device::limits::Limits;
use crate::device::ring_queue::RingQueue;
use crate::device::sync::SyncQueue;
use crate::device::sysfs::{self, DeviceNumber};
use crate::device::{Device, DeviceInfo, DeviceQueue, QueueConfig, QueueFacts};
use crate::error::{Error, ErrorKind, Result};

pub use crate::device::files::{START_UNIT_BYTES, starts_bytes};

/// How often, and how far apart, a busy file is tried again: 100 ms in all.
const BUSY_ATTEMPTS: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// How a file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileOptions {
    /// Bypass the page cache (O_DIRECT).
    pub direct: bool,
    /// Open for reading only; writes complete with `EROFS`.
    pub read_only: bool,
    /// What carries the I/O.
    pub engine: FileEngine,
    /// Block devices are not asked for alone (O_EXCL), because the caller holds a [`Claim`](crate::device::claim::Claim) on them.
    pub claimed: bool,
}

/// What carries the I/O of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileEngine {
    /// io_uring; where the system refuses it, plain system calls and a note in the queue's facts.
    #[default]
    Auto,
    /// io_uring or an error.
    IoUring,
    /// Plain system calls on the queue's thread.
    Sync,
}

/// A regular file or block device, or several.
#[derive(Debug)]
pub struct FileDevice {
    files: Arc<Files>,
    options: FileOptions,
    geometry: Geometry,
}

/// What a queue on a file works with.
pub(super) struct Target {
    /// The open files.
    pub(super) files: Arc<Files>,
    /// What its operations have to respect.
    pub(super) limits: Limits,
    /// Logical block of a device whose hardware can be polled.
    pub(super) poll_block_bytes: Option<u32>,
    /// What it was opened as.
    pub(super) facts: QueueFacts,
}

/// What was learnt of the file when it was opened. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Geometry {
    size_bytes: u64,
    logical_block_bytes: u32,
    memory_align_bytes: u32,
    can_poll: bool,
    can_discard: bool,
    note: Option<&'static str>,
}

impl FileDevice {
    /// Opens an existing file or block device.
    ///
    /// # Errors
    /// Where the system refuses it, it is neither a regular file nor a block device, it is empty,
    /// or direct I/O is asked for and its file system has none.
    pub fn open(path: impl AsRef<Path>, options: FileOptions) -> Result<Self> {
        Self::open_all(&[path], options)
    }

    /// Opens existing files or block devices as one device, in this order. Where each starts is what
    /// [`starts_bytes`] says; between two there may be a gap, where reads and writes fail with `EINVAL`. A
    /// transfer that reaches beyond the end of a file is short. All are carried by one ring.
    ///
    /// # Errors
    /// As [`FileDevice::open`]; without any path; where all together are larger than 63 bits can tell.
    pub fn open_all<P: AsRef<Path>>(paths: &[P], options: FileOptions) -> Result<Self> {
        let (mut files, mut whole) = (Vec::with_capacity(paths.len()), None::<Geometry>);
        for path in paths {
            let (file, is_block, geometry) = open_one(path.as_ref(), options)?;
            files.push((Arc::new(file), is_block, geometry.size_bytes));
            whole = Some(match whole {
                None => geometry,
                Some(whole) => whole.with(&geometry),
            });
        }
        let no_path = || Error::new(ErrorKind::InvalidInput, "no file to open; name one");
        let mut geometry = whole.ok_or_else(no_path)?;
        // A single file keeps its size, in which a partial block at its end counts.
        if files.len() > 1 {
            let all = Files::new(files, u64::from(geometry.logical_block_bytes));
            geometry.size_bytes = checked_size(&all)?;
            return Ok(Self {
                files: Arc::new(all),
                options,
                geometry,
            });
        }
        Ok(Self {
            files: Arc::new(Files::new(files, 1)),
            options,
            geometry,
        })
    }

    fn target(&self, engine: &'static str) -> Target {
        let info = self.info();
        let limits = Limits::new(&info);
        Target {
            files: Arc::clone(&self.files),
            limits: if self.options.direct {
                limits.with_memory_alignment(self.geometry.memory_align_bytes)
            } else {
                limits
            },
            poll_block_bytes: info.can_poll.then_some(info.logical_block_bytes),
            facts: QueueFacts {
                engine,
                direct: self.options.direct,
                notes: self.geometry.note.map(str::to_owned).into_iter().collect(),
                ..QueueFacts::default()
            },
        }
    }

    fn open_sync(&self, config: &QueueConfig<'_>, why: Option<String>) -> Result<SyncQueue> {
        let mut target = self.target("sync");
        target.facts.notes.extend(why);
        if config.polled {
            let note = "polling was asked for, which the sync engine can't do";
            target.facts.notes.push(note.to_owned());
        }
        SyncQueue::new(target, config.depth)
    }
}

impl Device for FileDevice {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            kind: "file".to_owned(),
            size_bytes: self.geometry.size_bytes,
            logical_block_bytes: self.geometry.logical_block_bytes,
            can_poll: self.geometry.can_poll
                && self.options.direct
                && self.options.engine != FileEngine::Sync,
            can_discard: self.geometry.can_discard,
            read_only: self.options.read_only,
        }
    }

    fn open_queue(&self, config: &QueueConfig<'_>) -> Result<Box<dyn DeviceQueue>> {
        let why = match self.options.engine {
            FileEngine::Sync => None,
            engine => match RingQueue::new(self.target("io_uring"), config) {
                Ok(queue) => return Ok(Box::new(queue)),
                Err(error) if engine == FileEngine::Auto && is_refusal(&error) => {
                    Some(format!("io_uring is refused by the system ({error})"))
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Box::new(self.open_sync(config, why)?))
    }
}

/// Whether an error means that this system, or this process, may not use io_uring at all:
/// `kernel.io_uring_disabled`, a seccomp filter, a kernel built without it or too old for it, or no
/// lockable memory at all.
fn is_refusal(error: &Error) -> bool {
    use rustix::io::Errno as Raw;
    let refusals = [Raw::PERM, Raw::NOSYS, Raw::OPNOTSUPP, Raw::NOMEM];
    refusals
        .iter()
        .any(|&raw| error.errno().raw() == raw.raw_os_error())
}

pub(super) fn is_block_device(path: &Path) -> Result<bool> {
    let metadata = std::fs::metadata(path)
        .map_err(|source| Error::io(format!("look at {}", path.display()), source))?;
    let kind = metadata.file_type();
    if kind.is_file() || kind.is_block_device() {
        return Ok(kind.is_block_device());
    }
    Err(Error::new(
        ErrorKind::InvalidInput,
        format!(
            "{} is neither a regular file nor a block device; give one of those",
            path.display()
        ),
    ))
}

fn open_flags(options: FileOptions, is_block: bool) -> OFlags {
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY;
    flags |= if options.read_only {
        OFlags::RDONLY
    } else {
        OFlags::RDWR
    };
    flags.set(OFlags::DIRECT, options.direct);
    let alone = is_block && !options.read_only && !options.claimed;
    flags.set(OFlags::EXCL, alone);
    flags
}

/// Opens a file, and says whether it is a block device and what was learnt of it.
fn open_one(path: &Path, options: FileOptions) -> Result<(File, bool, Geometry)> {
    let failed = |source| Error::io(format!("open {}", path.display()), source);
    // The type first: opening a pipe would block, and only block devices take O_EXCL.
    let is_block = is_block_device(path)?;
    let flags = open_flags(options, is_block);
    let file = match open_patiently(path, flags) {
        Err(rustix::io::Errno::BUSY) => return Err(busy(path)),
        Err(rustix::io::Errno::INVAL) if options.direct => return Err(no_direct(path)),
        result => File::from(result.map_err(failed)?),
    };
    let geometry = Geometry::of(&file, path, options, is_block)?;
    Ok((file, is_block, geometry))
}

fn checked_size(files: &Files) -> Result<u64> {
    let size_bytes = files.size_bytes();
    if i64::try_from(size_bytes).is_ok() {
        return Ok(size_bytes);
    }
    Err(Error::new(
        ErrorKind::LimitExceeded,
        "the files are larger than 63 bits can tell when they stand one behind the other; open fewer",
    ))
}

/// Opens, and asks again for a moment while the file is busy: a ring that was just dropped may
/// still hold it, since the kernel finishes the last requests of a ring in the background.
pub(super) fn open_patiently(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    for _ in 0..BUSY_ATTEMPTS {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(rustix::io::Errno::BUSY) => thread::sleep(BUSY_PAUSE),
            result => return result,
        }
    }
    rustix::fs::open(path, flags, Mode::empty())
}

pub(super) fn busy(path: &Path) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!(
            "{} is in use (mounted, or held by another device or program); unmount or close it, \
             or open it read-only",
            path.display()
        ),
    )
}

fn no_direct(path: &Path) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "the file system of {} has no direct I/O; open it buffered, or move it",
            path.display()
        ),
    )
}

impl Geometry {
    /// Of two files together, but for their size: what suits both.
    fn with(self, other: &Self) -> Self {
        Self {
            size_bytes: self.size_bytes,
            logical_block_bytes: self.logical_block_bytes.max(other.logical_block_bytes),
            memory_align_bytes: self.memory_align_bytes.max(other.memory_align_bytes),
            can_poll: self.can_poll && other.can_poll,
            can_discard: self.can_discard && other.can_discard,
            note: self.note.or(other.note),
        }
    }

    fn of(file: &File, path: &Path, options: FileOptions, is_block: bool) -> Result<Self> {
        let failed =
            |source: rustix::io::Errno| Error::io(format!("look at {}", path.display()), source);
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN;
        let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted).map_err(failed)?;
        let geometry = if is_block {
            Self::of_block_device(file, &stat).map_err(failed)?
        } else if options.direct {
            Self::of_direct_file(file, &stat).ok_or_else(|| no_direct(path))?
        } else {
            Self::of_buffered_file(&stat)
        };
        if geometry.size_bytes == 0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{} has a size of 0 bytes; extend it first", path.display()),
            ));
        }
        Ok(geometry)
    }

    fn of_block_device(file: &File, stat: &Statx) -> rustix::io::Result<Self> {
        let number = DeviceNumber {
            major: stat.stx_rdev_major,
            minor: stat.stx_rdev_minor,
        };
        let sys = |name| sysfs::queue_number(Path::new("/sys"), number, name);
        let logical_block_bytes = rustix::fs::ioctl_blksszget(file)?;
        Ok(Self {
            // The end is the size; all I/O is positioned, so nobody cares where the file stands.
            size_bytes: rustix::fs::seek(file, SeekFrom::End(0))?,
            logical_block_bytes,
            memory_align_bytes: logical_block_bytes,
            can_poll: sys("io_poll") == Some(1),
            can_discard: sys("discard_max_bytes").is_some_and(|max_bytes| max_bytes > 0),
            note: None,
        })
    }

    /// `None` where the file can't do direct I/O.
    fn of_direct_file(file: &File, stat: &Statx) -> Option<Self> {
        let number = DeviceNumber {
            major: stat.stx_dev_major,
            minor: stat.stx_dev_minor,
        };
        let sys = |name| sysfs::queue_number(Path::new("/sys"), number, name);
        let has_alignment = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
        let (block_bytes, memory_bytes) = if has_alignment {
            (stat.stx_dio_offset_align, stat.stx_dio_mem_align)
        } else {
            // Linux before 6.1, or a file system that doesn't say.
            let bytes = sys("logical_block_size").and_then(|bytes| u32::try_from(bytes).ok());
            let bytes = bytes.unwrap_or(4096);
            (bytes, bytes)
        };
        if !block_bytes.is_power_of_two() || !memory_bytes.is_power_of_two() {
            return None;
        }
        Some(Self {
            size_bytes: stat.stx_size,
            logical_block_bytes: block_bytes.max(512),
            memory_align_bytes: memory_bytes,
            can_poll: sys("io_poll") == Some(1),
            can_discard: true,
            note: is_tmpfs(file)
                .then_some("tmpfs keeps files in the page cache even with O_DIRECT"),
        })
    }

    fn of_buffered_file(stat: &Statx) -> Self {
        Self {
            size_bytes: stat.stx_size,
            logical_block_bytes: 512,
            memory_align_bytes: 1,
            can_poll: false,
            can_discard: true,
            note: None,
        }
    }
}

fn is_tmpfs(file: &File) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    rustix::fs::fstatfs(file).is_ok_and(|stat| stat.f_type as u64 == TMPFS_MAGIC)
}
