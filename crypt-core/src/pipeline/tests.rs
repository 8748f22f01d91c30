//! The state machine against a scripted device and workers, without any memory or cipher.

#![forbid(unsafe_code)]

use std::num::NonZeroU8;

use proptest::prelude::*;

use super::*;
use crate::exec::PoolLoad;
use crate::policy::{Glance, Job, Load, OffloadRules, WriteRoute};
use crate::units::{ByteLength, SectorIndex};

/// Places every job the same way.
#[derive(Debug)]
struct Always(Placement, OffloadRules);

impl Policy for Always {
    fn name(&self) -> String {
        "always".into()
    }
    fn place(&mut self, _: &[Job], _: &Load, placements: &mut [Placement]) {
        placements.fill(self.0);
    }
    fn observe(&mut self, _: &Outcome) {}
    fn offload_rules(&self) -> OffloadRules {
        self.1
    }
}

const SLOT: u32 = 16 << 10;
const DATA_OFFSET: u64 = 1 << 20;

fn config() -> PipelineConfig {
    PipelineConfig {
        depth: 4,
        slot_bytes: SLOT,
        volume_bytes: 1 << 20,
        data_offset_bytes: DATA_OFFSET,
        block_bytes: 4096,
        device_block_bytes: 512,
        crypto_sector_bytes: 4096,
        allow_discards: false,
        read_only: false,
        worker_writes: false,
    }
}

struct Bench {
    pipeline: Pipeline,
    actions: ActionBuffer,
    now_ns: u64,
}

impl Bench {
    fn new(config: PipelineConfig, placement: Placement, rules: OffloadRules) -> Self {
        let policy = Box::new(Always(placement, rules));
        Self {
            pipeline: Pipeline::new(config, policy, Costs::default()).unwrap(),
            actions: ActionBuffer::for_depth(config.depth),
            now_ns: 0,
        }
    }

    fn inline() -> Self {
        Self::new(config(), Placement::Inline, OffloadRules::default())
    }

    fn step(&mut self, events: &[Event]) -> Vec<Action> {
        self.now_ns += 10;
        let workers = PoolLoad {
            workers: 2,
            idle_workers: 2,
            ..PoolLoad::default()
        };
        self.pipeline
            .step(self.now_ns, events, &workers, &mut self.actions);
        for action in self.actions.actions() {
            if let Action::Crypt { token, .. } = *action {
                self.pipeline.record_inline(token, self.now_ns, 5);
            }
        }
        self.actions.actions().to_vec()
    }

    fn submit(&mut self, op: Op, sector: u64, len: u64) -> (Token, Vec<Action>) {
        let token = self.pipeline.claim().unwrap();
        let request = Request::new(op, SectorIndex::new(sector), ByteLength::new(len));
        let submitted_ns = self.now_ns;
        let event = Event::Submit {
            token,
            request,
            submitted_ns,
            in_place: false,
        };
        (token, self.step(&[event]))
    }
}

fn completed(actions: &[Action]) -> Option<Result<(), Errno>> {
    actions.iter().find_map(|action| match action {
        Action::Complete { result, .. } => Some(*result),
        _ => None,
    })
}

fn device(actions: &[Action]) -> Option<Transfer> {
    actions.iter().find_map(|action| match action {
        Action::Device { transfer, .. } => Some(*transfer),
        _ => None,
    })
}

#[test]
fn an_inline_write_is_encrypted_then_sent_from_the_bounce_area() {
    let mut bench = Bench::inline();
    let (token, actions) = bench.submit(Op::Write, 8, 8192);
    assert!(
        matches!(actions[0], Action::Crypt { span, .. } if span.len_bytes == 8192
        && span.target == Area::Bounce && span.first == SectorIndex::new(8))
    );
    let transfer = device(&actions).unwrap();
    assert_eq!(
        (transfer.offset_bytes, transfer.area),
        (DATA_OFFSET + 4096, Area::Bounce)
    );
    let actions = bench.step(&[Event::DeviceDone {
        token,
        result: Ok(8192),
    }]);
    assert_eq!(completed(&actions), Some(Ok(())));
    let (_, timing) = bench.pipeline.finish(token, bench.now_ns).unwrap();
    assert_eq!(
        (timing.cipher_ns, timing.placement),
        (5, Some(Placement::Inline))
    );
    assert!(timing.submitted_ns <= timing.issued_ns && timing.issued_ns <= timing.completed_ns);
}

#[test]
fn a_read_is_decrypted_only_when_all_of_it_has_arrived() {
    let mut bench = Bench::inline();
    let (token, actions) = bench.submit(Op::Read, 0, 8192);
    assert_eq!(device(&actions).unwrap().area, Area::Data);
    let actions = bench.step(&[Event::DeviceDone {
        token,
        result: Ok(4096 + 100),
    }]);
    let rest = device(&actions).unwrap();
    assert_eq!(
        (rest.offset_bytes, rest.len_bytes),
        (DATA_OFFSET + 4096, 4096)
    );
    assert_eq!(rest.area_offset_bytes, 4096);
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Crypt { .. }))
    );
    let actions = bench.step(&[Event::DeviceDone {
        token,
        result: Ok(4096),
    }]);
    assert!(matches!(actions[0], Action::Crypt { span, .. } if span.len_bytes == 8192));
    assert_eq!(completed(&actions), Some(Ok(())));
    assert_eq!(bench.pipeline.counters().short_transfers, 1);
}

#[test]
fn again_is_retried_with_a_bound_and_zero_bytes_is_an_error() {
    let mut bench = Bench::inline();
    let (token, _) = bench.submit(Op::Read, 0, 4096);
    let mut again = 0;
    let result = loop {
        let actions = bench.step(&[Event::DeviceDone {
            token,
            result: Err(Errno::EAGAIN),
        }]);
        if let Some(result) = completed(&actions) {
            break result;
        }
        assert!(device(&actions).is_some());
        again += 1;
        assert!(again < 1000);
    };
    assert_eq!((result, again > 8), (Err(Errno::EAGAIN), true));

    let (token, _) = bench.submit(Op::Read, 0, 4096);
    let actions = bench.step(&[Event::DeviceDone {
        token,
        result: Ok(0),
    }]);
    assert_eq!(completed(&actions), Some(Err(Errno::EIO)));
}

#[test]
fn a_transfer_that_never_reaches_a_whole_block_ends() {
    let mut bench = Bench::inline();
    let (token, mut actions) = bench.submit(Op::Read, 0, 4096);
    for _ in 0..1000 {
        if completed(&actions).is_some() {
            break;
        }
        actions = bench.step(&[Event::DeviceDone {
            token,
            result: Ok(100),
        }]);
    }
    assert_eq!(completed(&actions), Some(Err(Errno::EIO)));
}

#[test]
fn write_zeroes_longer_than_a_slot_is_written_in_chunks_of_encrypted_zeros() {
    let mut bench = Bench::inline();
    let total = 2 * u64::from(SLOT) + 4096;
    let (token, mut actions) = bench.submit(Op::WriteZeroes, 8, total);
    let mut written = 0;
    while completed(&actions).is_none() {
        assert!(matches!(actions[0], Action::Crypt { span, .. }
            if span.source == crate::exec::Source::Zeroes
            && span.first.get() == 8 + written / 512));
        let transfer = device(&actions).unwrap();
        assert_eq!(
            (transfer.op, transfer.offset_bytes),
            (Op::Write, DATA_OFFSET + 4096 + written)
        );
        written += transfer.len_bytes;
        actions = bench.step(&[Event::DeviceDone {
            token,
            result: Ok(transfer.len_bytes),
        }]);
    }
    assert_eq!((completed(&actions), written), (Some(Ok(())), total));
}

#[test]
fn requests_outside_the_volume_or_its_blocks_are_refused() {
    let cases = [
        (Op::Read, 1, 4096, Errno::EINVAL),
        (Op::Read, 0, 100, Errno::EINVAL),
        (Op::Read, 0, 0, Errno::EINVAL),
        (Op::Write, 2040, 8192, Errno::EINVAL),
        (Op::Write, u64::MAX - 7, 4096, Errno::EINVAL),
        (Op::Read, 0, u64::from(SLOT) + 4096, Errno::EINVAL),
        (Op::WriteZeroes, 8, u64::MAX, Errno::EINVAL),
        (Op::Discard, 0, 4096, Errno::EOPNOTSUPP),
    ];
    for (op, sector, len, errno) in cases {
        let mut bench = Bench::inline();
        let (_, actions) = bench.submit(op, sector, len);
        assert_eq!(
            completed(&actions),
            Some(Err(errno)),
            "{op:?} {sector} {len}"
        );
    }
    let read_only = PipelineConfig {
        read_only: true,
        ..config()
    };
    let mut bench = Bench::new(read_only, Placement::Inline, OffloadRules::default());
    let (_, actions) = bench.submit(Op::Write, 0, 4096);
    assert_eq!(completed(&actions), Some(Err(Errno::EROFS)));
}

#[test]
fn stale_and_doubled_events_are_ignored_and_counted() {
    let mut bench = Bench::inline();
    let (token, _) = bench.submit(Op::Read, 0, 4096);
    let done = Event::DeviceDone {
        token,
        result: Ok(4096),
    };
    assert_eq!(completed(&bench.step(&[done, done])), Some(Ok(())));
    assert_eq!(bench.step(&[done]), []);
    bench.pipeline.release(token);
    bench.pipeline.release(token);
    let event = Event::CryptDone {
        token,
        result: Ok(()),
        cipher_ns: 0,
        wait_ns: 0,
    };
    assert_eq!(bench.step(&[event]), []);
    assert_eq!(bench.pipeline.counters().stale_events, 4);
    assert_eq!(bench.pipeline.outstanding(), (0, 0));
}

/// A pipeline that offloads every job by a route.
fn routed(writes: WriteRoute, worker_writes: bool) -> Bench {
    let rules = OffloadRules {
        writes,
        ..OffloadRules::default()
    };
    let config = PipelineConfig {
        worker_writes,
        ..config()
    };
    Bench::new(config, Placement::Offload, rules)
}

fn written(token: Token, result: Result<u64, Errno>) -> Event {
    Event::Written {
        token,
        result,
        cipher_ns: 3,
        wait_ns: 1,
        device_ns: 2,
    }
}

fn route(actions: &[Action]) -> Route {
    match actions {
        [Action::Offload { route, .. }] => *route,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_routed_write_completes_where_it_was_brought() {
    for writes in [WriteRoute::Worker, WriteRoute::WriteThread] {
        let mut bench = routed(writes, true);
        let (token, actions) = bench.submit(Op::Write, 0, 4096);
        let offset_bytes = match route(&actions) {
            Route::Worker { offset_bytes, .. } if writes == WriteRoute::Worker => offset_bytes,
            Route::WriteThread { offset_bytes, .. } => offset_bytes,
            other => panic!("{other:?}"),
        };
        assert_eq!(offset_bytes, DATA_OFFSET);
        assert_eq!(bench.pipeline.outstanding(), (0, 1));
        // A short write is continued on the queue's own device, and so is one that is to be repeated.
        let actions = bench.step(&[written(token, Ok(512))]);
        assert_eq!(device(&actions).unwrap().len_bytes, 4096 - 512);
        let result = Err(Errno::EAGAIN);
        let actions = bench.step(&[Event::DeviceDone { token, result }]);
        assert_eq!(device(&actions).unwrap().len_bytes, 4096 - 512);
        let result = Ok(4096 - 512);
        let actions = bench.step(&[Event::DeviceDone { token, result }]);
        assert_eq!(completed(&actions), Some(Ok(())));
        let (_, timing) = bench.pipeline.finish(token, bench.now_ns).unwrap();
        assert_eq!((timing.cipher_ns, timing.wait_ns), (3, 1));
        assert!(timing.device_ns >= 2);
    }
}

#[test]
fn a_routed_write_that_fails_ends_with_its_error() {
    let mut bench = routed(WriteRoute::Worker, true);
    let (token, _) = bench.submit(Op::Write, 0, 4096);
    let actions = bench.step(&[written(token, Err(Errno::ENOSPC))]);
    assert_eq!(completed(&actions), Some(Err(Errno::ENOSPC)));
    let (token, _) = bench.submit(Op::Write, 0, 4096);
    let actions = bench.step(&[written(token, Ok(0))]);
    assert_eq!(completed(&actions), Some(Err(Errno::EIO)));
}

#[test]
fn writes_come_back_where_workers_cannot_write_and_reads_always_do() {
    let mut bench = routed(WriteRoute::Worker, false);
    let (token, actions) = bench.submit(Op::Write, 0, 4096);
    assert_eq!(route(&actions), Route::Return);
    // Nobody was asked to write.
    assert_eq!(bench.step(&[written(token, Ok(4096))]), []);
    assert_eq!(bench.pipeline.counters().stale_events, 1);
    let mut bench = routed(WriteRoute::Worker, true);
    let (token, _) = bench.submit(Op::Read, 0, 4096);
    let result = Ok(4096);
    let actions = bench.step(&[Event::DeviceDone { token, result }]);
    assert_eq!(route(&actions), Route::Return);
}

#[test]
fn contradictory_configurations_are_refused() {
    let broken = [
        PipelineConfig {
            depth: 0,
            ..config()
        },
        PipelineConfig {
            depth: MAX_DEPTH + 1,
            ..config()
        },
        PipelineConfig {
            block_bytes: 100,
            ..config()
        },
        PipelineConfig {
            slot_bytes: 6000,
            ..config()
        },
        PipelineConfig {
            device_block_bytes: 8192,
            ..config()
        },
        PipelineConfig {
            crypto_sector_bytes: 3000,
            ..config()
        },
        PipelineConfig {
            data_offset_bytes: u64::MAX,
            ..config()
        },
    ];
    for config in broken {
        let policy = Box::new(Always(Placement::Inline, OffloadRules::default()));
        assert!(
            Pipeline::new(config, policy, Costs::default()).is_err(),
            "{config:?}"
        );
    }
}

fn placements() -> impl Strategy<Value = Placement> {
    prop_oneof![
        Just(Placement::Inline),
        Just(Placement::Offload),
        (1..=255_u8).prop_map(|n| Placement::Split(NonZeroU8::new(n).unwrap())),
    ]
}

/// What the scripted device answers.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Full,
    Short(u64),
    Again,
    Fail,
}

fn answers() -> impl Strategy<Value = Answer> {
    prop_oneof![
        4 => Just(Answer::Full),
        2 => (1_u64..SLOT.into()).prop_map(Answer::Short),
        1 => Just(Answer::Again),
        1 => Just(Answer::Fail),
    ]
}

fn transferred(len: u64, answer: Answer) -> Result<u64, Errno> {
    match answer {
        Answer::Full => Ok(len),
        Answer::Short(n) => Ok(if len == 0 { 0 } else { n.min(len) }),
        Answer::Again => Err(Errno::EAGAIN),
        Answer::Fail => Err(Errno::EIO),
    }
}

/// Where on the device a successful transfer of a slot ended, and whose it was.
fn transfer_end(event: &Event, action: &Action) -> Option<(Token, u64)> {
    match (*event, *action) {
        (
            Event::DeviceDone {
                token,
                result: Ok(bytes),
            },
            Action::Device {
                transfer: Transfer { offset_bytes, .. },
                ..
            },
        )
        | (
            Event::Written {
                token,
                result: Ok(bytes),
                ..
            },
            Action::Offload {
                route: Route::Worker { offset_bytes, .. } | Route::WriteThread { offset_bytes, .. },
                ..
            },
        ) => Some((token, offset_bytes + bytes)),
        _ => None,
    }
}

fn answer(action: &Action, answer: Answer) -> Option<Event> {
    match *action {
        Action::Device { token, transfer } => {
            let result = transferred(transfer.len_bytes, answer);
            Some(Event::DeviceDone { token, result })
        }
        Action::Offload {
            token,
            span,
            route: Route::Worker { .. } | Route::WriteThread { .. },
            ..
        } => Some(written(token, transferred(span.len_bytes.into(), answer))),
        Action::Offload { token, .. } => {
            let result = if matches!(answer, Answer::Fail) {
                Err(Errno::EIO)
            } else {
                Ok(())
            };
            Some(Event::CryptDone {
                token,
                result,
                cipher_ns: 1,
                wait_ns: 1,
            })
        }
        Action::Crypt { .. } | Action::Complete { .. } => None,
    }
}

proptest! {
    /// Whatever device and workers answer, each request completes exactly once, a success means the
    /// whole range went through, and nothing stays counted as outstanding.
    #[test]
    fn every_request_completes_once(
        placement in placements(),
        writes in prop_oneof![
            Just(WriteRoute::Queue),
            Just(WriteRoute::Worker),
            Just(WriteRoute::WriteThread),
        ],
        worker_writes: bool,
        requests in prop::collection::vec((0..6_usize, 0..256_u64, 1..12_u64), 1..40),
        script in prop::collection::vec(answers(), 1..64),
    ) {
        let rules = OffloadRules { writes, ..OffloadRules::default() };
        let config = PipelineConfig { worker_writes, ..config() };
        let mut bench = Bench::new(config, placement, rules);
        let mut script = script.into_iter().cycle();
        let (mut submitted, mut over) = (0, 0);
        let mut events = Vec::new();
        // Where the last transfer of each slot ended on the device.
        let mut ends = [0; 4];
        let mut queue = requests.into_iter();
        loop {
            while let Some(token) = bench.pipeline.claim() {
                let Some((op, block, blocks)) = queue.next() else {
                    bench.pipeline.release(token);
                    break;
                };
                let (sector, len) = (SectorIndex::new(block * 8), ByteLength::new(blocks * 4096));
                let request = Request::new(Op::ALL[op], sector, len);
                events.push(Event::Submit { token, request, submitted_ns: 0, in_place: false });
                submitted += 1;
            }
            if events.is_empty() {
                break;
            }
            let actions = bench.step(&events);
            events.clear();
            for action in &actions {
                if let Action::Complete { token, result } = *action {
                    let (request, timing) = bench.pipeline.finish(token, bench.now_ns).unwrap();
                    if result.is_ok() && matches!(request.op, Op::Read | Op::Write | Op::WriteZeroes) {
                        let end = DATA_OFFSET + request.sector.get() * 512 + request.len.get();
                        prop_assert_eq!(ends[token.index()], end);
                    }
                    prop_assert!(timing.issued_ns <= timing.completed_ns);
                    bench.pipeline.release(token);
                    over += 1;
                }
                let event = answer(action, script.next().unwrap());
                let end = event.and_then(|event| transfer_end(&event, action));
                if let Some((token, end)) = end {
                    ends[token.index()] = end;
                }
                events.extend(event);
            }
        }
        prop_assert_eq!(submitted, over);
        prop_assert_eq!(bench.pipeline.in_flight(), 0);
        prop_assert_eq!(bench.pipeline.outstanding(), (0, 0));
        prop_assert_eq!(bench.pipeline.counters().stale_events, 0);
    }
}

/// Keeps every batch.
#[derive(Debug)]
struct Keeper;

impl Policy for Keeper {
    fn name(&self) -> String {
        "keeper".into()
    }
    fn keeps(&mut self, jobs: &[Job], glance: &Glance) -> bool {
        assert_eq!((jobs.len(), glance.in_flight), (1, 1));
        true
    }
    fn place(&mut self, _: &[Job], _: &Load, _: &mut [Placement]) {}
    fn observe(&mut self, _: &Outcome) {}
    fn offload_rules(&self) -> OffloadRules {
        OffloadRules::default()
    }
}

#[test]
fn workers_are_looked_at_now_and_then_where_the_policy_keeps_everything() {
    let mut bench = Bench::inline();
    bench.pipeline.set_policy(Box::new(Keeper));
    let mut looks = Vec::new();
    let token = bench.pipeline.claim().unwrap();
    let mut token = Some(token);
    for batch in 0..200 {
        let submitted = token.take().unwrap();
        let request = Request::new(Op::Read, SectorIndex::new(0), ByteLength::new(4096));
        let submit = Event::Submit {
            token: submitted,
            request,
            submitted_ns: batch,
            in_place: false,
        };
        let done = Event::DeviceDone {
            token: submitted,
            result: Ok(4096),
        };
        let Bench {
            pipeline, actions, ..
        } = &mut bench;
        actions.clear();
        for event in [submit, done] {
            pipeline.feed(batch, &event, actions);
        }
        let workers = PoolLoad {
            workers: 2,
            ..PoolLoad::default()
        };
        pipeline.place(
            batch,
            || {
                looks.push(batch);
                workers
            },
            actions,
        );
        assert!(completed(actions.actions()).is_some());
        assert!(pipeline.finish(submitted, batch).is_some());
        pipeline.release(submitted);
        token = pipeline.claim();
    }
    assert_eq!(looks, [0, 64, 128, 192]);
    assert_eq!(bench.pipeline.counters().inline, 200);
}
