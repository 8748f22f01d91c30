//! Ctrl-C and SIGTERM: what is finished stays, outputs are whole, the exit status is 130.

#![forbid(unsafe_code)]

use std::fs;
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Place, text};
use crate::keep::{signal, wait_for_records};
use crypt_bench::manifest::State;

const SIGNALS: [Signal; 2] = [Signal::INT, Signal::TERM];

/// Waits until the program has caught what it wants to: its handlers are in place then.
fn wait_for_handlers(child: &mut Child) {
    let path = format!("/proc/{}/status", child.id());
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        let wanted = 1 << (Signal::INT.as_raw() - 1) | 1 << (Signal::TERM.as_raw() - 1);
        if caught.is_some_and(|mask| mask & wanted == wanted) {
            return;
        }
        assert!(
            child.try_wait().unwrap().is_none(),
            "ended before it could be stopped"
        );
        assert!(Instant::now() < deadline, "no handlers after two minutes");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn stopped(output: &Output) -> String {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("stopped"), "{stderr}");
    stderr
}

#[test]
fn a_stopped_job_reports_what_it_did() {
    let place = Place::new();
    let job = "[a]\nioengine=null\nsize=1m\ntime_based\nruntime=1000\nrate_iops=1000\n";
    fs::write(
        place.path("a.fio"),
        format!("{job}[b]\nstonewall\nioengine=null\nsize=1m\n"),
    )
    .unwrap();
    for which in SIGNALS {
        for (output, status) in [("whole.json", ""), ("lines.json", " --status-interval 1s")] {
            let arguments = format!("run a.fio --output-format json --output {output}{status}");
            let mut child = place.command(&arguments).spawn().unwrap();
            wait_for_handlers(&mut child);
            std::thread::sleep(Duration::from_millis(300));
            signal(&child, which);
            stopped(&child.wait_with_output().unwrap());
            let written = fs::read_to_string(place.path(output)).unwrap();
            let documents = serde_json::Deserializer::from_str(&written).into_iter::<Value>();
            let last = documents.map(Result::unwrap).last().unwrap();
            assert_eq!(last["jobs"][0]["jobname"], "a");
        }
    }
}

/// Nothing replaces an output before there is a whole one.
#[test]
fn a_second_signal_leaves_outputs_as_they_were() {
    let place = Place::new();
    let job = "[a]\nioengine=null\nsize=1m\ntime_based\nruntime=1000\nthinktime=1000s\n";
    fs::write(place.path("a.fio"), job).unwrap();
    fs::write(place.path("old.json"), "old").unwrap();
    let arguments = "run a.fio --output-format json --output old.json";
    let mut child = place.command(arguments).spawn().unwrap();
    wait_for_handlers(&mut child);
    signal(&child, Signal::INT);
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        signal(&child, Signal::INT);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let now = fs::read_to_string(place.path("old.json")).unwrap();
    assert!(
        now == "old" || serde_json::from_str::<Value>(&now).is_ok(),
        "{now}"
    );
}

#[test]
fn a_stopped_preset_goes_on_where_it_was() {
    let place = Place::new();
    let preset = "matrix --preset dorminy-ssd --device memory --size 8m --runtime 40ms --ramp 2ms --repeats 3";
    let mut child = place
        .command(&format!("{preset} --out results"))
        .spawn()
        .unwrap();
    // More than a repeat of all policies, which is what is kept.
    wait_for_records(&place, &mut child, 8);
    signal(&child, Signal::TERM);
    let stderr = stopped(&child.wait_with_output().unwrap());
    assert!(stderr.contains("matrix --out results --resume"), "{stderr}");
    let before = place.read("results", "results.jsonl");
    assert_eq!(place.manifest("results").state, State::Interrupted);
    assert!(place.path("results").join("report.html").is_file());
    place.succeed("matrix --out results --resume");
    let manifest = place.manifest("results");
    assert_eq!(manifest.state, State::Complete);
    assert_eq!(manifest.preset.as_deref(), Some("dorminy-ssd"));
    let wanted = manifest.plan.len() * manifest.repeats as usize;
    assert_eq!(place.records("results").len(), wanted);
    let first = before.lines().next().unwrap();
    assert!(place.read("results", "results.jsonl").starts_with(first));
}

#[test]
fn a_stopped_simulation_keeps_whole_runs() {
    let place = Place::new();
    let simulate = "simulate --machine two-cores --device memory --rw randread --bs 4k --depth 1,4 --policy adaptive \
                    --runtime 1h --repeats 20 --out results";
    let mut child = place.command(simulate).spawn().unwrap();
    wait_for_handlers(&mut child);
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, Signal::INT);
    stopped(&child.wait_with_output().unwrap());
    let manifest = place.manifest("results");
    assert_eq!(
        (manifest.state, manifest.finished),
        (State::Interrupted, None)
    );
    let records = place.records("results");
    assert!(records.len() < manifest.plan.len() * manifest.repeats as usize);
    place.succeed("report results --format csv");
}
