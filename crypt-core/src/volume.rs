//! An encrypted volume: a device, a cipher and a policy, from which queues are opened.
//!
//! A volume is immutable and cheap to clone; its queues share the device, the cipher and the worker
//! pool. Without workers everything runs inline on the caller's thread, and no thread is started.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::buffer::SlotBuffer;
use crate::cipher::SectorCipher;
use crate::device::{Device, DeviceInfo, QueueConfig};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{self, WorkerPool, WriteThread, WriteThreadConfig, Writes};
use crate::pipeline::{Pipeline, PipelineConfig};
use crate::policy::{Costs, Policy, PolicySpec, WriteRoute};
use crate::queue::{Parts, Queue};
use crate::units::SectorSize;
use crate::volume_io::VolumeIo;

/// Depth and request length of a new queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Most requests in flight.
    pub depth: u32,
    /// Longest read or write in bytes; rounded up to the volume's block size.
    pub max_request_bytes: u32,
    /// Poll the device for completions (`HIPRI`) where it can be polled; [`Queue::wait`] then spins.
    pub polled: bool,
}

impl Default for QueueOptions {
    /// Depth 32, requests of up to 1 MiB, not polled.
    fn default() -> Self {
        Self {
            depth: 32,
            max_request_bytes: 1 << 20,
            polled: false,
        }
    }
}

impl QueueOptions {
    /// Memory that a queue with these options allocates for its slots, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.depth) * 2 * u64::from(self.max_request_bytes).next_multiple_of(4096)
    }
}

/// An encrypted (or raw) volume. See the module documentation.
#[derive(Clone, Debug)]
pub struct Volume {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Arc<dyn Device>,
    info: DeviceInfo,
    cipher: Option<Arc<dyn SectorCipher>>,
    policy: PolicyFactory,
    workers: Option<Arc<WorkerPool>>,
    write_thread: Mutex<Option<Arc<WriteThread>>>,
    costs: Costs,
    size_bytes: u64,
    data_offset_bytes: u64,
    block_bytes: u32,
    allow_discards: bool,
    read_only: bool,
    rmw: Arc<RwLock<()>>,
}

/// Makes the policy of each new queue.
#[derive(Clone)]
struct PolicyFactory(Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>);

impl fmt::Debug for PolicyFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&(self.0)().name())
    }
}

/// Puts a [`Volume`] together.
#[derive(Debug)]
pub struct VolumeBuilder {
    device: Arc<dyn Device>,
    cipher: Option<Arc<dyn SectorCipher>>,
    policy: PolicyFactory,
    workers: Option<Arc<WorkerPool>>,
    data_offset_bytes: u64,
    size_bytes: Option<u64>,
    allow_discards: bool,
    read_only: bool,
}

impl VolumeBuilder {
    /// Encrypts with `cipher`; without one the volume is raw and no cipher stage runs.
    #[must_use]
    pub fn cipher(mut self, cipher: Arc<dyn SectorCipher>) -> Self {
        self.cipher = Some(cipher);
        self
    }

    /// Where the cipher runs; inline unless set.
    #[must_use]
    pub fn policy(self, policy: PolicySpec) -> Self {
        self.policy_factory(move || policy.build())
    }

    /// Where the cipher runs, decided by a policy of your own: `factory` makes one per queue.
    #[must_use]
    pub fn policy_factory(
        mut self,
        factory: impl Fn() -> Box<dyn Policy> + Send + Sync + 'static,
    ) -> Self {
        self.policy = PolicyFactory(Arc::new(factory));
        self
    }

    /// Workers for policies that hand off; may be shared with other volumes.
    #[must_use]
    pub fn workers(mut self, workers: Arc<WorkerPool>) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Where the volume starts on the device; 0 unless set.
    #[must_use]
    pub fn data_offset_bytes(mut self, offset_bytes: u64) -> Self {
        self.data_offset_bytes = offset_bytes;
        self
    }

    /// Length of the volume; to the end of the device unless set.
    #[must_use]
    pub fn size_bytes(mut self, size_bytes: u64) -> Self {
        self.size_bytes = Some(size_bytes);
        self
    }

    /// Lets `Discard` through to the device, which shows which sectors are unused
    /// (dm-crypt's `allow_discards`).
    #[must_use]
    pub fn allow_discards(mut self, allow: bool) -> Self {
        self.allow_discards = allow;
        self
    }

    /// Refuses everything that writes.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Checks the geometry, measures the costs that the policy starts from where there are workers
    /// (some milliseconds), and makes the volume.
    ///
    /// # Errors
    /// Where the length or offset is not a multiple of the block size, or the volume does not fit
    /// on the device: with exact numbers, nothing is ever truncated.
    pub fn build(self) -> Result<Volume> {
        let info = self.device.info();
        let crypto_sector = self
            .cipher
            .as_ref()
            .map_or(0, |cipher| cipher.sector_size().bytes());
        let block_bytes = info.logical_block_bytes.max(crypto_sector as u32).max(512);
        let size_bytes = self.checked_size(&info, block_bytes)?;
        let costs = match (&self.cipher, &self.workers) {
            (Some(cipher), Some(workers)) => exec::calibrate(workers, cipher),
            _ => Costs::default(),
        };
        Ok(Volume {
            inner: Arc::new(Inner {
                read_only: self.read_only || info.read_only,
                device: self.device,
                info,
                cipher: self.cipher,
                policy: self.policy,
                workers: self.workers,
                write_thread: Mutex::new(None),
                costs,
                size_bytes,
                data_offset_bytes: self.data_offset_bytes,
                block_bytes,
                allow_discards: self.allow_discards,
                rmw: Arc::new(RwLock::new(())),
            }),
        })
    }

    fn checked_size(&self, info: &DeviceInfo, block_bytes: u32) -> Result<u64> {
        let (offset, device) = (self.data_offset_bytes, info.size_bytes);
        let bad = |what: String| Err(Error::new(ErrorKind::OutOfRange, what));
        let Some(rest) = device.checked_sub(offset).filter(|&rest| rest > 0) else {
            return bad(format!(
                "the data would start at byte {offset} of a device of {device} bytes"
            ));
        };
        let size = self.size_bytes.unwrap_or(rest);
        if size > rest || size == 0 {
            return bad(format!(
                "a volume of {size} bytes at offset {offset} does not fit a device of {device} bytes"
            ));
        }
        let block = u64::from(block_bytes);
        for (what, bytes) in [("data offset", offset), ("volume length", size)] {
            // The offset need only suit the device; the length must hold whole crypto sectors.
            let unit = if what == "data offset" {
                u64::from(info.logical_block_bytes)
            } else {
                block
            };
            if !bytes.is_multiple_of(unit) {
                return bad(format!(
                    "the {what} of {bytes} bytes is not a multiple of {unit} bytes ({} bytes too \
                     many); choose a smaller sector size or another length",
                    bytes % unit
                ));
            }
        }
        Ok(size)
    }
}

impl Volume {
    /// Starts a volume on `device`.
    #[must_use]
    pub fn builder(device: Arc<dyn Device>) -> VolumeBuilder {
        VolumeBuilder {
            device,
            cipher: None,
            policy: PolicyFactory(Arc::new(|| PolicySpec::Inline.build())),
            workers: None,
            data_offset_bytes: 0,
            size_bytes: None,
            allow_discards: false,
            read_only: false,
        }
    }

    /// Opens a queue. Call it on the thread that will use the queue.
    ///
    /// # Errors
    /// Where the options are out of range, the memory can't be had, or the device refuses.
    pub fn queue(&self, options: &QueueOptions) -> Result<Queue> {
        let inner = &*self.inner;
        let policy = (inner.policy.0)();
        let writes = self.writes(policy.offload_rules().writes)?;
        let config = PipelineConfig {
            worker_writes: matches!(writes, Writes::Worker(_)),
            ..inner.pipeline_config(options)?
        };
        let pipeline = Pipeline::new(config, policy, inner.costs)?;
        let buffers = SlotBuffer::allocate(config.depth, config.slot_bytes as usize)?;
        let device = inner.device.open_queue(&QueueConfig {
            depth: config.depth,
            polled: options.polled,
            slots: &buffers,
        })?;
        let lane = match (&inner.cipher, &inner.workers) {
            (Some(cipher), Some(workers)) => {
                let cipher = Arc::clone(cipher);
                Some(exec::Lane::open(workers, cipher, config.depth, writes)?)
            }
            _ => None,
        };
        let cipher = inner.cipher.clone();
        Queue::new(Parts {
            pipeline,
            cipher,
            lane,
            device,
            buffers,
            polled: options.polled,
        })
    }

    /// A file-like view that reads and writes any byte range.
    ///
    /// # Errors
    /// As [`Volume::queue`].
    pub fn io(&self) -> Result<VolumeIo> {
        let queue = self.queue(&QueueOptions {
            depth: 8,
            max_request_bytes: 128 << 10,
            polled: false,
        })?;
        Ok(VolumeIo::new(self, queue, Arc::clone(&self.inner.rmw)))
    }

    /// Capacity in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.inner.size_bytes
    }

    /// Unit of every request in bytes: advertise it as the logical block size.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.inner.block_bytes
    }

    /// The crypto sector, or `None` for a raw volume.
    #[must_use]
    pub fn sector_size(&self) -> Option<SectorSize> {
        self.inner
            .cipher
            .as_ref()
            .map(|cipher| cipher.sector_size())
    }

    /// The cipher backend that runs, for results; `none` for a raw volume.
    #[must_use]
    pub fn cipher_backend(&self) -> &'static str {
        self.inner
            .cipher
            .as_ref()
            .map_or("none", |cipher| cipher.backend())
    }

    /// Facts about the device below.
    #[must_use]
    pub fn device_info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// Costs measured when the volume was built; zero without workers.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.inner.costs
    }

    /// What serves a queue's route for writes.
    fn writes(&self, route: WriteRoute) -> Result<Writes> {
        let inner = &*self.inner;
        Ok(match (route, &inner.cipher, &inner.workers) {
            (WriteRoute::Worker, Some(_), Some(_)) => {
                let device = inner.device.immediate();
                device.map_or(Writes::Return, Writes::Worker)
            }
            (WriteRoute::WriteThread, Some(_), Some(workers)) => {
                Writes::WriteThread(self.write_thread(workers)?)
            }
            _ => Writes::Return,
        })
    }

    /// The one write thread of the volume, started by the first queue that needs it.
    fn write_thread(&self, workers: &Arc<WorkerPool>) -> Result<Arc<WriteThread>> {
        let mut slot = self
            .inner
            .write_thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*slot {
            return Ok(Arc::clone(thread));
        }
        let device = Arc::clone(&self.inner.device);
        let thread = WriteThread::start(workers, device, WriteThreadConfig::default())?;
        *slot = Some(Arc::clone(&thread));
        Ok(thread)
    }
}

impl Inner {
    fn pipeline_config(&self, options: &QueueOptions) -> Result<PipelineConfig> {
        let block = self.block_bytes;
        let slot_bytes = options
            .max_request_bytes
            .checked_next_multiple_of(block)
            .filter(|&bytes| bytes > 0)
            .ok_or_else(|| {
                let asked = options.max_request_bytes;
                Error::new(
                    ErrorKind::InvalidInput,
                    format!("a longest request of {asked} bytes is out of range"),
                )
            })?;
        Ok(PipelineConfig {
            depth: options.depth,
            slot_bytes,
            volume_bytes: self.size_bytes,
            data_offset_bytes: self.data_offset_bytes,
            block_bytes: block,
            device_block_bytes: self.info.logical_block_bytes,
            crypto_sector_bytes: self
                .cipher
                .as_ref()
                .map_or(0, |cipher| cipher.sector_size().bytes() as u32),
            allow_discards: self.allow_discards,
            read_only: self.read_only,
            worker_writes: false,
        })
    }
}
