//! Where the system refuses io_uring, a file falls back to plain system calls and says so, or fails
//! when io_uring was insisted on. The refusal is a seccomp filter on the test's own thread, as in
//! containers.
//!
//! The only unsafe operation is the installation of that filter.

#![allow(
    clippy::unwrap_used,
    reason = "a test may fail by panic, its helpers too"
)]

use std::fs;
use std::path::Path;
use std::thread;

use crypt_core::device::file::{FileDevice, FileEngine, FileOptions};
use crypt_core::device::{Device, QueueConfig, QueueFacts};
use crypt_core::error::{Errno, Result};

#[test]
fn a_refused_ring_falls_back_only_where_that_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("device.img");
    fs::write(&path, [0; 4096]).unwrap();
    for errno in [libc::EPERM, libc::ENOSYS] {
        let path = path.clone();
        // The filter stays on its thread, which ends here.
        let checked = thread::spawn(move || {
            refuse_rings(errno);
            let facts = open(&path, FileEngine::Auto).unwrap();
            assert_eq!(facts.engine, "sync");
            assert!(facts.notes[0].contains("io_uring is refused"), "{facts:?}");
            let error = open(&path, FileEngine::IoUring).unwrap_err();
            assert_eq!(error.errno(), Errno::from_raw(errno));
            assert!(error.to_string().contains("sync engine"), "{error}");
        });
        assert!(checked.join().is_ok());
    }
    let facts = open(&path, FileEngine::Sync).unwrap();
    assert!(facts.notes.is_empty(), "what was chosen needs no excuse");
}

fn open(path: &Path, engine: FileEngine) -> Result<QueueFacts> {
    let options = FileOptions {
        engine,
        ..FileOptions::default()
    };
    let queue = FileDevice::open(path, options)?.open_queue(&QueueConfig {
        depth: 1,
        polled: false,
        slots: &[],
    })?;
    Ok(queue.facts())
}

/// Makes `io_uring_setup` fail with `errno` on this thread, for good.
fn refuse_rings(errno: i32) {
    rustix::thread::set_no_new_privs(true).unwrap();
    let rule = |code: u32, jt, jf, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load_number = rule(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0);
    let is_setup = libc::SYS_io_uring_setup as u32;
    let mut rules = [
        load_number,
        rule(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, is_setup),
        rule(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        rule(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: rules.len() as u16,
        filter: rules.as_mut_ptr(),
    };
    // SAFETY: the program and its rules live until the call returns; the kernel copies them.
    let result = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    assert_eq!(result, 0, "the filter is not installed");
}
