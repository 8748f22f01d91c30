//! An embedder's own event loop drives the pure pipeline: its io_uring, its memory, its clock.
//!
//! `cargo run --release -p crypt-core --example external_ring`
//!
//! Nothing of the library runs here but the state machine and the cipher. A program that has a ring
//! already puts [`Action::Device`] on it beside its other work, and feeds the completions back.
//!
//! The one unsafe operation is the ring's own: the kernel writes to memory that `slots` owns, and
//! `slots` outlives the ring's last completion, which `main` waits for.

use std::error::Error;
use std::os::fd::AsRawFd;
use std::time::Instant;

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::cipher::SectorCipher;
use crypt_core::error::Errno;
use crypt_core::exec::{PoolLoad, run_span};
use crypt_core::key::Key;
use crypt_core::pipeline::{
    Action, ActionBuffer, Event, Pipeline, PipelineConfig, Token, Transfer,
};
use crypt_core::policy::{Costs, PolicySpec};
use crypt_core::request::{Op, Request};
use crypt_core::spec::CipherSpec;
use crypt_core::units::{ByteLength, SectorIndex};
use io_uring::{IoUring, opcode, types};

const DEPTH: u32 = 8;
const BLOCK: u32 = 4096;
const BLOCKS: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let file = tempfile()?;
    let mut host = Host::new(file)?;
    host.run(Op::Write)?;
    host.run(Op::Read)?;
    println!("{BLOCKS} blocks written and read back through an external ring");
    Ok(())
}

fn tempfile() -> std::io::Result<std::fs::File> {
    let path = std::env::temp_dir().join(format!("external-ring-{}", std::process::id()));
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    file.set_len(BLOCKS * u64::from(BLOCK))?;
    Ok(file)
}

/// The embedder: it owns the ring, the file, the memory and the time.
struct Host {
    ring: IoUring,
    file: std::fs::File,
    slots: Vec<SlotBuffer>,
    cipher: std::sync::Arc<dyn SectorCipher>,
    pipeline: Pipeline,
    actions: ActionBuffer,
    events: Vec<Event>,
    start: Instant,
}

impl Host {
    fn new(file: std::fs::File) -> Result<Self, Box<dyn Error>> {
        let config = PipelineConfig {
            depth: DEPTH,
            slot_bytes: BLOCK,
            volume_bytes: BLOCKS * u64::from(BLOCK),
            data_offset_bytes: 0,
            block_bytes: 512,
            device_block_bytes: 512,
            crypto_sector_bytes: 512,
            allow_discards: false,
            read_only: false,
            worker_writes: false,
        };
        let key = Key::from_bytes(&[[1; 32], [2; 32]].concat())?;
        Ok(Self {
            ring: IoUring::new(DEPTH)?,
            file,
            slots: SlotBuffer::allocate(DEPTH, BLOCK as usize)?,
            cipher: "aes-xts-plain64".parse::<CipherSpec>()?.build(&key, None)?,
            pipeline: Pipeline::new(config, PolicySpec::Inline.build(), Costs::default())?,
            actions: ActionBuffer::for_depth(DEPTH),
            events: Vec::with_capacity(2 * DEPTH as usize),
            start: Instant::now(),
        })
    }

    /// Writes or reads and checks every block, as many at once as there are slots.
    fn run(&mut self, op: Op) -> Result<(), Box<dyn Error>> {
        let mut next = 0;
        while next < BLOCKS || self.pipeline.in_flight() > 0 || !self.events.is_empty() {
            while next < BLOCKS {
                let Some(token) = self.pipeline.claim() else {
                    break;
                };
                self.slots[token.index()]
                    .area_mut(Area::Data)
                    .fill(next as u8);
                let sector = SectorIndex::new(next * u64::from(BLOCK) / 512);
                let request = Request::new(op, sector, ByteLength::new(BLOCK.into()));
                let submitted_ns = self.now_ns();
                self.events.push(Event::Submit {
                    token,
                    request,
                    submitted_ns,
                    in_place: false,
                });
                next += 1;
            }
            self.turn()?;
        }
        Ok(())
    }

    /// One turn of the embedder's loop: a step, its actions, and the completions that came in.
    fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        let now_ns = self.now_ns();
        self.pipeline.step(
            now_ns,
            &self.events,
            &PoolLoad::default(),
            &mut self.actions,
        );
        self.events.clear();
        let actions = std::mem::take(&mut self.actions);
        for action in actions.actions() {
            self.act(action)?;
        }
        self.actions = actions;
        if self.pipeline.in_flight() > 0 {
            self.ring.submit_and_wait(1)?;
        }
        for entry in self.ring.completion() {
            let token = Token::from_bits(entry.user_data());
            let result =
                u64::try_from(entry.result()).map_err(|_| Errno::from_raw(-entry.result()));
            self.events.push(Event::DeviceDone { token, result });
        }
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), Box<dyn Error>> {
        match *action {
            Action::Crypt { token, span } => {
                let start_ns = self.now_ns();
                run_span(self.cipher.as_ref(), &span, &mut self.slots[token.index()])?;
                let end_ns = self.now_ns();
                self.pipeline
                    .record_inline(token, end_ns, end_ns - start_ns);
            }
            Action::Device { token, transfer } => self.push(token, &transfer)?,
            Action::Complete { token, result } => {
                result?;
                let now_ns = self.now_ns();
                if let Some((request, _timing)) = self.pipeline.finish(token, now_ns) {
                    let block = request.sector.get() * 512 / u64::from(BLOCK);
                    let data = self.slots[token.index()].area(Area::Data);
                    assert!(
                        data.iter().all(|&byte| byte == block as u8),
                        "block {block}"
                    );
                }
                self.pipeline.release(token);
            }
            Action::Offload { .. } => return Err("there are no workers to offload to".into()),
        }
        Ok(())
    }

    fn push(&mut self, token: Token, transfer: &Transfer) -> Result<(), Box<dyn Error>> {
        let at = transfer.area_offset_bytes as usize;
        let memory = &mut self.slots[token.index()].area_mut(transfer.area)[at..];
        let (address, len) = (memory.as_mut_ptr(), transfer.len_bytes as u32);
        let fd = types::Fd(self.file.as_raw_fd());
        let entry = match transfer.op {
            Op::Read => opcode::Read::new(fd, address, len)
                .offset(transfer.offset_bytes)
                .build(),
            Op::Write => opcode::Write::new(fd, address, len)
                .offset(transfer.offset_bytes)
                .build(),
            op => return Err(format!("this example does no {op:?}").into()),
        };
        let entry = entry.user_data(token.to_bits());
        // SAFETY: `address` points into `self.slots`, which lives until `main` has seen every
        // completion; the slot is not touched before its `DeviceDone` is fed back.
        unsafe { self.ring.submission().push(&entry) }?;
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}
