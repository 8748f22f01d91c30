//! Handed-off work on its way: from an issuer to the workers, on to a write thread, and back as mail.

#![forbid(unsafe_code)]

use crypt_core::buffer::Area;
use crypt_core::exec::{Route, Span};
use crypt_core::pipeline::{Event as PipelineEvent, Token, Transfer};
use crypt_core::policy::Direction;
use crypt_core::request::Op;

use super::agenda::Actor;
use super::pool::Part;
use super::scene::Scene;

/// What became of handed-off work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mail {
    pub(super) event: PipelineEvent,
    /// Memory of its slot.
    pub(super) slot_bytes: u64,
    /// The CPU that wrote most of the slot last.
    pub(super) written_on: Option<usize>,
}

/// A write on its way through a write thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    pub(super) issuer: usize,
    pub(super) token: Token,
    pub(super) transfer: Transfer,
    pub(super) cipher_ns: u64,
    pub(super) wait_ns: u64,
    /// The CPU that wrote the ciphertext last.
    pub(super) written_on: usize,
}

/// Handed-off work of one slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    token: Token,
    parts_left: u32,
    cipher_ns: u64,
    wait_ns: u64,
    len_bytes: u32,
    /// Those that the issuer's own CPU has done.
    home_bytes: u32,
    has_started: bool,
    device_ns: u64,
    route: Route,
}

impl Scene<'_> {
    /// Hands work of an issuer to the pool; what waking sleepers costs the issuer, or `None` where the pool is
    /// full.
    pub(super) fn hand_off(
        &mut self,
        issuer: usize,
        token: Token,
        span: &Span,
        parts: u32,
        route: Route,
    ) -> Option<f64> {
        if !self.pool.has_room(parts as usize) {
            return None;
        }
        let cpu = self.cores.cpu(issuer);
        let encrypts = span.direction == Direction::Encrypt;
        let copies = self.devices[issuer % self.devices.len()].copies(self.machine.device.copies);
        self.tasks[issuer][token.index()] = Some(Task {
            token,
            parts_left: parts,
            cipher_ns: 0,
            wait_ns: 0,
            len_bytes: span.len_bytes,
            home_bytes: 0,
            has_started: false,
            device_ns: 0,
            route,
        });
        let workers = self.writers_from - self.workers_from;
        let writes = copies && matches!(route, Route::Worker { .. });
        let own = (self.rules.same_cpu && cpu < workers).then_some(cpu);
        let len =
            |part: u32| (u64::from(span.len_bytes) * u64::from(part) / u64::from(parts)) as u32;
        for part in 0..parts {
            let part = Part {
                issuer,
                slot: token.index(),
                len_bytes: len(part + 1) - len(part),
                encrypts,
                write_ns: if writes {
                    self.copy_ns(u64::from(len(part + 1) - len(part)))
                } else {
                    0.0
                },
                written_on: (encrypts || copies).then_some(cpu),
                since_ns: self.now_ns,
            };
            self.pool.push(part, own);
        }
        self.rouse_lookers(parts as usize);
        Some(match own {
            Some(worker) => self.wake_worker(Some(worker)),
            None if self.rules.wake_each => (0..parts).map(|_| self.wake_worker(None)).sum(),
            None => self.wake_for_queued(),
        })
    }

    /// A thread begins with a part.
    pub(super) fn begin(&mut self, part: &Part) {
        if let Some(task) = &mut self.tasks[part.issuer][part.slot]
            && !task.has_started
        {
            task.has_started = true;
            task.wait_ns = self.now_ns - part.since_ns;
        }
    }

    /// A thread has done a part in `part_ns`; the last one sends the result on. What that costs
    /// the caller on top.
    pub(super) fn end(&mut self, actor: Actor, part: &Part, part_ns: u64) -> f64 {
        let Some(task) = &mut self.tasks[part.issuer][part.slot] else {
            return 0.0;
        };
        let device_ns = (part.write_ns as u64).min(part_ns);
        task.device_ns += device_ns;
        task.cipher_ns += part_ns - device_ns;
        task.parts_left -= 1;
        if self.cores.cpu(actor) == self.cores.cpu(part.issuer) {
            task.home_bytes += part.len_bytes;
        }
        if task.parts_left > 0 {
            return 0.0;
        }
        let task = *task;
        self.tasks[part.issuer][part.slot] = None;
        let written_on = if task.home_bytes > task.len_bytes / 2 {
            self.cores.cpu(part.issuer)
        } else {
            self.cores.cpu(actor)
        };
        self.deliver(part.issuer, &task, written_on)
    }

    fn deliver(&mut self, issuer: usize, task: &Task, written_on: usize) -> f64 {
        let Task {
            token,
            cipher_ns,
            wait_ns,
            device_ns,
            ..
        } = *task;
        let event = match task.route {
            Route::WriteThread {
                offset_bytes,
                flags,
            } => {
                let volume = issuer % self.posted.len().max(1);
                let transfer = Transfer {
                    op: Op::Write,
                    flags,
                    offset_bytes,
                    len_bytes: task.len_bytes.into(),
                    area: Area::Bounce,
                    area_offset_bytes: 0,
                };
                self.posted[volume].push_back(Posted {
                    issuer,
                    token,
                    transfer,
                    cipher_ns,
                    wait_ns,
                    written_on,
                });
                return self.notify(self.writers_from + volume);
            }
            Route::Worker { .. } => PipelineEvent::Written {
                token,
                result: Ok(task.len_bytes.into()),
                cipher_ns,
                wait_ns,
                device_ns,
            },
            Route::Return => PipelineEvent::CryptDone {
                token,
                result: Ok(()),
                cipher_ns,
                wait_ns,
            },
        };
        let slot_bytes = task.len_bytes.into();
        let written_on = Some(written_on);
        self.send(
            issuer,
            Mail {
                event,
                slot_bytes,
                written_on,
            },
        )
    }

    /// Tells an issuer how a write of its went that a write thread did; what that costs the
    /// caller on top.
    pub(super) fn written(&mut self, posted: &Posted) -> f64 {
        let event = PipelineEvent::Written {
            token: posted.token,
            result: Ok(posted.transfer.len_bytes),
            cipher_ns: posted.cipher_ns,
            wait_ns: posted.wait_ns,
            device_ns: 0,
        };
        let (slot_bytes, written_on) = (posted.transfer.len_bytes, Some(posted.written_on));
        self.send(
            posted.issuer,
            Mail {
                event,
                slot_bytes,
                written_on,
            },
        )
    }

    fn send(&mut self, issuer: usize, mail: Mail) -> f64 {
        self.mail[issuer].push_back(mail);
        self.notify(issuer)
    }
}
