//! What a write thread does all its life: sort, push, reap, post, sleep.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::presence::Seat;
use super::shared::PoolShared;
use super::sorted_writes::SortedWrites;
use super::task::Ticket;
use super::wake::WakeAccount;
use super::work::DoneKind;
use super::write_inbox::{WriteInbox, WriteTask};
use super::write_thread::WriteThreadConfig;
use crate::device::{DeviceCompletion, DeviceOp, DeviceQueue, Pushed};
use crate::error::Errno;
use crate::request::Op;

/// How soon the device is looked at again where waiting for it fails.
const RETRY_WAIT: Duration = Duration::from_millis(1);

/// The state of a write thread. Everything is allocated at start.
pub(crate) struct Writer {
    // Dropped first: it waits for what is in flight, whose tickets then fail.
    queue: Box<dyn DeviceQueue>,
    sorted: SortedWrites<WriteTask>,
    /// Tickets of the writes at the device; the index is the operation's token.
    at_device: Vec<Option<Ticket>>,
    free_tokens: Vec<usize>,
    /// An operation that the device refused for now.
    refused: Option<DeviceOp>,
    done: Vec<DeviceCompletion>,
    wakes: WakeAccount,
    inbox: Arc<WriteInbox>,
    seat: Seat,
    pool: Arc<PoolShared>,
}

impl Writer {
    pub(crate) fn new(
        pool: Arc<PoolShared>,
        inbox: Arc<WriteInbox>,
        queue: Box<dyn DeviceQueue>,
        config: WriteThreadConfig,
    ) -> Self {
        let depth = config.device_depth.max(1) as usize;
        Self {
            queue,
            sorted: SortedWrites::new(config.capacity.max(1) as usize),
            at_device: (0..depth).map(|_| None).collect(),
            free_tokens: (0..depth).rev().collect(),
            refused: None,
            done: Vec::with_capacity(depth),
            wakes: WakeAccount::default(),
            inbox,
            seat: pool.presence.join(),
            pool,
        }
    }

    /// Serves until the inbox is stopped and empty, whatever the device does.
    pub(crate) fn live(mut self) {
        let inbox = Arc::clone(&self.inbox);
        self.pool.presence.running(&mut self.seat);
        if catch_unwind(AssertUnwindSafe(|| self.serve())).is_err() {
            // The queue panicked, and may do so again when it is dropped. Dropping the tickets
            // fails their writes.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(self)));
            fail_everything(&inbox);
        }
    }

    fn serve(&mut self) {
        loop {
            self.take_in();
            let moved = self.start_writes() + self.finish_writes();
            if moved > 0 {
                continue;
            }
            if self.is_idle() && self.inbox.is_stopped() && self.inbox.is_empty() {
                return;
            }
            self.sleep();
        }
    }

    fn take_in(&mut self) {
        while !self.sorted.is_full() {
            let Some(task) = self.inbox.take() else {
                return;
            };
            if let Err(task) = self.sorted.insert(task.offset_bytes, task) {
                fail(task);
            }
        }
    }

    /// Pushes as many writes as the device takes; how many that were.
    fn start_writes(&mut self) -> usize {
        let mut started = 0;
        while let Some(op) = self.next_op() {
            match self.queue.push(op) {
                Ok(Pushed::Queued) => {}
                // Its result is not kept until the device has done the others.
                Ok(Pushed::Done(completion)) => self.finish(completion),
                Err(op) => {
                    self.refused = Some(op);
                    break;
                }
            }
            started += 1;
        }
        if started > 0 {
            self.queue.submit();
        }
        started
    }

    fn next_op(&mut self) -> Option<DeviceOp> {
        if let Some(op) = self.refused.take() {
            return Some(op);
        }
        let token = *self.free_tokens.last()?;
        let task = self.sorted.next_write()?;
        self.free_tokens.pop();
        self.at_device[token] = Some(task.ticket);
        Some(DeviceOp {
            token: token as u64,
            op: Op::Write,
            flags: task.flags,
            offset_bytes: task.offset_bytes,
            len_bytes: u64::from(task.len_bytes),
            buffer: task.buffer,
            area: task.area,
            area_offset_bytes: 0,
        })
    }

    /// Posts the results of what the device has finished; how many there were.
    fn finish_writes(&mut self) -> usize {
        let mut done = std::mem::take(&mut self.done);
        self.queue.reap(&mut done);
        let finished = done.len();
        for completion in done.drain(..) {
            self.finish(completion);
        }
        self.done = done;
        finished
    }

    fn finish(&mut self, completion: DeviceCompletion) {
        let token = completion.token as usize;
        let ticket = self.at_device.get_mut(token).and_then(Option::take);
        if let Some(ticket) = ticket {
            self.free_tokens.push(token);
            ticket.finish(completion.buffer, DoneKind::Device(completion.result));
        }
    }

    fn sleep(&mut self) {
        let (inbox, idle) = (&self.inbox, self.is_idle());
        let ready = || !inbox.is_empty() || (idle && inbox.is_stopped());
        if !inbox.wake.arm(&mut self.wakes, ready) {
            return;
        }
        self.pool.outsider_sleeps(&mut self.seat);
        if idle {
            wait_readable(inbox, None);
        } else if self.queue.wait(inbox.wake.fd(), None).is_err() {
            wait_readable(inbox, Some(RETRY_WAIT));
        }
        self.pool.presence.running(&mut self.seat);
        inbox.wake.disarm(&mut self.wakes);
    }

    /// Whether nothing is at the device or on the way to it.
    fn is_idle(&self) -> bool {
        self.free_tokens.len() == self.at_device.len() && self.sorted.is_empty()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.pool.presence.leave(&mut self.seat);
    }
}

/// The rest of the life of a write thread whose device queue is gone.
fn fail_everything(inbox: &WriteInbox) {
    let mut wakes = WakeAccount::default();
    loop {
        while let Some(task) = inbox.take() {
            fail(task);
        }
        if inbox.is_stopped() {
            return;
        }
        if inbox
            .wake
            .arm(&mut wakes, || !inbox.is_empty() || inbox.is_stopped())
        {
            wait_readable(inbox, Some(RETRY_WAIT));
            inbox.wake.disarm(&mut wakes);
        }
    }
}

fn fail(task: WriteTask) {
    task.ticket
        .finish(task.buffer, DoneKind::Device(Err(Errno::EIO)));
}

fn wait_readable(inbox: &WriteInbox, timeout: Option<Duration>) {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut wake = [PollFd::from_borrowed_fd(inbox.wake.fd(), PollFlags::IN)];
    // An interrupt ends the wait early, which is allowed.
    let _ = poll(&mut wake, timeout.as_ref());
}
