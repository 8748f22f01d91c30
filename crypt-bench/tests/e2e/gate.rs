//! `crypt-bench gate`, `merge` and `--shard`.

#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{Place, assert_schema, text};
use crate::refuse::refused;

const SIMULATE: &str = "simulate --device memory --rw randread --policy inline --sector-size 4k --runtime 5ms --ramp 1ms";

/// What is simulated where nothing else is said.
const CELLS: &str = "--bs 64k --depth 1,8 --repeats 10";

/// Two simulations of the same machine, and one of the same with a slower cipher, which calls itself alike.
fn simulated() -> Place {
    let place = Place::new();
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/machines");
    let machine = fs::read_to_string(machines.join("two-cores.toml")).unwrap();
    let slow = machine.replace(
        "decrypt-ns-per-byte = 0.0607",
        "decrypt-ns-per-byte = 0.0907",
    );
    assert_ne!(machine, slow);
    fs::write(place.path("slow.toml"), slow).unwrap();
    place.succeed(&format!("{SIMULATE} {CELLS} --machine two-cores --out old"));
    place.succeed(&format!(
        "{SIMULATE} {CELLS} --machine two-cores --out same"
    ));
    place.succeed(&format!(
        "{SIMULATE} {CELLS} --machine slow.toml --out slow"
    ));
    place
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn a_slower_build_regresses_in_every_document_and_the_same_one_passes() {
    let place = simulated();
    let documents = "--json gate.json --markdown gate.md --junit gate.xml --bmf bmf.json --smaller-is-better list.json";
    let passed = place.run(&format!("gate --baseline old --candidate same {documents}"));
    assert_eq!(status(&passed), 0, "{}", text(&passed.stderr));
    assert!(text(&passed.stdout).starts_with("pass: 2 cells: 2 pass"));
    assert_eq!(status(&place.run("gate verify gate.json")), 0);

    let regressed = place.run(&format!(
        "gate --baseline old --candidate slow {documents} --github"
    ));
    assert_eq!(status(&regressed), 10, "{}", text(&regressed.stderr));
    assert!(text(&regressed.stdout).contains("\n::error title=crypt-bench gate%3A regressed::"));
    assert_eq!(status(&place.run("gate verify gate.json")), 10);
    let artefact = place.json("gate.json");
    assert_eq!(artefact["verdict"], "regressed");
    assert_schema("gate.schema.json", [artefact]);
    assert!(
        place
            .read(".", "gate.md")
            .starts_with("### Gate: regressed: 2 cells: 2 regressed")
    );
    assert_eq!(place.json("bmf.json").as_object().unwrap().len(), 2);
    assert_eq!(place.json("list.json").as_array().unwrap().len(), 4);
    well_formed(&place.path("gate.xml"));

    let allowed = place.run("gate --baseline old --candidate slow --max-regress 60%");
    assert_eq!(status(&allowed), 0, "{}", text(&allowed.stdout));
    let printed = place.run("gate --baseline old --candidate slow --json -");
    let printed: Value = serde_json::from_str(&text(&printed.stdout)).unwrap();
    assert_eq!(printed["verdict"], "regressed");
}

/// XML that another program reads.
fn well_formed(path: &Path) {
    let program = "import sys, xml.etree.ElementTree as tree; print(len(list(tree.parse(sys.argv[1]).iter('testcase'))))";
    match Command::new("python3")
        .args(["-c", program])
        .arg(path)
        .output()
    {
        Ok(output) => assert_eq!(text(&output.stdout).trim(), "3", "{}", text(&output.stderr)),
        Err(error) => println!("skipped: python3 to read XML: {error}"),
    }
}

#[test]
fn a_gate_that_fails_leaves_no_older_verdict_behind() {
    let place = simulated();
    place.succeed("gate --baseline old --candidate same --json gate.json");
    let failed = place.run("gate --baseline old --candidate nowhere --json gate.json");
    assert_eq!(status(&failed), 2);
    assert_eq!(status(&place.run("gate verify gate.json")), 12);
    // Cut, and edited.
    place.succeed("gate --baseline old --candidate same --json gate.json");
    let whole = place.read(".", "gate.json");
    for broken in [
        &whole[..whole.len() - 20],
        &whole.replace("\"least_repeats\": 10", "\"least_repeats\": 9"),
        "",
    ] {
        fs::write(place.path("gate.json"), broken).unwrap();
        assert_eq!(status(&place.run("gate verify gate.json")), 2);
    }
    assert_eq!(status(&place.run("gate verify nothing.json")), 2);
}

#[test]
fn vanished_cells_too_few_repeats_and_other_machines_do_not_pass() {
    let place = simulated();
    place.succeed(&format!(
        "{SIMULATE} --bs 64k --depth 1 --repeats 10 --machine two-cores --out less"
    ));
    assert_eq!(
        status(&place.run("gate --baseline old --candidate less")),
        12
    );
    assert_eq!(
        status(&place.run("gate --baseline less --candidate old")),
        0,
        "new cells are no failure"
    );
    place.succeed(&format!(
        "{SIMULATE} --bs 64k --depth 1,8 --repeats 4 --machine two-cores --out few"
    ));
    assert_eq!(
        status(&place.run("gate --baseline old --candidate few")),
        12
    );
    place.succeed(&format!(
        "{SIMULATE} {CELLS} --machine server-64 --workers 2 --out other"
    ));
    assert_eq!(
        status(&place.run("gate --baseline old --candidate other")),
        14
    );
    place.succeed(&format!(
        "{SIMULATE} --bs 4k --depth 1,8 --repeats 10 --machine two-cores --out apart"
    ));
    assert_eq!(
        status(&place.run("gate --baseline old --candidate apart")),
        12,
        "nothing to compare"
    );
}

#[test]
fn what_is_no_gate_is_refused() {
    let place = simulated();
    for (arguments, reason) in [
        ("gate", "--baseline"),
        ("gate --baseline old", "--candidate"),
        (
            "gate --baseline old --candidate same --max-regress 5",
            "with its sign",
        ),
        (
            "gate --baseline old --candidate same --json - --markdown -",
            "only one document",
        ),
        (
            "gate --baseline old --candidate same --json - --github",
            "only one document",
        ),
        (
            "gate --baseline old --candidate same --json old/results.jsonl",
            "results.jsonl",
        ),
        (
            "gate --baseline old --candidate same --json missing/gate.json",
            "missing/gate.json",
        ),
        (
            "gate run --baseline-bin nothing --candidate-bin nothing --matrix smoke",
            "nothing",
        ),
        (
            "gate run --baseline-bin . --candidate-bin . --matrix smoke",
            "not a program",
        ),
    ] {
        refused(&place, arguments, reason);
    }
}

/// A program that behaves as `body` says; `$bench` is the real one.
fn program(place: &Place, name: &str, body: &str) {
    let path = place.path(name);
    fs::write(
        &path,
        format!(
            "#!/bin/sh\nbench='{}'\n{body}\n",
            env!("CARGO_BIN_EXE_crypt-bench")
        ),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

const RUN: &str = "gate run --baseline-bin old.sh --matrix tiny.toml --repeats 4 --least-repeats 4 --json gate.json";

#[test]
fn both_programs_take_turns_and_their_results_stay() {
    let place = Place::new();
    fs::write(
        place.path("tiny.toml"),
        "device = ['null']\nrw = ['randread']\nbs = ['4k']\ndepth = [1, 2]\npolicy = ['inline']\nsize = '1m'\n\
         runtime = '10ms'\nramp = '1ms'\n",
    )
    .unwrap();
    program(&place, "old.sh", "exec \"$bench\" \"$@\"");
    let output = place.run(&format!("{RUN} --candidate-bin old.sh --out both"));
    let artefact = place.json("gate.json");
    // What a loaded machine makes of it is open, but not that everything was there to compare.
    let verdict = artefact["verdict"].as_str().unwrap();
    let is_whole = !["incomplete", "missing", "environment-mismatch"].contains(&verdict);
    assert!(is_whole, "{artefact}: {}", text(&output.stderr));
    assert_eq!(artefact["interleaved"], true);
    for side in ["both/baseline", "both/candidate"] {
        assert_eq!(place.records(side).len(), 8);
        assert_eq!(place.manifest(side).repeats, 4);
    }
    assert!(!place.path("both/blocks").exists());
    assert!(text(&output.stderr).contains("block 4 of 4"));
    // The stored results are judged alike.
    let again =
        place.run("gate --baseline both/baseline --candidate both/candidate --least-repeats 4");
    assert_eq!(status(&again), status(&output));
    refused(
        &place,
        &format!("{RUN} --candidate-bin old.sh --out both"),
        "has files in it already",
    );

    // The candidate fails in its second block: what is whole is judged, and it is no pass.
    let body = "[ -e second ] && { echo 'out of luck' >&2; exit 1; }\ntouch second\nexec \"$bench\" \"$@\"";
    program(&place, "fails.sh", body);
    let failed = place.run(&format!("{RUN} --candidate-bin ./fails.sh --out failed"));
    assert!(
        [10, 12, 13].contains(&status(&failed)),
        "{}",
        text(&failed.stderr)
    );
    assert!(text(&failed.stdout).contains("candidate, block 2: exit status: 1: out of luck"));
    assert_ne!(status(&place.run("gate verify gate.json")), 0);
    // And it never starts: nothing is judged.
    let failed = place.run(&format!("{RUN} --candidate-bin ./fails.sh --out never"));
    assert_eq!(status(&failed), 1, "{}", text(&failed.stdout));
    assert_eq!(status(&place.run("gate verify gate.json")), 12);
}

/// A build that was made slower on purpose, beside the same one as it is.
#[test]
fn a_build_that_became_slower_is_caught() {
    let place = Place::new();
    fs::write(
        place.path("tiny.toml"),
        "device = ['memory']\nrw = ['randread']\nbs = ['64k']\ndepth = [1]\npolicy = ['inline']\nsize = '1m'\n\
         runtime = '60ms'\nramp = '5ms'\n",
    )
    .unwrap();
    program(&place, "old.sh", "exec \"$bench\" \"$@\"");
    program(
        &place,
        "new.sh",
        "CRYPT_BENCH_SLOWED_DOWN=10MB/s exec \"$bench\" \"$@\"",
    );
    let output = place.run(
        "gate run --baseline-bin old.sh --candidate-bin new.sh --matrix tiny.toml --metric bw_bytes_per_s \
         --json gate.json",
    );
    let found = place.json("gate.json");
    assert_eq!(status(&output), 10, "{found}: {}", text(&output.stderr));
    let change = &found["cells"][0]["changes"][0];
    assert!(change["ratio_high"].as_f64().unwrap() < 0.5, "{change}");
    // As many repeats as one figure takes.
    assert_eq!(place.manifest(first_folder(&place).as_str()).repeats, 12);
}

/// The candidate's results, where no folder was named for them.
fn first_folder(place: &Place) -> String {
    let mut folders = fs::read_dir(place.path("reports")).unwrap();
    let name = folders.next().unwrap().unwrap().file_name();
    format!("reports/{}/candidate", name.to_str().unwrap())
}

#[test]
fn shards_of_a_matrix_merge_into_the_whole() {
    let place = Place::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let out = shard.replace('/', "-");
        place.succeed(&format!(
            "{SIMULATE} --machine two-cores --bs 4k,64k --depth 1,8 --repeats 10 --shard {shard} --out part-{out}"
        ));
    }
    place.succeed(&format!(
        "{SIMULATE} --machine two-cores --bs 4k,64k --depth 1,8 --repeats 10 --out whole"
    ));
    place.succeed("merge part-1-3 part-2-3 part-3-3 --out joined");
    assert_eq!(place.records("joined").len(), place.records("whole").len());
    let same = place.succeed("compare whole joined");
    assert_eq!(
        same.lines().filter(|line| line.ends_with('~')).count(),
        12,
        "{same}"
    );
    assert!(place.path("joined/report.html").exists());
    // Further repeats of the same cells.
    place.succeed("merge whole joined --out more");
    assert_eq!(place.manifest("more").repeats, 20);
    place.succeed("report more --format markdown");

    refused(
        &place,
        "merge whole joined --out more",
        "has files in it already",
    );
    refused(&place, "merge whole nowhere --out x", "nowhere");
    refused(
        &place,
        &format!("{SIMULATE} {CELLS} --machine two-cores --shard 3/3 --out x"),
        "only 2 cells",
    );
    refused(
        &place,
        &format!("{SIMULATE} {CELLS} --machine two-cores --shard 3 --out x"),
        "write 1/4",
    );
    place.succeed(&format!(
        "{SIMULATE} {CELLS} --machine server-64 --workers 2 --out other"
    ));
    refused(&place, "merge whole other --out x", "--mixed");
}

#[test]
fn baselines_are_kept_by_name_and_stand_for_their_folder() {
    let place = simulated();
    assert!(
        place
            .succeed("baseline list")
            .starts_with("no baselines in reports/baselines")
    );
    place.succeed("baseline save main old");
    assert_eq!(
        status(&place.run("gate --baseline main --candidate same")),
        0
    );
    assert_eq!(
        status(&place.run("gate --baseline main --candidate slow")),
        10
    );
    assert!(place.succeed("compare main slow").contains("A: main"));
    refused(&place, "baseline save main slow", "--replace");
    place.succeed("baseline save main slow --replace");
    assert_eq!(
        status(&place.run("gate --baseline main --candidate slow")),
        0
    );
    place.succeed("baseline save other.2 old");
    let list: Value = serde_json::from_str(&place.succeed("baseline list --json")).unwrap();
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["main", "other.2"]);
    // Simulated machines are not this one.
    assert_eq!(list[0]["this_machine"], false);
    let shown = place.succeed("baseline show main");
    assert!(
        shown.contains("another machine") && shown.contains("memory"),
        "{shown}"
    );
    refused(&place, "baseline show nothing", "there are: main, other.2");
    refused(&place, "baseline save ../x old", "make a name");
    refused(&place, "baseline save x nowhere", "nowhere");
    fs::write(place.path("old/results.jsonl"), "").unwrap();
    let manifest = place
        .read("old", "manifest.json")
        .replace("\"complete\"", "\"interrupted\"");
    fs::write(place.path("old/manifest.json"), manifest).unwrap();
    refused(&place, "baseline save x old", "was not finished");
}
