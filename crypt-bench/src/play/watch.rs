//! Looking at threads while they play, without holding them up.
//!
//! A thread that is asked hands over its recorders and goes on with empty ones: an exchange of
//! pointers under a lock that nobody else holds for long. Adding up, and making the next empty ones, is the
//! watcher's work, so the thread allocates nothing.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Played;

/// How long a watcher waits for threads that were asked.
const PATIENCE: Duration = Duration::from_millis(150);
/// How often it looks whether they have answered.
const LOOK: Duration = Duration::from_millis(2);

/// Somebody who looks at the threads from time to time.
pub struct Watch<'a> {
    /// How often.
    pub every: Duration,
    /// Gets what each thread has seen since its start, in the order of the players. Threads that have not
    /// begun are left out.
    pub look: &'a mut dyn FnMut(&[Option<Played>]),
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("every", &self.every).finish()
    }
}

/// Where one thread hands over.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// Which request of the watcher was the last.
    asked: AtomicU64,
    /// What it handed over, or what is empty for it to take.
    tray: Mutex<Tray>,
    /// The thread has ended, or never began.
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Tray {
    content: Option<Played>,
    /// Whether the content is the thread's, and not empty.
    full: bool,
}

impl Desk {
    /// Which request was the last; a thread hands over when this has changed.
    #[inline]
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Hands over by exchange, if something empty lies there.
    pub(super) fn exchange(&self, swap: impl FnOnce(&mut Played)) {
        let tray = &mut *self.tray();
        if let (Some(content), false) = (&mut tray.content, tray.full) {
            swap(content);
            tray.full = true;
        }
    }

    /// Puts something empty on the desk, for a thread that begins.
    pub(super) fn open(&self, empty: Played) {
        self.tray().content = Some(empty);
    }

    /// Closes the desk when dropped, however the thread ends.
    pub(super) fn closing(&self) -> Closing<'_> {
        Closing(self)
    }

    fn tray(&self) -> MutexGuard<'_, Tray> {
        self.tray.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_answered(&self) -> bool {
        let tray = self.tray();
        tray.full || tray.content.is_none() || self.closed.load(Ordering::Acquire)
    }

    /// Adds what was handed over to `total`.
    fn collect(&self, total: &mut Option<Played>) {
        let mut tray = self.tray();
        let Some(content) = tray.content.as_ref().filter(|_| tray.full) else {
            return;
        };
        let empty = content.emptied();
        let given = tray.content.replace(empty);
        tray.full = false;
        drop(tray);
        if let Some(given) = given {
            match total {
                Some(total) => total.absorb(&given),
                None => *total = Some(given),
            }
        }
    }
}

/// See [`Desk::closing`].
pub(super) struct Closing<'a>(&'a Desk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
    }
}

/// Watches until all desks are closed. Returns what was handed over.
pub(super) fn watch(desks: &[Desk], watch: &mut Watch<'_>) -> Vec<Option<Played>> {
    let mut totals: Vec<Option<Played>> = desks.iter().map(|_| None).collect();
    let mut next = Instant::now() + watch.every;
    while desks
        .iter()
        .any(|desk| !desk.closed.load(Ordering::Acquire))
    {
        let now = Instant::now();
        if now < next {
            std::thread::sleep((next - now).min(Duration::from_millis(20)));
            continue;
        }
        next += watch.every * (1 + (now - next).div_duration_f64(watch.every) as u32);
        for desk in desks {
            desk.asked.fetch_add(1, Ordering::Relaxed);
        }
        while now.elapsed() < PATIENCE && !desks.iter().all(Desk::has_answered) {
            std::thread::sleep(LOOK);
        }
        for (desk, total) in desks.iter().zip(&mut totals) {
            desk.collect(total);
        }
        (watch.look)(&totals);
    }
    for (desk, total) in desks.iter().zip(&mut totals) {
        desk.collect(total);
    }
    totals
}
