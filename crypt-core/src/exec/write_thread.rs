//! A volume's write thread: issues encrypted writes in sector order through a device queue of its
//! own, as dm-crypt does unless told `submit_from_crypt_cpus`.
//!
//! Workers post encrypted writes; the thread sorts them (`SortedWrites`), pushes them to the
//! device, and posts each result to the mailbox of the lane that the write came from. A failed
//! write is an ordinary completion; a short one is passed on as it is, and the pipeline continues
//! it. Should the device's queue panic, every write it held fails with `EIO` and so does every later
//! one: nothing hangs.
//!
//! Dropping the last `Arc` ends the thread; lanes hold one, so that happens with nothing in flight.
#![forbid(unsafe_code)]

use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use super::pool::WorkerPool;
use super::write_inbox::WriteInbox;
use super::writer::Writer;
use crate::device::{Device, DeviceQueue, QueueConfig, QueueFacts};
use crate::error::{Errno, Error, Result};

/// How a write thread is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteThreadConfig {
    /// Most writes of all lanes together that may be out at a time: the sum of their depths.
    pub capacity: u32,
    /// Most of them at the device at a time.
    pub device_depth: u32,
}

impl Default for WriteThreadConfig {
    /// 16,384 writes, 128 of them at the device: about 4 MB of bookkeeping.
    fn default() -> Self {
        Self {
            capacity: 16_384,
            device_depth: 128,
        }
    }
}

/// A running write thread. Share it by `Arc` with the lanes of one volume.
pub struct WriteThread {
    inbox: Arc<WriteInbox>,
    facts: QueueFacts,
    thread: Option<JoinHandle<()>>,
}

impl WriteThread {
    /// Starts the thread and opens its queue on `device`. The thread counts as runnable in `pool`
    /// while it is awake.
    ///
    /// # Errors
    /// Where the thread can't be started or the device refuses the queue.
    pub fn start(
        pool: &Arc<WorkerPool>,
        device: Arc<dyn Device>,
        config: WriteThreadConfig,
    ) -> Result<Arc<Self>> {
        let inbox = Arc::new(WriteInbox::new(config.capacity)?);
        let (ready, opened) = mpsc::channel();
        let (shared, own_inbox) = (pool.shared_arc(), Arc::clone(&inbox));
        let life = move || match open_queue(&*device, config) {
            Ok(queue) => {
                // The receiver is gone only if the starting thread is; the inbox says so then.
                let _ = ready.send(Ok(queue.facts()));
                Writer::new(shared, own_inbox, queue, config).live();
            }
            Err(error) => drop(ready.send(Err(error))),
        };
        let thread = Builder::new().name("crypt-write".to_owned()).spawn(life);
        let thread = thread.map_err(|error| Error::io("start a write thread", error))?;
        let died = |_| Error::io("open the write thread's device queue", Errno::EIO);
        Ok(Arc::new(Self {
            inbox,
            facts: opened.recv().map_err(died)??,
            thread: Some(thread),
        }))
    }

    /// How the thread's device queue really works, for results.
    #[must_use]
    pub fn facts(&self) -> &QueueFacts {
        &self.facts
    }

    pub(crate) fn inbox(&self) -> &Arc<WriteInbox> {
        &self.inbox
    }
}

impl fmt::Debug for WriteThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteThread")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl Drop for WriteThread {
    fn drop(&mut self) {
        self.inbox.stop();
        if let Some(thread) = self.thread.take() {
            // Its panics are caught and have failed the writes already.
            let _ = thread.join();
        }
    }
}

/// Opens the device queue, on the thread that will use it.
fn open_queue(device: &dyn Device, config: WriteThreadConfig) -> Result<Box<dyn DeviceQueue>> {
    device.open_queue(&QueueConfig {
        depth: config.device_depth.max(1),
        polled: false,
        slots: &[],
    })
}
