//! A volume as a file: read and write any byte range, on the caller's thread.
//!
//! Ranges that don't start or end on a block boundary are read, changed and written back. Such a
//! read-modify-write excludes every other writer that goes through a [`VolumeIo`] of the same
//! volume, so that neighbours inside one block don't lose each other's bytes; writers that use a
//! [`Queue`] directly work in whole blocks and must not overlap it.

#![forbid(unsafe_code)]

use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Errno, Error, ErrorKind, Result};
use crate::queue::{Completion, Queue};
use crate::request::{Op, Request};
use crate::units::{ByteLength, SectorIndex};
use crate::volume::Volume;

/// File-like access to a volume. Several may be open at once, one per thread.
#[derive(Debug)]
pub struct VolumeIo {
    queue: Queue,
    done: Vec<Completion>,
    /// Where each slot's piece belongs in the caller's buffer.
    pieces: Vec<Piece>,
    size_bytes: u64,
    block_bytes: usize,
    rmw: Arc<RwLock<()>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    start: usize,
    len: usize,
}

impl VolumeIo {
    pub(crate) fn new(volume: &Volume, queue: Queue, rmw: Arc<RwLock<()>>) -> Self {
        let depth = queue.depth() as usize;
        Self {
            queue,
            done: Vec::with_capacity(depth),
            pieces: vec![Piece::default(); depth],
            size_bytes: volume.size_bytes(),
            block_bytes: volume.block_bytes() as usize,
            rmw,
        }
    }

    /// Capacity in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Fills `buf` with plaintext from `offset_bytes` on.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where the range ends beyond the volume, otherwise what the device
    /// said; `buf` is then in an unspecified state.
    pub fn read_at(&mut self, buf: &mut [u8], offset_bytes: u64) -> Result<()> {
        self.check(buf.len(), offset_bytes)?;
        let (head, body, tail) = self.split(buf.len(), offset_bytes);
        if head > 0 {
            self.read_edge(&mut buf[..head], offset_bytes)?;
        }
        self.transfer(
            Op::Read,
            &mut Side::Read(&mut buf[head..head + body]),
            offset_bytes + head as u64,
        )?;
        if tail > 0 {
            self.read_edge(&mut buf[head + body..], offset_bytes + (head + body) as u64)?;
        }
        Ok(())
    }

    /// Writes `buf` as ciphertext from `offset_bytes` on.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where the range ends beyond the volume, otherwise what the device
    /// said; the range then holds old and new blocks.
    pub fn write_at(&mut self, buf: &[u8], offset_bytes: u64) -> Result<()> {
        self.check(buf.len(), offset_bytes)?;
        let (head, body, tail) = self.split(buf.len(), offset_bytes);
        let rmw = Arc::clone(&self.rmw);
        if head > 0 {
            let _alone = rmw.write().unwrap_or_else(PoisonError::into_inner);
            self.write_edge(&buf[..head], offset_bytes)?;
        }
        if body > 0 {
            let _shared = rmw.read().unwrap_or_else(PoisonError::into_inner);
            let body = &buf[head..head + body];
            self.transfer(
                Op::Write,
                &mut Side::Write(body),
                offset_bytes + head as u64,
            )?;
        }
        if tail > 0 {
            let _alone = rmw.write().unwrap_or_else(PoisonError::into_inner);
            self.write_edge(&buf[head + body..], offset_bytes + (head + body) as u64)?;
        }
        Ok(())
    }

    /// Makes every completed write durable.
    ///
    /// # Errors
    /// What the device said.
    pub fn flush(&mut self) -> Result<()> {
        self.whole(Request::flush(), "flush the volume")
    }

    /// Makes a block-aligned range read back as zero plaintext, by writing encrypted zeros.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for a range that is not aligned or ends beyond the volume.
    pub fn write_zeroes_at(&mut self, len_bytes: u64, offset_bytes: u64) -> Result<()> {
        self.range_op(Op::WriteZeroes, len_bytes, offset_bytes)
    }

    /// Tells the device that a block-aligned range is unused. What it reads back as is undefined.
    ///
    /// # Errors
    /// `EOPNOTSUPP` unless the volume allows discards.
    pub fn discard_at(&mut self, len_bytes: u64, offset_bytes: u64) -> Result<()> {
        self.range_op(Op::Discard, len_bytes, offset_bytes)
    }

    fn range_op(&mut self, op: Op, len_bytes: u64, offset_bytes: u64) -> Result<()> {
        let sector = SectorIndex::from_bytes(offset_bytes).ok_or_else(|| {
            let what = format!("{op:?} at byte {offset_bytes}: not on a sector boundary");
            Error::new(ErrorKind::OutOfRange, what)
        })?;
        let request = Request::new(op, sector, ByteLength::new(len_bytes));
        self.whole(
            request,
            &format!("{op:?} of {len_bytes} bytes at {offset_bytes}"),
        )
    }

    fn whole(&mut self, request: Request, what: &str) -> Result<()> {
        let ticket = self.claim()?;
        self.queue.submit(ticket, request);
        self.queue.drain(&mut self.done)?;
        let mut result = Ok(());
        for completion in self.done.drain(..) {
            if let Err(errno) = completion.result {
                result = Err(Error::io(what, errno));
            }
            self.queue.release(completion.ticket);
        }
        result
    }

    fn check(&self, len: usize, offset_bytes: u64) -> Result<()> {
        let end = offset_bytes.checked_add(len as u64);
        if end.is_some_and(|end| end <= self.size_bytes) {
            return Ok(());
        }
        let size = self.size_bytes;
        let what = format!("{len} bytes at {offset_bytes} end beyond a volume of {size} bytes");
        Err(Error::new(ErrorKind::OutOfRange, what))
    }

    /// Lengths of the unaligned start, the aligned middle and the unaligned end of a range. A range
    /// inside one block is all start.
    fn split(&self, len: usize, offset_bytes: u64) -> (usize, usize, usize) {
        let block = self.block_bytes;
        let into = (offset_bytes % block as u64) as usize;
        let head = if into == 0 { 0 } else { len.min(block - into) };
        let body = (len - head) / block * block;
        (head, body, len - head - body)
    }

    /// Reads part of one block.
    fn read_edge(&mut self, buf: &mut [u8], offset_bytes: u64) -> Result<()> {
        let (start, into) = self.block_of(offset_bytes);
        let mut block = vec![0; self.block_bytes];
        self.transfer(Op::Read, &mut Side::Read(&mut block), start)?;
        buf.copy_from_slice(&block[into..into + buf.len()]);
        Ok(())
    }

    /// Changes part of one block; the caller holds the volume's write lock.
    fn write_edge(&mut self, buf: &[u8], offset_bytes: u64) -> Result<()> {
        let (start, into) = self.block_of(offset_bytes);
        let mut block = vec![0; self.block_bytes];
        self.transfer(Op::Read, &mut Side::Read(&mut block), start)?;
        block[into..into + buf.len()].copy_from_slice(buf);
        self.transfer(Op::Write, &mut Side::Write(&block), start)
    }

    fn block_of(&self, offset_bytes: u64) -> (u64, usize) {
        let into = offset_bytes % self.block_bytes as u64;
        (offset_bytes - into, into as usize)
    }

    /// Moves a block-aligned range in slot-sized pieces, as many in flight as the queue has slots.
    fn transfer(&mut self, op: Op, side: &mut Side<'_>, offset_bytes: u64) -> Result<()> {
        let (len, piece_bytes) = (side.len(), self.queue.max_request_bytes());
        let (mut next, mut failed) = (0, None);
        while next < len || self.queue.in_flight() > 0 {
            while next < len && failed.is_none() {
                let Some(ticket) = self.queue.claim() else {
                    break;
                };
                let piece = Piece {
                    start: next,
                    len: piece_bytes.min(len - next),
                };
                if let Side::Write(plain) = side {
                    let data = &mut self.queue.data_mut(&ticket)[..piece.len];
                    data.copy_from_slice(&plain[piece.start..piece.start + piece.len]);
                }
                self.pieces[ticket.index()] = piece;
                let sector = SectorIndex::new((offset_bytes + next as u64) / 512);
                let request = Request::new(op, sector, ByteLength::new(piece.len as u64));
                self.queue.submit_in_place(ticket, request);
                next += piece.len;
            }
            if failed.is_some() && self.queue.in_flight() == 0 {
                break;
            }
            self.queue.wait(&mut self.done, None)?;
            self.finish_pieces(side, offset_bytes, &mut failed);
        }
        failed.map_or(Ok(()), Err)
    }

    fn finish_pieces(
        &mut self,
        side: &mut Side<'_>,
        offset_bytes: u64,
        failed: &mut Option<Error>,
    ) {
        for completion in self.done.drain(..) {
            let Piece { start, len } = self.pieces[completion.ticket.index()];
            match (completion.result, &mut *side) {
                (Ok(_), Side::Read(plain)) => {
                    let data = &self.queue.data(&completion.ticket)[..len];
                    plain[start..start + len].copy_from_slice(data);
                }
                (Ok(_), Side::Write(_)) => {}
                (Err(errno), _) => {
                    failed.get_or_insert_with(|| {
                        piece_error(&completion, offset_bytes + start as u64, errno)
                    });
                }
            }
            self.queue.release(completion.ticket);
        }
    }

    fn claim(&mut self) -> Result<crate::queue::Ticket> {
        self.queue
            .claim()
            .ok_or_else(|| Error::io("claim a slot of the volume", Errno::EAGAIN))
    }
}

/// The caller's buffer, for either direction.
enum Side<'a> {
    Read(&'a mut [u8]),
    Write(&'a [u8]),
}

impl Side<'_> {
    fn len(&self) -> usize {
        match self {
            Side::Read(buf) => buf.len(),
            Side::Write(buf) => buf.len(),
        }
    }
}

fn piece_error(completion: &Completion, at_bytes: u64, errno: Errno) -> Error {
    let what = format!(
        "{:?} of {} bytes at {at_bytes}",
        completion.request.op, completion.request.len
    );
    Error::io(what, errno)
}
