//! Task cells: the preallocated homes of handed-off work, shared between a queue's thread, the
//! workers and the write thread. The unsafe code of the worker side is here and in `areas.rs`.
//!
//! # Who owns what, when
//! A [`TaskOwner`] belongs to one lane and holds a table of cells. A cell goes round in a circle:
//!
//! 1. **free** (`busy` is false): the lane's thread alone may touch the cell. [`TaskOwner::start`]
//!    moves the work with its buffer in, sets `busy`, and returns one [`Part`] per part. They reach
//!    other threads through a queue, which publishes the writes.
//! 2. **running** (parts exist): each `Part` may read the payload, read its own byte range of the
//!    source and write its own byte range of the target. Ranges of different parts are disjoint.
//!    Nobody touches the payload's [`SlotBuffer`] itself. Dropping a `Part` instead of running it
//!    counts as a part that failed with `ECANCELED`.
//! 3. **ended**: the thread that ends the last part holds the only [`Ticket`], the exclusive right
//!    to the payload. It sees all that other parts wrote ([`Record::enter`]). A ticket may travel to
//!    the write thread. Dropping one instead of finishing it counts as an I/O error.
//! 4. [`Ticket::finish`] posts the result, and as its very last access clears `busy` (`Release`): the
//!    cell is free again.
//!
//! # Why the pointers stay valid
//! `Part` and `Ticket` point to the table without counting references. The table is freed only by
//! the drop of `TaskOwner`, which first waits until no cell is busy (`Acquire`); a forgotten
//! `TaskOwner` leaks the table. So a part or ticket that exists has a table, and after `busy` is
//! cleared its thread touches the table no more.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crossbeam::utils::CachePadded;

use super::cut::{Cut, Piece};
use super::mailbox::Mailbox;
use super::payload::Payload;
use super::record::{PartEnd, Record};
use super::sync::{AtomicBool, Ordering, Patience};
use super::work::{Done, DoneKind, Route, Work};
use super::write_inbox::{WriteInbox, WriteTask};
use crate::buffer::SlotBuffer;
use crate::cipher::SectorCipher;
use crate::clock::Clock;
use crate::device::ImmediateDevice;
use crate::error::Errno;

/// What a lane's tasks share. Fixed at start.
pub(crate) struct TaskContext {
    pub(crate) cipher: Arc<dyn SectorCipher>,
    pub(crate) mailbox: Mailbox,
    /// The way of works with [`Route::WriteThread`].
    pub(crate) writes: Option<Arc<WriteInbox>>,
    /// Where works with [`Route::Worker`] are written.
    pub(crate) device: Option<Arc<dyn ImmediateDevice>>,
    pub(crate) clock: Clock,
}

/// The lane's side of a table of cells. Dropping it waits for every task.
pub(crate) struct TaskOwner {
    // An `Arc`, although never cloned: unlike a `Box` it allows pointers to its content.
    table: Arc<TaskTable>,
    /// Cells that are free or just about to be, oldest first.
    free: VecDeque<u32>,
}

/// The parts of one started task, each handed out once. Dropping it drops the rest of them.
pub(crate) struct Parts {
    table: NonNull<TaskTable>,
    cell: u32,
    cut: Cut,
}

/// The right to run one part of one task, exactly once.
pub(crate) struct Part {
    table: NonNull<TaskTable>,
    cell: u32,
    piece: Piece,
}

/// When a part was handed off, and when its work began.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    pub(crate) handed_off_ns: u64,
    pub(crate) at_ns: u64,
}

/// The exclusive right to a task whose parts have all ended.
pub(crate) struct Ticket {
    table: NonNull<TaskTable>,
    cell: u32,
}

struct TaskTable {
    cells: Box<[CachePadded<Cell>]>,
    context: TaskContext,
}

struct Cell {
    payload: UnsafeCell<Option<Payload>>,
    record: Record,
    busy: AtomicBool,
}

// SAFETY: a part points to a table that outlives it (module documentation), whose content may be
// used from any thread under the cell protocol.
unsafe impl Send for Part {}
// SAFETY: as for `Part`; a ticket is the exclusive right to its cell's payload, which is `Send`.
unsafe impl Send for Ticket {}
// SAFETY: all access to the payload follows the cell protocol, which gives each stage one writer
// and orders the stages with atomics.
unsafe impl Sync for Cell {}

impl TaskOwner {
    /// A table of `cells` cells, all free.
    pub(crate) fn new(cells: u32, context: TaskContext) -> Self {
        let cell = |_| {
            CachePadded::new(Cell {
                payload: UnsafeCell::new(None),
                record: Record::new(),
                busy: AtomicBool::new(false),
            })
        };
        let table = TaskTable {
            cells: (0..cells).map(cell).collect(),
            context,
        };
        Self {
            table: Arc::new(table),
            free: (0..cells).collect(),
        }
    }

    pub(crate) fn context(&self) -> &TaskContext {
        &self.table.context
    }

    /// Moves `work` into a free cell and cuts it into parts.
    ///
    /// # Errors
    /// Gives the work back where no cell is free or its span is malformed.
    pub(crate) fn start(&mut self, work: Work) -> Result<Parts, Work> {
        let unit = self.table.context.cipher.sector_size();
        let checked = work.span().check(unit, work.buffer.area_len());
        if work.len_bytes == 0 || checked.is_err() {
            return Err(work);
        }
        let Some(index) = self.take_free() else {
            return Err(work);
        };
        let parts = u32::from(work.parts.get());
        let cut = Cut::new(work.len_bytes, unit.bytes() as u32, parts);
        let cell = &self.table.cells[index as usize];
        cell.record.reset(cut.parts(), cut.len_bytes());
        cell.fill(Payload::new(work, self.table.context.clock.now_ns()));
        Ok(Parts {
            table: NonNull::from(&*self.table),
            cell: index,
            cut,
        })
    }

    /// The next result, if one has been posted.
    pub(crate) fn collect(&mut self) -> Option<Done> {
        let (cell, done) = self.table.context.mailbox.take()?;
        self.free.push_back(cell);
        Some(done)
    }

    /// Waits until every started task has ended and its thread has let go of the cell.
    pub(crate) fn wait(&self) {
        let patience = Patience::default();
        for cell in &self.table.cells {
            while cell.busy.load(Ordering::Acquire) {
                patience.wait();
            }
        }
    }

    /// A cell that is free; `None` where the few oldest are still being left by their workers.
    fn take_free(&mut self) -> Option<u32> {
        for _ in 0..self.free.len().min(4) {
            let index = self.free.pop_front()?;
            if !self.table.cells[index as usize]
                .busy
                .load(Ordering::Acquire)
            {
                return Some(index);
            }
            self.free.push_back(index);
        }
        None
    }
}

impl Drop for TaskOwner {
    fn drop(&mut self) {
        self.wait();
    }
}

impl fmt::Debug for TaskOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskOwner")
            .field("cells", &self.table.cells.len())
            .finish_non_exhaustive()
    }
}

impl Parts {
    /// Bytes of all parts together.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.cut.len_bytes()
    }
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        self.cut.next().map(|piece| Part {
            table: self.table,
            cell: self.cell,
            piece,
        })
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl Part {
    pub(crate) fn len_bytes(&self) -> u32 {
        self.piece.len_bytes
    }

    /// Runs the cipher over the part, writes it where that is its route, and passes the task on where
    /// it was the last one. Says when the part was handed off and began; `None` of one that could not be run.
    pub(crate) fn run(self) -> Option<Begun> {
        let (end, begun) = {
            // SAFETY: the table outlives every part (module documentation).
            let table = unsafe { self.table.as_ref() };
            match self.payload(table) {
                Some(payload) => {
                    let end = self.run_share(payload, &table.context);
                    let begun = Begun {
                        handed_off_ns: payload.handed_off_ns,
                        at_ns: end.started_ns,
                    };
                    (end, Some(begun))
                }
                None => (PartEnd::CANCELED, None),
            }
        };
        let (table, cell) = (self.table, self.cell);
        std::mem::forget(self);
        end_part(table, cell, end);
        begun
    }

    fn payload<'a>(&'a self, table: &'a TaskTable) -> Option<&'a Payload> {
        let cell = &table.cells[self.cell as usize];
        // SAFETY: this part has not ended, so everybody who has access to the payload reads it.
        let payload = unsafe { &*cell.payload.get() };
        payload.as_ref()
    }

    fn run_share(&self, payload: &Payload, context: &TaskContext) -> PartEnd {
        let unit = context.cipher.sector_size();
        let stretch = payload.span_of(self.piece).and_then(|span| {
            // SAFETY: the payload holds the slot's buffer, untouched while parts exist, and the
            // pieces of a cut are disjoint.
            unsafe { payload.areas.stretch(span, unit) }
        });
        payload.run(self.piece, stretch, context)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        end_part(self.table, self.cell, PartEnd::CANCELED);
    }
}

/// Ends a part, which must not be used again, and passes the task on where it was the last one.
fn end_part(table: NonNull<TaskTable>, cell: u32, end: PartEnd) {
    let was_last = {
        // SAFETY: the part that is being ended keeps the table alive until it is entered.
        let table = unsafe { table.as_ref() };
        table.cells[cell as usize].record.enter(end)
    };
    if was_last {
        Ticket { table, cell }.route();
    }
}

impl Ticket {
    /// Sends the task where it goes next.
    fn route(mut self) {
        let (table, cell) = self.table();
        let result = cell.record.result();
        let Some(payload) = self.payload_mut() else {
            return self.finish(None, DoneKind::Crypt(Err(Errno::EIO)));
        };
        let (route, buffer) = (payload.route, payload.buffer.take());
        let (len_bytes, area) = (payload.span.len_bytes, payload.span.target);
        match (route, result, &table.context.writes) {
            // Counted, because the write may end and the table go while the inbox is still in use.
            (
                Route::WriteThread {
                    offset_bytes,
                    flags,
                },
                Ok(()),
                Some(inbox),
            ) => {
                Arc::clone(inbox).post(WriteTask {
                    ticket: self,
                    buffer,
                    offset_bytes,
                    len_bytes,
                    flags,
                    area,
                });
            }
            (Route::Worker { .. }, Ok(()), _) => {
                self.finish(buffer, DoneKind::Device(cell.record.written()));
            }
            _ => self.finish(buffer, DoneKind::Crypt(result)),
        }
    }

    /// Posts the result and frees the cell.
    pub(crate) fn finish(mut self, buffer: Option<SlotBuffer>, result: DoneKind) {
        self.post(buffer, result);
        std::mem::forget(self);
    }

    /// As `finish`; the ticket must not be used again, nor dropped.
    fn post(&mut self, buffer: Option<SlotBuffer>, result: DoneKind) {
        let (table, cell) = self.table();
        // SAFETY: the ticket is the exclusive right to the payload, which leaves the cell here.
        let payload = unsafe { &mut *cell.payload.get() }.take();
        let (token, handed_off_ns) = payload.map_or((0, 0), |p| (p.token, p.handed_off_ns));
        let done = Done {
            token,
            buffer,
            result,
            cipher_ns: cell.record.cipher_ns(),
            wait_ns: cell.record.wait_ns(handed_off_ns),
            device_ns: cell.record.device_ns(),
        };
        table.context.mailbox.post(self.cell, done);
        // The last access: the lane may reuse the cell, or free the table, from here on. No
        // reference into the table is an argument of a function that is still running.
        cell.busy.store(false, Ordering::Release);
    }

    /// The table and the ticket's cell. Not to be used after `busy` has been cleared.
    fn table<'a>(&self) -> (&'a TaskTable, &'a Cell) {
        // SAFETY: a ticket keeps its table alive until it clears `busy` (module documentation).
        let table = unsafe { self.table.as_ref() };
        (table, &table.cells[self.cell as usize])
    }

    fn payload_mut(&mut self) -> Option<&mut Payload> {
        let (_, cell) = self.table();
        // SAFETY: the ticket is the exclusive right to the payload, borrowed through `&mut self`.
        let payload = unsafe { &mut *cell.payload.get() };
        payload.as_mut()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let buffer = self.payload_mut().and_then(|payload| payload.buffer.take());
        self.post(buffer, DoneKind::Device(Err(Errno::EIO)));
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("cell", &self.cell).finish()
    }
}

impl Cell {
    /// Makes a free cell a running one. Only for the table's owner, on a cell that is not busy.
    fn fill(&self, payload: Payload) {
        debug_assert!(!self.busy.load(Ordering::Relaxed), "the cell must be free");
        self.busy.store(true, Ordering::Relaxed);
        // SAFETY: the cell is free, so nobody else looks at the payload; the queue that carries the
        // parts publishes this write.
        unsafe { *self.payload.get() = Some(payload) };
    }
}
