//! A flag and an eventfd by which other threads wake the one thread that owns them.
//!
//! The owner calls [`WakeFd::arm`] before it sleeps and [`WakeFd::disarm`] after; everybody else
//! makes something visible (a queue entry, a flag) and then calls [`WakeFd::notify`]. Of all
//! notifications during one sleep exactly one writes to the eventfd; a notification while the
//! owner is awake costs a fence and a load.
//!
//! No wake-up is lost: the owner stores the flag, fences, and looks for work once more; a notifier
//! publishes work, fences, and loads the flag. One of the two sees the other.
#![forbid(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use super::sync::{AtomicBool, Ordering, fence};
use crate::error::{Errno, Error, Result};

/// The shared half: what notifiers see.
#[derive(Debug)]
pub(crate) struct WakeFd {
    sleeping: AtomicBool,
    fd: OwnedFd,
}

/// The owner's account of eventfd writes, so that a write that arrives late is drained later and
/// the usual end of a sleep costs one system call.
#[derive(Debug, Default)]
pub(crate) struct WakeAccount {
    promised: u64,
    drained: u64,
}

impl WakeFd {
    pub(crate) fn new() -> Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|errno| {
            Error::io("create an eventfd to wake a queue by", Errno::from(errno))
        })?;
        Ok(Self {
            sleeping: AtomicBool::new(false),
            fd,
        })
    }

    /// Announces a sleep. `false` where `is_ready` finds work after the announcement: don't sleep.
    pub(crate) fn arm(&self, account: &mut WakeAccount, is_ready: impl FnOnce() -> bool) -> bool {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let ready = is_ready();
        if ready {
            self.disarm(account);
        }
        !ready
    }

    /// Ends a sleep, and empties the eventfd where somebody has written to it.
    pub(crate) fn disarm(&self, account: &mut WakeAccount) {
        let nobody_notified = self.sleeping.swap(false, Ordering::AcqRel);
        account.promised += u64::from(!nobody_notified);
        if account.promised != account.drained {
            account.drained += self.drain();
        }
    }

    /// Wakes the owner where it sleeps. Publish what it should see first.
    pub(crate) fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::AcqRel) {
            // Can only fail when the counter would overflow, and then it is readable already.
            let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn drain(&self) -> u64 {
        let mut count = [0; 8];
        match rustix::io::read(&self.fd, &mut count) {
            Ok(_) => u64::from_ne_bytes(count),
            // The promised write has not arrived yet; the next sleep ends early and drains it.
            Err(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sleep_gets_one_write_however_many_notify() {
        let (wake, mut account) = (WakeFd::new().unwrap(), WakeAccount::default());
        wake.notify();
        assert_eq!(wake.drain(), 0, "nobody slept");
        assert!(wake.arm(&mut account, || false));
        wake.notify();
        wake.notify();
        assert_eq!(wake.drain(), 1);
    }

    #[test]
    fn a_write_that_comes_late_is_drained_by_the_next_sleep() {
        let (wake, mut account) = (WakeFd::new().unwrap(), WakeAccount::default());
        assert!(wake.arm(&mut account, || false));
        // A notifier has won the flag but not written yet.
        wake.sleeping.store(false, Ordering::Relaxed);
        wake.disarm(&mut account);
        rustix::io::write(&wake.fd, &1_u64.to_ne_bytes()).unwrap();
        assert!(wake.arm(&mut account, || false));
        wake.disarm(&mut account);
        assert_eq!(wake.drain(), 0);
        assert_eq!(account.promised, account.drained);
    }

    #[test]
    fn work_that_is_already_there_forbids_the_sleep() {
        let (wake, mut account) = (WakeFd::new().unwrap(), WakeAccount::default());
        assert!(!wake.arm(&mut account, || true));
        assert!(!wake.sleeping.load(Ordering::Relaxed));
    }
}
