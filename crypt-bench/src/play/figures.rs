//! What a thread records while it plays, and how that becomes what others see.

#![forbid(unsafe_code)]

use crypt_core::device::QueueFacts;
use crypt_core::error::Errno;
use crypt_core::request::Request;

use super::Played;
use crate::host::ThreadUse;
use crate::judge::StorageEvidence;
use crate::record::{DirectionRecorder, Times, Window};

/// A request in flight.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot {
    /// Its intended start.
    pub(super) due_ns: u64,
    /// Whether it was submitted after the warm-up: exactly what the stream counts is recorded.
    pub(super) counted: bool,
}

/// Recorders of a thread.
pub(super) struct Figures {
    pub(super) read: DirectionRecorder,
    pub(super) write: DirectionRecorder,
    pub(super) flush: DirectionRecorder,
    pub(super) intended: Option<[DirectionRecorder; 2]>,
    pub(super) lateness: Option<Times>,
    pub(super) errors: u64,
    pub(super) first_error: Option<(Request, Errno)>,
    pub(super) failed: bool,
}

impl Figures {
    /// Empty ones; with those from the intended start where requests have one.
    pub(super) fn new(window: &Window, with_intended: bool, with_lateness: bool) -> Self {
        let recorder = || DirectionRecorder::new(window);
        Self {
            read: recorder(),
            write: recorder(),
            flush: recorder(),
            intended: with_intended.then(|| [recorder(), recorder()]),
            lateness: with_lateness.then(Times::default),
            errors: 0,
            first_error: None,
            failed: false,
        }
    }

    /// Notes a failure; one that is not borne ends the thread.
    pub(super) fn fail(&mut self, request: Request, errno: Errno, borne: bool) {
        self.errors += 1;
        self.first_error.get_or_insert((request, errno));
        self.failed |= !borne;
    }

    /// Forgets all requests that were recorded. Allocates.
    pub(super) fn restart(&mut self, window: &Window) {
        let fresh = Self::new(window, self.intended.is_some(), self.lateness.is_some());
        *self = Self {
            errors: self.errors,
            first_error: self.first_error,
            failed: self.failed,
            ..fresh
        };
    }

    /// Gives everything recorded to `other`, and takes the recorders there, which are empty.
    pub(super) fn exchange(&mut self, other: &mut Played) {
        std::mem::swap(&mut other.read, &mut self.read);
        std::mem::swap(&mut other.write, &mut self.write);
        std::mem::swap(&mut other.flush, &mut self.flush);
        std::mem::swap(&mut other.intended, &mut self.intended);
        std::mem::swap(&mut other.lateness, &mut self.lateness);
        other.errors = self.errors;
        other.first_error = self.first_error;
        other.failed = self.failed;
    }

    /// The figures of a thread that ran like this.
    pub(super) fn into_played(
        self,
        window: Window,
        facts: QueueFacts,
        pinned: bool,
        usage: Option<ThreadUse>,
        depth: u32,
    ) -> Played {
        Played {
            window,
            read: self.read,
            write: self.write,
            flush: self.flush,
            intended: self.intended,
            lateness: self.lateness,
            errors: self.errors,
            first_error: self.first_error,
            verified: None,
            log: None,
            failed: self.failed,
            depth,
            steadiness: None,
            storage: StorageEvidence::default(),
            facts,
            pinned,
            usage,
        }
    }
}

impl Played {
    /// Adds what the same thread saw later.
    pub(super) fn absorb(&mut self, later: &Self) {
        self.window = later.window;
        self.read.absorb(&later.read);
        self.write.absorb(&later.write);
        self.flush.absorb(&later.flush);
        if let (Some(all), Some(more)) = (&mut self.intended, &later.intended) {
            all.iter_mut()
                .zip(more)
                .for_each(|(all, more)| all.absorb(more));
        }
        if let (Some(all), Some(more)) = (&mut self.lateness, &later.lateness) {
            all.absorb(more);
        }
        self.errors = later.errors;
        self.first_error = self.first_error.or(later.first_error);
        self.verified.clone_from(&later.verified);
        self.failed = later.failed;
        self.depth = later.depth;
        self.storage = later.storage;
        self.usage = later.usage;
    }

    /// The same thread, with nothing recorded.
    pub(super) fn emptied(&self) -> Self {
        let intended = self.intended.as_ref();
        Self {
            window: self.window,
            read: self.read.emptied(),
            write: self.write.emptied(),
            flush: self.flush.emptied(),
            intended: intended.map(|both| [both[0].emptied(), both[1].emptied()]),
            lateness: self.lateness.as_ref().map(|_| Times::default()),
            errors: 0,
            first_error: None,
            verified: None,
            log: None,
            failed: false,
            depth: self.depth,
            steadiness: None,
            storage: self.storage,
            facts: self.facts.clone(),
            pinned: self.pinned,
            usage: None,
        }
    }
}
