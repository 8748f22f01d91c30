//! An io_uring on one file, or several: the only place where the kernel borrows our memory.
//!
//! Ownership: an operation moves into the ring's table when it is started and moves out with its
//! completion. While it is in the table nobody else can reach its buffer, so the kernel may read or
//! write it. Dropping a ring waits for everything that the kernel has; what doesn't come back is
//! forgotten, which leaks its slab instead of freeing memory under the kernel's hands.
//!
//! One issuer: the ring is created disabled, and the thread that calls [`Ring::enable`] is from then
//! on the only one that the kernel lets submit or wait; others get `EEXIST`.
//!
//! The completion queue has room for every operation the table can hold and for the watch on the
//! wake-up, so it can't overflow. Nothing allocates after construction. No panics.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, opcode, types};

use crate::buffer::SlotBuffer;
use crate::device::DeviceOp;
use crate::device::files::{Files, Piece};
use crate::device::ring_entry::{self, Action, Registered};
use crate::device::sync::zeros;
use crate::error::Errno;

/// Most buffers that can be registered (`IORING_MAX_REG_BUFFERS`).
const REGISTERED_LIMIT: usize = 1 << 14;
/// `user_data` of the watch on the wake-up; all other values index the table.
const WAKE: u64 = u64::MAX;
/// How long a dropped ring waits for the next completion before it gives up and leaks: longer than
/// the block layer's own time-out of 30 s.
const DRAIN_LIMIT: Duration = Duration::from_secs(90);

/// What a ring has to report.
#[derive(Debug)]
pub(super) enum Event {
    /// An operation came back. `result` is the kernel's: a count, or a negated error number.
    Done {
        /// The operation, with its memory.
        op: DeviceOp,
        /// What was asked for it.
        action: Action,
        /// The kernel's answer.
        result: i32,
    },
    /// The watched descriptor became readable; the watch is over.
    Wake,
}

/// See the module documentation.
pub(super) struct Ring {
    uring: IoUring,
    flights: Box<[Option<Flight>]>,
    free: Vec<u32>,
    registered: Option<Registered>,
    zeros: Option<SlotBuffer>,
    watching: bool,
    /// Registered with the ring; held so that they outlive it.
    files: Arc<Files>,
}

/// An operation that the kernel has.
struct Flight {
    op: DeviceOp,
    action: Action,
}

impl Ring {
    /// A disabled ring of `depth` operations on `files`. With `iopoll`, completions are polled from
    /// the hardware, and only transfers may be started.
    ///
    /// # Errors
    /// The system's, or `EOPNOTSUPP` for a kernel before 5.11.
    pub(super) fn new(files: Arc<Files>, depth: u32, iopoll: bool) -> io::Result<Self> {
        let zeros = if iopoll {
            None
        } else {
            Some(zeros().map_err(|error| io::Error::from(error.errno()))?)
        };
        let uring = build(depth, iopoll)?;
        let parts = files.parts().iter();
        let descriptors: Vec<_> = parts.map(|part| part.file.as_raw_fd()).collect();
        uring.submitter().register_files(&descriptors)?;
        Ok(Self {
            uring,
            flights: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            registered: None,
            zeros,
            watching: false,
            files,
        })
    }

    /// Registers the memory of `slots`, which must be consecutive slots of one slab.
    ///
    /// # Errors
    /// The system's: `ENOMEM` where more memory would be locked than RLIMIT_MEMLOCK allows. The
    /// ring then works unregistered.
    pub(super) fn register(&mut self, slots: &[SlotBuffer]) -> io::Result<()> {
        if slots.is_empty() {
            return Ok(());
        }
        let registered = Registered::new(slots).filter(|_| slots.len() <= REGISTERED_LIMIT);
        let registered = registered.ok_or(Errno::EINVAL)?;
        let vectors: Vec<libc::iovec> = slots.iter().map(vector).collect();
        let submitter = self.uring.submitter();
        // SAFETY: the vectors lie in the slab, which `self.registered` keeps in place until the ring
        // is gone. Registration alone moves no data.
        unsafe { submitter.register_buffers(&vectors) }?;
        self.registered = Some(registered);
        Ok(())
    }

    /// Makes the calling thread the only one that may use the ring.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn enable(&mut self) -> Result<(), Errno> {
        let enabled = self.uring.submitter().register_enable_rings();
        enabled.map_err(|error| errno_of(&error))
    }

    /// Operations started and not come back.
    pub(super) fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// Puts an operation into the submission queue; it runs from the next [`Ring::submit`] or wait
    /// on. The operation has passed the device's limits.
    ///
    /// # Errors
    /// Gives the operation back where the table is full or no file is at its offset.
    pub(super) fn start(&mut self, op: DeviceOp, action: Action) -> Result<(), DeviceOp> {
        let place = match action {
            Action::Sync { file } => Some(Piece {
                index: file,
                offset_bytes: 0,
                len_bytes: 0,
            }),
            _ => self.files.place(op.offset_bytes),
        };
        let (Some(place), Some(index)) = (place, self.free.pop()) else {
            return Err(op);
        };
        let flight = self.flights[index as usize].insert(Flight { op, action });
        let Flight { op, action } = flight;
        let entry = ring_entry::build(
            op,
            *action,
            place,
            self.registered.as_ref(),
            self.zeros.as_ref(),
        );
        let entry = entry.user_data(u64::from(index));
        // SAFETY: the entry points into the buffer of `flight.op`, or into `self.zeros`. Both stay
        // in `self` until this operation's completion, and are forgotten by `drop` if it never comes.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        if pushed.is_ok() {
            return Ok(());
        }
        self.free.push(index);
        match self.flights[index as usize].take() {
            Some(flight) => Err(flight.op),
            // Inserted above.
            None => Ok(()),
        }
    }

    /// Watches `wake`, once: the ring reports [`Event::Wake`] when it is, or already was, readable.
    /// Does nothing while a watch is on.
    pub(super) fn watch(&mut self, wake: BorrowedFd<'_>) {
        if self.watching {
            return;
        }
        const POLLIN: u32 = 1;
        let entry = opcode::PollAdd::new(types::Fd(wake.as_raw_fd()), POLLIN).build();
        let entry = entry.user_data(WAKE);
        // SAFETY: the entry points to no memory. A descriptor that is closed before the next submit
        // makes the watch fail or end early, which a wait may do.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        self.watching = pushed.is_ok();
    }

    /// Hands the submission queue to the kernel, and lets it post completions that are due.
    ///
    /// # Errors
    /// The system's; what is not submitted stays queued. Being interrupted, or told to try again,
    /// is no error.
    pub(super) fn submit(&mut self) -> Result<(), Errno> {
        loop {
            let queued = self.uring.submission().len();
            match self.enter(queued) {
                // The kernel stops at an entry that it refuses, whose completion says why.
                Ok(submitted) if submitted > 0 && submitted < queued => {}
                result => return tolerate(result),
            }
        }
    }

    /// One system call that hands `queued` entries over. A ring whose completions are deferred posts them only where a
    /// call asks for events; asking here saves the call after it, where the device was done within this one.
    fn enter(&self, queued: usize) -> io::Result<usize> {
        /// `IORING_ENTER_GETEVENTS` of the kernel's `include/uapi/linux/io_uring.h`.
        const GETEVENTS: u32 = 1;
        if !self.uring.params().is_setup_single_issuer() {
            return self.uring.submit();
        }
        let submitter = self.uring.submitter();
        // SAFETY: the entries point to memory that `self` keeps until their completions (see `start`), and there is no
        // argument that the kernel would read.
        unsafe { submitter.enter::<libc::sigset_t>(queued as u32, 0, GETEVENTS, None) }
    }

    /// Whether entries wait for [`Ring::submit`].
    pub(super) fn has_queued(&mut self) -> bool {
        !self.uring.submission().is_empty()
    }

    /// [`Ring::submit`], but only where it would achieve something: entries are queued, deferred
    /// completions are due, or the hardware has to be polled.
    ///
    /// # Errors
    /// As for [`Ring::submit`].
    pub(super) fn kick(&mut self) -> Result<(), Errno> {
        if !self.uring.completion().is_empty() {
            return Ok(());
        }
        let polling = self.uring.params().is_setup_iopoll() && self.in_flight() > 0;
        let submission = self.uring.submission();
        let due =
            polling || submission.taskrun() || submission.cq_overflow() || !submission.is_empty();
        drop(submission);
        if due { self.submit() } else { Ok(()) }
    }

    /// Hands the submission queue to the kernel and sleeps until there is a completion, or
    /// `timeout` has passed, or a signal comes.
    ///
    /// # Errors
    /// As for [`Ring::submit`].
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Errno> {
        if !self.uring.completion().is_empty() {
            return Ok(());
        }
        let result = match timeout {
            None => self.uring.submit_and_wait(1),
            Some(timeout) => {
                let timespec = Timespec::from(timeout);
                let args = SubmitArgs::new().timespec(&timespec);
                self.uring.submitter().submit_with_args(1, &args)
            }
        };
        tolerate(result)
    }

    /// Takes the next completion out.
    pub(super) fn next(&mut self) -> Option<Event> {
        loop {
            let entry = self.uring.completion().next()?;
            if entry.user_data() == WAKE {
                self.watching = false;
                return Some(Event::Wake);
            }
            let index = entry.user_data() as usize;
            // A number that is not in flight is no completion of ours; there is none.
            let flight = self.flights.get_mut(index).and_then(Option::take);
            if let Some(Flight { op, action }) = flight {
                self.free.push(index as u32);
                return Some(Event::Done {
                    op,
                    action,
                    result: entry.result(),
                });
            }
        }
    }

    /// Waits for all operations; `false` where some won't come back.
    fn drain(&mut self) -> bool {
        let mut progress = Instant::now();
        while self.in_flight() > 0 {
            if self.wait(Some(Duration::from_secs(1))).is_err() {
                return false;
            }
            let before = self.in_flight();
            while self.next().is_some() {}
            if self.in_flight() < before {
                progress = Instant::now();
            } else if progress.elapsed() > DRAIN_LIMIT {
                return false;
            }
        }
        true
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.drain() {
            // The kernel may still use this memory, so it is never freed.
            std::mem::forget(std::mem::take(&mut self.flights));
            std::mem::forget(self.zeros.take());
        }
        // The kernel takes a ring apart in the background; without this, the file would stay open
        // for a moment, and a block device that is opened exclusively would be busy.
        let _kept_by_kernel = self.uring.submitter().unregister_files();
    }
}

/// Builds the best ring that this kernel has: one issuer and completions deferred to its waits
/// (6.1), else completions without interrupting the issuer (5.19), else a plain one.
fn build(depth: u32, iopoll: bool) -> io::Result<IoUring> {
    let modes: [fn(&mut Builder); 3] = [
        |builder| {
            builder
                .setup_single_issuer()
                .setup_defer_taskrun()
                .setup_taskrun_flag()
                .setup_submit_all();
        },
        |builder| {
            builder
                .setup_coop_taskrun()
                .setup_taskrun_flag()
                .setup_submit_all();
        },
        |_| {},
    ];
    // One more for the watch.
    let entries = depth.saturating_add(1);
    let mut refused = io::Error::from(Errno::EINVAL);
    for mode in modes {
        let mut builder = IoUring::builder();
        builder.dontfork().setup_r_disabled();
        builder.setup_cqsize(entries.saturating_mul(2));
        mode(&mut builder);
        if iopoll {
            builder.setup_iopoll();
        }
        match builder.build(entries) {
            Ok(uring) if uring.params().is_feature_ext_arg() => return Ok(uring),
            Ok(_) => return Err(Errno::EOPNOTSUPP.into()),
            Err(error) if error.raw_os_error() == Some(Errno::EINVAL.raw()) => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

fn vector(slot: &SlotBuffer) -> libc::iovec {
    let (start, len) = slot.registration();
    libc::iovec {
        iov_base: start.cast(),
        iov_len: len,
    }
}

/// Interrupts, time-outs and "later" are not errors of a ring: the next call goes on.
fn tolerate(result: io::Result<usize>) -> Result<(), Errno> {
    use rustix::io::Errno as Raw;
    const HARMLESS: [Raw; 4] = [Raw::INTR, Raw::TIME, Raw::AGAIN, Raw::BUSY];
    match result {
        Ok(_) => Ok(()),
        Err(error) => {
            let errno = errno_of(&error);
            let is = |raw: &Raw| raw.raw_os_error() == errno.raw();
            if HARMLESS.iter().any(is) {
                Ok(())
            } else {
                Err(errno)
            }
        }
    }
}

fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
