//! The table of device implementations for the conformance suite, and what they run on.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crypt_core::device::Device;
use crypt_core::device::faulty::{FaultPlan, FaultyDevice};
use crypt_core::device::file::{FileDevice, FileEngine, FileOptions};
use crypt_core::device::memory::MemoryDevice;
use crypt_core::device::model::ModelDevice;
use crypt_core::device::null::NullDevice;
use crypt_core::device::service::ServiceModel;
use tempfile::TempDir;

use crate::loop_device::{LoopDevice, loop_device};

const SIZE_BYTES: u64 = 8 << 20;

/// One implementation in one configuration.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// Files of `src/device` that it covers.
    pub(crate) sources: &'static [&'static str],
    pub(crate) engine: &'static str,
    /// Whether what is written can be read.
    pub(crate) stores: bool,
    pub(crate) direct: bool,
    /// Whether its queues are asked to poll.
    pub(crate) polled: bool,
    pub(crate) block_device: bool,
    make: fn(&Subject) -> Result<Fixture, String>,
    /// Opens a path in this configuration; for files only.
    pub(crate) open_path: fn(&Path) -> Result<Arc<dyn Device>, String>,
}

/// A device, the same storage as a read-only device, and what has to stay alive for both.
pub(crate) struct Fixture {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) read_only: Option<Arc<dyn Device>>,
    _storage: Storage,
}

enum Storage {
    None,
    File(#[allow(dead_code, reason = "held for its Drop")] TempDir),
    Loop(#[allow(dead_code, reason = "held for its Drop")] LoopDevice),
}

const BASE: Subject = Subject {
    name: "",
    sources: &[],
    engine: "immediate",
    stores: true,
    direct: false,
    polled: false,
    block_device: false,
    make: |_| Err("not given".to_owned()),
    open_path: |_| Err("not a file".to_owned()),
};

/// Every implementation.
pub(crate) fn subjects() -> Vec<Subject> {
    let mut subjects = vec![
        Subject {
            name: "null",
            sources: &["null.rs"],
            stores: false,
            make: |_| {
                let null = NullDevice::new(SIZE_BYTES);
                Ok(plain(null.clone(), null.read_only()))
            },
            ..BASE
        },
        Subject {
            name: "memory",
            sources: &["memory.rs"],
            make: |_| {
                let memory = memory()?;
                Ok(plain(memory.clone(), memory.read_only()))
            },
            ..BASE
        },
        Subject {
            name: "faulty without faults",
            sources: &["faulty.rs"],
            make: |_| faulty(FaultPlan::default()),
            ..BASE
        },
        Subject {
            name: "faulty, out of order",
            make: |_| {
                faulty(FaultPlan {
                    reorder: true,
                    ..FaultPlan::default()
                })
            },
            ..BASE
        },
        Subject {
            name: "model, nvme",
            sources: &["model.rs"],
            engine: "timer",
            make: |_| model("nvme"),
            ..BASE
        },
        Subject {
            name: "model, array",
            engine: "timer",
            make: |_| model("sata-array:4"),
            ..BASE
        },
        Subject {
            name: "model, optane, polled",
            engine: "timer",
            polled: true,
            make: |_| model("optane"),
            ..BASE
        },
    ];
    subjects.extend(file_subjects());
    subjects
}

fn file_subjects() -> [Subject; 12] {
    let file = |name, engine| Subject {
        name,
        engine,
        sources: &["file.rs", "ring_queue.rs", "sync.rs"],
        make: |subject| on_file(subject.open_path),
        ..BASE
    };
    let several = |name, engine| Subject {
        make: on_several_files,
        ..file(name, engine)
    };
    let block = |name, engine| Subject {
        direct: true,
        block_device: true,
        make: |subject| on_loop_device(subject.open_path),
        ..file(name, engine)
    };
    [
        Subject {
            open_path: |path| open(path, false, FileEngine::IoUring),
            ..file("file, io_uring, buffered", "io_uring")
        },
        Subject {
            direct: true,
            open_path: |path| open(path, true, FileEngine::IoUring),
            ..file("file, io_uring, direct", "io_uring")
        },
        Subject {
            direct: true,
            polled: true,
            open_path: |path| open(path, true, FileEngine::IoUring),
            ..file("file, io_uring, direct, polled", "io_uring")
        },
        Subject {
            open_path: |path| open(path, false, FileEngine::Sync),
            ..file("file, sync, buffered", "sync")
        },
        Subject {
            direct: true,
            open_path: |path| open(path, true, FileEngine::Sync),
            ..file("file, sync, direct", "sync")
        },
        several("several files, io_uring, buffered", "io_uring"),
        Subject {
            direct: true,
            ..several("several files, io_uring, direct", "io_uring")
        },
        several("several files, sync, buffered", "sync"),
        Subject {
            open_path: |path| open(path, true, FileEngine::IoUring),
            ..block("block device, io_uring, direct", "io_uring")
        },
        Subject {
            direct: false,
            open_path: |path| open(path, false, FileEngine::IoUring),
            ..block("block device, io_uring, buffered", "io_uring")
        },
        Subject {
            open_path: |path| open(path, true, FileEngine::Sync),
            ..block("block device, sync, direct", "sync")
        },
        Subject {
            polled: true,
            open_path: |path| open(path, true, FileEngine::IoUring),
            make: |subject| on_given_device(subject.open_path),
            ..block("given block device, io_uring, direct, polled", "io_uring")
        },
    ]
}

/// Runs a check for each implementation that this machine can have.
pub(crate) fn each(check: impl Fn(&Subject, &Fixture)) {
    for subject in subjects() {
        match (subject.make)(&subject) {
            Ok(fixture) => {
                // Shown with a failure, which otherwise doesn't say whose it is.
                println!("{}", subject.name);
                check(&subject, &fixture);
            }
            Err(why) => println!("{}: skipped: {why}", subject.name),
        }
    }
}

/// Files of `src/device` that implement a device or a queue.
pub(crate) fn sources() -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/device");
    let mut sources = Vec::new();
    if !dir.exists() {
        println!(
            "skipped: the test runs away from its sources, {}",
            dir.display()
        );
        return sources;
    }
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        if text.contains(" Device for ") || text.contains(" DeviceQueue for ") {
            sources.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert!(sources.len() >= 5, "the sources moved: {sources:?}");
    sources
}

fn plain(device: impl Device + 'static, read_only: impl Device + 'static) -> Fixture {
    Fixture {
        device: Arc::new(device),
        read_only: Some(Arc::new(read_only)),
        _storage: Storage::None,
    }
}

fn memory() -> Result<MemoryDevice, String> {
    MemoryDevice::new(SIZE_BYTES).map_err(|error| error.to_string())
}

fn faulty(plan: FaultPlan) -> Result<Fixture, String> {
    let memory = memory()?;
    let read_only = FaultyDevice::new(Arc::new(memory.clone().read_only()), plan.clone());
    Ok(plain(FaultyDevice::new(Arc::new(memory), plan), read_only))
}

fn model(name: &str) -> Result<Fixture, String> {
    let memory = memory()?;
    let timed = |memory| {
        let model = ServiceModel::named(name, SIZE_BYTES, 1).unwrap();
        ModelDevice::new(Arc::new(memory), model)
    };
    Ok(plain(timed(memory.clone()), timed(memory.read_only())))
}

fn open(path: &Path, direct: bool, engine: FileEngine) -> Result<Arc<dyn Device>, String> {
    let options = FileOptions {
        direct,
        engine,
        read_only: false,
        claimed: false,
    };
    let device = FileDevice::open(path, options).map_err(|error| error.to_string())?;
    Ok(Arc::new(device))
}

fn open_read_only(path: &Path) -> Option<Arc<dyn Device>> {
    let options = FileOptions {
        read_only: true,
        ..FileOptions::default()
    };
    Some(Arc::new(FileDevice::open(path, options).unwrap()))
}

fn on_file(open: fn(&Path) -> Result<Arc<dyn Device>, String>) -> Result<Fixture, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("device.img");
    fs::File::create_new(&path)
        .unwrap()
        .set_len(SIZE_BYTES)
        .unwrap();
    Ok(Fixture {
        device: open(&path)?,
        // Its queues are buffered, whatever the subject is; refusing takes no I/O.
        read_only: open_read_only(&path),
        _storage: Storage::File(dir),
    })
}

/// Three files one behind the other.
fn on_several_files(subject: &Subject) -> Result<Fixture, String> {
    let dir = tempfile::tempdir().unwrap();
    let sizes_bytes = [3 << 20, 1 << 20, SIZE_BYTES - (4 << 20)];
    let paths = sizes_bytes.map(|bytes: u64| {
        let path = dir.path().join(format!("{bytes}.img"));
        fs::File::create_new(&path).unwrap().set_len(bytes).unwrap();
        path
    });
    let options = FileOptions {
        direct: subject.direct,
        engine: match subject.engine {
            "sync" => FileEngine::Sync,
            _ => FileEngine::IoUring,
        },
        read_only: false,
        claimed: false,
    };
    let read_only = FileOptions {
        read_only: true,
        ..FileOptions::default()
    };
    let device = FileDevice::open_all(&paths, options).map_err(|error| error.to_string())?;
    Ok(Fixture {
        device: Arc::new(device),
        read_only: Some(Arc::new(FileDevice::open_all(&paths, read_only).unwrap())),
        _storage: Storage::File(dir),
    })
}

fn on_loop_device(open: fn(&Path) -> Result<Arc<dyn Device>, String>) -> Result<Fixture, String> {
    let device = loop_device(SIZE_BYTES)?;
    Ok(Fixture {
        device: open(device.path())?,
        read_only: open_read_only(device.path()),
        _storage: Storage::Loop(device),
    })
}

/// On a real device, for what loop devices lack: poll queues. Its content is destroyed.
fn on_given_device(open: fn(&Path) -> Result<Arc<dyn Device>, String>) -> Result<Fixture, String> {
    let path = std::env::var_os("CRYPT_TEST_BLOCK_DEVICE")
        .ok_or("CRYPT_TEST_BLOCK_DEVICE names no device that may be overwritten")?;
    let path = Path::new(&path);
    Ok(Fixture {
        device: open(path)?,
        read_only: open_read_only(path),
        _storage: Storage::None,
    })
}
