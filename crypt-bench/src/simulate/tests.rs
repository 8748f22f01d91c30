//! What must hold of every simulation.

#![forbid(unsafe_code)]

use std::sync::atomic::AtomicBool;

use super::*;
use crate::definition::Definition;
use crate::definition::quantity::Rate;
use crate::matrix::{Facts, Matrix};
use crate::preset::Preset;
use crate::result::Rw;
use crate::testing::cell;

fn machine(cores: u32) -> Machine {
    let mut machine = Machine::parse(machine::PRESETS[0].1).unwrap();
    machine.cpu.cores = cores;
    machine
}

fn run(machine: &Machine, cell: &CellParams) -> Simulated {
    let never = AtomicBool::new(false);
    simulate(machine, cell, 1, &never).unwrap().unwrap()
}

fn short(policy: &str, rw: Rw, block_size_bytes: u64, depth: u32) -> CellParams {
    CellParams {
        rw,
        rwmixread_percent: match (rw.reads(), rw.writes()) {
            (true, true) => 50,
            (true, false) => 100,
            _ => 0,
        },
        runtime_ms: 20,
        ramp_ms: 5,
        ..cell(policy, block_size_bytes, depth)
    }
}

fn ios(simulated: &Simulated) -> u64 {
    simulated.read.ios() + simulated.write.ios()
}

#[test]
fn the_same_seed_gives_the_same_nanoseconds() {
    for policy in ["inline", "workqueue", "adaptive"] {
        let cell = CellParams {
            device: "model:nvme".to_owned(),
            ..short(policy, Rw::RandRw, 65_536, 8)
        };
        let stats = |cell: &CellParams| {
            let simulated = run(&machine(4), cell);
            simulated.read.stats(&simulated.window)
        };
        assert_eq!(stats(&cell), stats(&cell));
        let other = CellParams {
            seed: 2,
            ..cell.clone()
        };
        assert_ne!(stats(&cell), stats(&other));
    }
}

/// Every published table can be simulated on its machine, and comes out the same each time.
#[test]
fn every_preset_runs_on_its_machine_and_twice_the_same() {
    for name in Preset::names() {
        let preset = Preset::named(name).unwrap();
        let machine = Machine::named(&preset.plan.machine).unwrap();
        let cpus: Vec<u32> = (0..machine.cpus()).collect();
        let facts = Facts {
            cpus: &cpus,
            size_bytes: &|_| None,
            threads_per_core: Some(machine.cpu.threads_per_core),
        };
        let definition = preset.plan.simulation();
        let definition = definition.over(Definition::fallback().unwrap());
        let plan = Matrix::new(&definition, &facts).unwrap().plan();
        assert!(
            plan.iter().all(|cell| check(&machine, cell).is_ok()),
            "{name}"
        );
        let mut default = plan.into_iter().filter(|cell| cell.policy == "workqueue");
        let cell = CellParams {
            runtime_ms: 1,
            ramp_ms: 0,
            slice_us: None,
            depth: 2,
            jobs: 2,
            ..default.next().unwrap()
        };
        let stats = |cell: &CellParams| {
            let simulated = run(&machine, cell);
            let window = &simulated.window;
            (simulated.read.stats(window), simulated.write.stats(window))
        };
        assert_eq!(stats(&cell), stats(&cell), "{name}");
        assert_ne!(stats(&cell), (None, None), "{name}");
    }
}

/// A machine whose threads don't look for work before they sleep, as the kernel's.
#[test]
fn threads_that_never_spin_come_to_an_end() {
    let mut machine = machine(4);
    machine.hand_off.spin_ns = 0.0;
    for rw in [Rw::RandRead, Rw::RandWrite] {
        let cell = short("workqueue", rw, 4096, 64);
        assert!(ios(&run(&machine, &cell)) > 100);
    }
}

#[test]
fn a_write_thread_that_sorts_has_less_time_for_its_device() {
    let writes = |sort_ns: f64, writes_at_device: u32| {
        let mut machine = machine(8);
        machine.hand_off.sort_ns = sort_ns;
        machine.hand_off.writes_at_device = writes_at_device;
        let cell = CellParams {
            device: "model:optane".to_owned(),
            jobs: 4,
            workers: 4,
            ..short("workqueue", Rw::RandWrite, 4096, 64)
        };
        ios(&run(&machine, &cell))
    };
    let most = writes(0.0, 128);
    assert!(writes(10_000.0, 128) < most / 2);
    assert!(writes(0.0, 1) < most / 2, "one write at a time");
}

#[test]
fn inline_requests_take_as_long_as_their_parts() {
    let machine = machine(2);
    let simulated = run(&machine, &short("inline", Rw::RandRead, 4096, 1));
    let cipher = machine.cipher("aes-xts-plain64").unwrap();
    let cipher_ns = cipher.call_ns + 4096.0 * cipher.decrypt_ns_per_byte;
    let copy_ns = machine.memory.reach_ns + 4096.0 * machine.memory.copy_ns_per_byte;
    let request_ns = machine.request.submit_ns + machine.request.complete_ns;
    let stats = simulated.read.stats(&simulated.window).unwrap();
    let each_ns = 1e9 / stats.iops;
    let expected_ns = cipher_ns + copy_ns + request_ns;
    assert!(
        (each_ns / expected_ns - 1.0).abs() < 0.01,
        "{each_ns} {expected_ns}"
    );
    assert!((stats.stages.unwrap().cipher_ns_mean / cipher_ns - 1.0).abs() < 0.01);
}

#[test]
fn every_request_of_the_window_is_counted_at_the_asked_depth() {
    for policy in [
        "inline",
        "workqueue",
        "workqueue:same_cpu_crypt,high_priority",
        "adaptive",
    ] {
        for device in ["null", "memory", "model:optane", "model:null-blk:timer"] {
            for (rw, depth) in [(Rw::RandRead, 1), (Rw::RandWrite, 16), (Rw::RandRw, 64)] {
                let cell = CellParams {
                    device: device.to_owned(),
                    jobs: 2,
                    devices: 2,
                    workers: 3,
                    ..short(policy, rw, 16_384, depth)
                };
                let simulated = run(&machine(3), &cell);
                let what = format!("{policy} {device} {}", rw.name());
                assert!(ios(&simulated) > 0, "{what}");
                let bytes = simulated.read.bytes() + simulated.write.bytes();
                assert_eq!(bytes, ios(&simulated) * 16_384, "{what}");
                let depth_share = simulated.depth_mean / f64::from(depth);
                assert!(
                    (0.9..=1.001).contains(&depth_share),
                    "{what}: {depth_share}"
                );
                let window_ns = simulated.window.length_ns();
                assert!(
                    simulated.cpu_ns <= 3 * window_ns,
                    "{what}: {}",
                    simulated.cpu_ns
                );
                assert!(simulated.cpu_ns > 0, "{what}");
            }
        }
    }
}

#[test]
fn workers_pay_where_the_cipher_is_slow_and_cores_are_many() {
    let slow = |policy| CellParams {
        cipher_throttle_bytes_per_s: Some("0.2GB/s".parse::<Rate>().unwrap().0),
        workers: 8,
        ..short(policy, Rw::RandRead, 65_536, 32)
    };
    let inline = ios(&run(&machine(8), &slow("inline"))) as f64;
    let workqueue = ios(&run(&machine(8), &slow("workqueue"))) as f64;
    let adaptive = ios(&run(&machine(8), &slow("adaptive"))) as f64;
    assert!(
        workqueue > 5.0 * inline && workqueue < 8.5 * inline,
        "{}",
        workqueue / inline
    );
    assert!(adaptive > 5.0 * inline, "{}", adaptive / inline);
}

#[test]
fn a_drive_is_as_fast_as_it_is_under_any_policy() {
    let on_disk = |policy| CellParams {
        device: "model:hdd".to_owned(),
        runtime_ms: 2_000,
        ..short(policy, Rw::RandRead, 4096, 4)
    };
    let counts =
        ["inline", "workqueue", "adaptive"].map(|policy| ios(&run(&machine(2), &on_disk(policy))));
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(most - least <= 1 + least / 10, "{counts:?}");
}

#[test]
fn more_threads_than_cpus_share_them() {
    let crowded = |cores| {
        let cell = CellParams {
            jobs: 8,
            ..short("inline", Rw::RandRead, 4096, 4)
        };
        ios(&run(&machine(cores), &cell)) as f64
    };
    let speed_up = crowded(4) / crowded(2);
    assert!((1.8..2.2).contains(&speed_up), "{speed_up}");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_advice() {
    let refusal = |change: fn(&mut CellParams)| {
        let mut cell = short("inline", Rw::RandRead, 4096, 1);
        change(&mut cell);
        check(&machine(2), &cell).unwrap_err()
    };
    let file = refusal(|cell| cell.device = "file:/dev/sda".to_owned());
    assert!(file.contains("model:NAME"), "{file}");
    let cipher = refusal(|cell| cell.cipher = "aes-lrw-plain64".to_owned());
    assert!(cipher.contains("[cipher.aes-lrw-plain64]"), "{cipher}");
    let drive = refusal(|cell| cell.device = "model:floppy".to_owned());
    assert!(drive.contains("sata-ssd"), "{drive}");
    let cpu = refusal(|cell| cell.issuer_cpus = vec![2]);
    assert!(cpu.contains("0 to 1"), "{cpu}");
}

#[test]
fn a_stopped_simulation_has_no_result() {
    let stop = AtomicBool::new(true);
    let cell = CellParams {
        runtime_ms: 10_000,
        ..short("inline", Rw::RandRead, 4096, 32)
    };
    assert!(simulate(&machine(2), &cell, 1, &stop).unwrap().is_none());
}

#[test]
fn the_other_cpu_is_there_for_workers_where_issuers_share_one() {
    let share = |policy: &str| {
        let cell = CellParams {
            jobs: 2,
            issuer_cpus: vec![0],
            ..short(policy, Rw::RandWrite, 131_072, 32)
        };
        ios(&run(&machine(2), &cell)) as f64
    };
    let ratio = share("adaptive") / share("inline");
    assert!(ratio > 1.5, "{ratio}");
}

#[test]
fn workers_stop_looking_for_work_that_always_comes_later() {
    // One read at a time, of which the drive takes longer than a worker looks for the next one.
    let cell = CellParams {
        device: "model:sata-ssd".to_owned(),
        ..short("workqueue", Rw::RandRead, 131_072, 1)
    };
    let mut machine = machine(4);
    machine.hand_off.spin_ns = 200_000.0;
    let spins = run(&machine, &cell);
    machine.hand_off.spin_ns = 0.0;
    let sleeps = run(&machine, &cell);
    let per_read = |simulated: &Simulated| simulated.cpu_ns as f64 / ios(simulated) as f64;
    let ratio = per_read(&spins) / per_read(&sleeps);
    // The issuer looks for its result, which is there in time; workers would take ten times as long.
    assert!((0.9..3.0).contains(&ratio), "{ratio}");
}
