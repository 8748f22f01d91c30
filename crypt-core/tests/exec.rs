//! The worker side from outside: every hand-off comes back once, with the bytes that one call of
//! the cipher gives, whatever the split, the load, or the moment of shutdown.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a set-up that fails is a failed test")]

mod exec_support;

use std::num::{NonZeroU8, NonZeroUsize};
use std::sync::Arc;

use crypt_core::buffer::{Area, SlotBuffer};
use crypt_core::error::{Errno, ErrorKind};
use crypt_core::exec::{
    DoneKind, Lane, Pinning, Route, Source, Work, WorkerPool, Writes, run_span,
};
use crypt_core::policy::Direction;
use crypt_core::request::Flags;
use crypt_core::units::{SectorIndex, SectorSize};
use exec_support::{AddressCipher, GateCipher, config, encrypt, pattern, pool, wait_for};
use proptest::prelude::*;

const CRYPT_OK: DoneKind = DoneKind::Crypt(Ok(()));

fn slot(area_len: usize) -> SlotBuffer {
    SlotBuffer::allocate(1, area_len).unwrap().remove(0)
}

#[test]
fn no_wake_up_is_lost_over_many_sleeps_on_both_sides() {
    // Without spinning both sides sleep each time, which is where a wake-up can be lost.
    let mut settings = config(2);
    settings.spin_ns = 0;
    let pool = WorkerPool::start(&settings).unwrap();
    let cipher = Arc::new(AddressCipher(SectorSize::B512));
    let threads: Vec<_> = (0..2_u64)
        .map(|thread| {
            let mut lane = Lane::open(&pool, cipher.clone(), 4, Writes::Return).unwrap();
            std::thread::spawn(move || {
                let mut buffers = SlotBuffer::allocate(4, 4096).unwrap();
                for round in 0..5_000_u64 {
                    let works = 1 + (round + thread) % 4;
                    for token in 0..works {
                        let mut work = encrypt(token, 2048, buffers.pop().unwrap());
                        work.parts = NonZeroU8::new(1 + (round % 4) as u8).unwrap();
                        lane.hand_off(work).unwrap();
                    }
                    for done in wait_for(&mut lane, works as usize) {
                        assert_eq!(done.result, CRYPT_OK);
                        buffers.push(done.buffer.unwrap());
                    }
                    assert_eq!(lane.outstanding(), 0);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let stats = pool.stats();
    assert!(stats.wake_ups > 0, "{stats:?}");
    assert_eq!(pool.load().queued_bytes, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_gives_the_bytes_of_one_call(
        size in prop::sample::select(SectorSize::ALL.to_vec()),
        sectors in 1_usize..40,
        parts in 1_u8..=60,
        first in 0_u64..1 << 40,
        encrypting: bool,
        source in prop::sample::select(vec![
            Source::Area(Area::Data), Source::Area(Area::Bounce), Source::Zeroes,
        ]),
        target in prop::sample::select(vec![Area::Data, Area::Bounce]),
        assists in 0_usize..4,
    ) {
        let cipher = Arc::new(AddressCipher(size));
        let mut lane = Lane::open(&pool(2), cipher.clone(), 1, Writes::Return).unwrap();
        let len = sectors * size.bytes();
        let mut buffer = slot(len);
        let area_len = buffer.area_len();
        buffer.area_mut(Area::Data).copy_from_slice(&pattern(area_len, 3));
        buffer.area_mut(Area::Bounce).copy_from_slice(&pattern(area_len, 77));
        let mut expected = slot(len);
        expected.area_mut(Area::Data).copy_from_slice(buffer.area(Area::Data));
        expected.area_mut(Area::Bounce).copy_from_slice(buffer.area(Area::Bounce));
        let work = Work {
            direction: if encrypting { Direction::Encrypt } else { Direction::Decrypt },
            first: SectorIndex::new(first << size.shift()),
            source,
            target,
            parts: NonZeroU8::new(parts).unwrap(),
            ..encrypt(7, len as u32, buffer)
        };
        run_span(&*cipher, &work.span(), &mut expected).unwrap();
        lane.hand_off(work).unwrap();
        for _ in 0..assists {
            lane.assist();
        }
        let done = wait_for(&mut lane, 1).remove(0);
        let buffer = done.buffer.unwrap();
        prop_assert_eq!(done.token, 7);
        prop_assert_eq!(done.result, CRYPT_OK);
        prop_assert!(buffer.area(Area::Data) == expected.area(Area::Data));
        prop_assert!(buffer.area(Area::Bounce) == expected.area(Area::Bounce));
    }
}

#[test]
fn a_panic_in_one_part_fails_the_work_with_eio_and_the_workers_live_on() {
    let cipher = Arc::new(GateCipher::with_bad_sector(5));
    cipher.open();
    let pool = pool(2);
    let mut lane = Lane::open(&pool, cipher.clone(), 1, Writes::Return).unwrap();
    let mut buffer = slot(4096);
    for _ in 0..20 {
        let mut work = encrypt(1, 4096, buffer);
        work.parts = NonZeroU8::new(8).unwrap();
        lane.hand_off(work).unwrap();
        let done = wait_for(&mut lane, 1).remove(0);
        assert_eq!(done.result, DoneKind::Crypt(Err(Errno::EIO)));
        lane.hand_off(encrypt(2, 2048, done.buffer.unwrap()))
            .unwrap();
        let done = wait_for(&mut lane, 1).remove(0);
        assert_eq!(done.result, CRYPT_OK);
        buffer = done.buffer.unwrap();
    }
    let work = encrypt(3, 4096, buffer);
    assert_eq!(
        run_span(&*cipher, &work.span(), &mut slot(4096)),
        Err(Errno::EIO)
    );
    assert_eq!(pool.load().workers, 2);
}

#[test]
fn nothing_is_posted_before_all_parts_have_ended() {
    let cipher = Arc::new(GateCipher::default());
    let pool = pool(2);
    let mut lane = Lane::open(&pool, cipher.clone(), 1, Writes::Return).unwrap();
    let mut work = encrypt(1, 4096, slot(4096));
    work.parts = NonZeroU8::new(3).unwrap();
    lane.hand_off(work).unwrap();
    let mut done = Vec::with_capacity(1);
    lane.collect(&mut done);
    assert!(done.is_empty(), "the gate is shut");
    cipher.open();
    assert_eq!(wait_for(&mut lane, 1).len(), 1);
    let stats = pool.stats();
    assert_eq!(stats.parts_run + stats.parts_assisted, 3);
}

#[test]
fn a_full_pool_a_full_lane_and_malformed_work_are_given_back() {
    let cipher = Arc::new(GateCipher::default());
    let mut settings = config(1);
    settings.queue_parts = NonZeroUsize::new(2).unwrap();
    let pool = WorkerPool::start(&settings).unwrap();
    let mut lane = Lane::open(&pool, cipher.clone(), 8, Writes::Return).unwrap();
    let mut buffers = SlotBuffer::allocate(8, 4096).unwrap();
    let mut accepted = 0;
    let refused = loop {
        match lane.hand_off(encrypt(accepted, 512, buffers.pop().unwrap())) {
            Ok(()) => accepted += 1,
            Err(work) => break work,
        }
    };
    // Two wait, and a third is at the worker if it was quick.
    assert!((2..=3).contains(&accepted), "{accepted}");
    assert_eq!(refused.token, accepted, "the work comes back as it was");
    let mut too_many_parts = encrypt(9, 4096, refused.buffer);
    too_many_parts.parts = NonZeroU8::new(3).unwrap();
    let returned = lane.hand_off(too_many_parts).unwrap_err();

    cipher.open();
    assert_eq!(
        wait_for(&mut lane, accepted as usize).len(),
        accepted as usize
    );

    let mut buffer = returned.buffer;
    for broken in [0, 100, 8192] {
        let work = lane.hand_off(encrypt(1, broken, buffer)).unwrap_err();
        buffer = work.buffer;
    }
    let mut unroutable = encrypt(1, 512, buffer);
    unroutable.route = Route::WriteThread {
        offset_bytes: 0,
        flags: Flags::empty(),
    };
    buffer = lane.hand_off(unroutable).unwrap_err().buffer;

    let mut narrow = Lane::open(&pool, cipher, 1, Writes::Return).unwrap();
    narrow.hand_off(encrypt(1, 512, buffer)).unwrap();
    let work = narrow
        .hand_off(encrypt(2, 512, buffers.pop().unwrap()))
        .unwrap_err();
    assert_eq!(work.token, 2, "one work is out until it is collected");
}

#[test]
fn shutdown_completes_what_is_queued_and_refuses_the_rest() {
    let cipher = Arc::new(GateCipher::default());
    let pool = pool(1);
    let mut lane = Lane::open(&pool, cipher.clone(), 16, Writes::Return).unwrap();
    let mut buffers = SlotBuffer::allocate(17, 4096).unwrap();
    for token in 0..16 {
        let mut work = encrypt(token, 4096, buffers.pop().unwrap());
        work.parts = NonZeroU8::new(4).unwrap();
        lane.hand_off(work).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| pool.shutdown());
        cipher.open();
    });
    let mut done = Vec::with_capacity(32);
    lane.collect(&mut done);
    assert_eq!(done.len(), 16);
    assert!(done.iter().all(|done| done.result == CRYPT_OK));
    assert_eq!(pool.load().workers, 0);
    assert!(
        lane.hand_off(encrypt(1, 512, buffers.pop().unwrap()))
            .is_err()
    );
}

#[test]
fn a_hand_off_that_races_with_the_shutdown_still_comes_back() {
    let cipher = Arc::new(AddressCipher(SectorSize::B512));
    for _ in 0..200 {
        let pool = pool(2);
        let mut lane = Lane::open(&pool, cipher.clone(), 8, Writes::Return).unwrap();
        let buffers = SlotBuffer::allocate(8, 4096).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| pool.shutdown());
            let accepted = buffers
                .into_iter()
                .filter_map(|buffer| lane.hand_off(encrypt(1, 512, buffer)).ok())
                .count();
            assert_eq!(wait_for(&mut lane, accepted).len(), accepted);
        });
    }
}

#[test]
fn dropping_a_lane_waits_for_its_work_and_frees_its_memory() {
    let cipher = Arc::new(GateCipher::default());
    let pool = pool(1);
    let mut lane = Lane::open(&pool, cipher.clone(), 4, Writes::Return).unwrap();
    for buffer in SlotBuffer::allocate(4, 4096).unwrap() {
        lane.hand_off(encrypt(1, 4096, buffer)).unwrap();
    }
    std::thread::scope(|scope| {
        let dropper = scope.spawn(|| drop(lane));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!dropper.is_finished(), "the works are still held up");
        cipher.open();
    });
    let stats = pool.stats();
    assert_eq!((stats.parts_run, pool.load().queued_bytes), (4, 0));
}

#[test]
fn a_queue_can_run_what_it_handed_off_itself() {
    let cipher = Arc::new(GateCipher::default());
    let pool = pool(1);
    let mut lane = Lane::open(&pool, cipher.clone(), 3, Writes::Return).unwrap();
    assert!(!lane.assist(), "nothing is queued");
    // The worker is held up with one part; the others can only be run here.
    let mut buffers = SlotBuffer::allocate(2, 4096).unwrap();
    lane.hand_off(encrypt(0, 512, buffers.pop().unwrap()))
        .unwrap();
    while pool.load().queued_bytes > 0 {
        std::thread::yield_now();
    }
    let free = Arc::new(AddressCipher(SectorSize::B512));
    let mut other = Lane::open(&pool, free, 3, Writes::Return).unwrap();
    let mut work = encrypt(1, 4096, buffers.pop().unwrap());
    work.parts = NonZeroU8::new(4).unwrap();
    other.hand_off(work).unwrap();
    assert_eq!(pool.load().queued_bytes, 4096);
    assert_eq!(
        (0..9).take_while(|_| lane.assist()).count(),
        4,
        "of any lane"
    );
    let mut done = Vec::with_capacity(1);
    other.collect(&mut done);
    assert_eq!((done[0].token, done[0].result), (1, CRYPT_OK));
    assert_eq!(pool.stats().parts_assisted, 4);
    cipher.open();
}

#[test]
fn collect_never_grows_the_vector() {
    let cipher = Arc::new(AddressCipher(SectorSize::B512));
    let mut lane = Lane::open(&pool(1), cipher, 8, Writes::Return).unwrap();
    for buffer in SlotBuffer::allocate(8, 4096).unwrap() {
        lane.hand_off(encrypt(1, 512, buffer)).unwrap();
    }
    let mut done = Vec::with_capacity(3);
    let capacity = done.capacity();
    let mut collected = 0;
    while collected < 8 {
        lane.collect(&mut done);
        assert_eq!(done.capacity(), capacity);
        collected += done.len();
        done.clear();
    }
}

#[test]
fn times_of_a_work_are_measured() {
    let cipher = Arc::new(GateCipher::default());
    let mut lane = Lane::open(&pool(1), cipher.clone(), 2, Writes::Return).unwrap();
    let mut buffers = SlotBuffer::allocate(2, 4096).unwrap();
    lane.hand_off(encrypt(0, 512, buffers.pop().unwrap()))
        .unwrap();
    lane.hand_off(encrypt(1, 512, buffers.pop().unwrap()))
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    cipher.open();
    let done = wait_for(&mut lane, 2);
    // The first ran while the gate was shut; the second waited behind it.
    assert!(
        done[0].cipher_ns + done[0].wait_ns >= 15_000_000,
        "{:?}",
        done[0]
    );
    assert!(done[1].wait_ns >= 15_000_000, "{:?}", done[1]);
}

#[test]
fn same_cpu_work_runs_on_the_worker_of_the_cpu_that_handed_it_off() {
    let mut settings = config(2);
    settings.pinning = Pinning::EachCpu;
    let pinned = WorkerPool::start(&settings).unwrap();
    let cipher = Arc::new(AddressCipher(SectorSize::B512));
    for (pool, misses) in [(pinned, 0), (pool(2), 1)] {
        let mut lane = Lane::open(&pool, cipher.clone(), 1, Writes::Return).unwrap();
        let mut work = encrypt(1, 512, slot(4096));
        work.same_cpu = true;
        lane.hand_off(work).unwrap();
        assert_eq!(wait_for(&mut lane, 1)[0].result, CRYPT_OK);
        let cpus = std::thread::available_parallelism().unwrap().get();
        if cpus <= 2 {
            assert_eq!(pool.stats().same_cpu_missed, misses);
        }
    }
}

#[test]
fn settings_that_cannot_be_had_are_refused_by_name() {
    let mut settings = config(1);
    settings.nice = 40;
    let error = WorkerPool::start(&settings).unwrap_err();
    assert!(error.to_string().contains("-20 to 19"), "{error}");
    for cpus in [vec![], vec![100_000]] {
        settings.nice = 0;
        settings.pinning = Pinning::Cpus(cpus);
        let error = WorkerPool::start(&settings).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    let cipher = Arc::new(AddressCipher(SectorSize::B512));
    let error = Lane::open(&pool(1), cipher, 0, Writes::Return).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}
