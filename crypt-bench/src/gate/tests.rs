//! Verdicts on runs whose difference is known, and what is written of them.

#![forbid(unsafe_code)]

use schemars::schema_for;
use serde_json::Value;

use super::*;
use crate::diff::Options;
use crate::doubt::Doubt;
use crate::result::ResultRecord;
use crate::testing::{assert_tables_are_whole, cell, manifest, published, record};

const REPEATS: u32 = 12;

/// Depths 1 to `cells`, each repeat in turns with the other side's; depth 2 slower by `factor`.
fn run(name: &str, side: u64, cells: u32, factor: f64) -> Run {
    let mut records: Vec<ResultRecord> = Vec::new();
    for depth in 1..=cells {
        for repeat in 1..=REPEATS {
            // Noise of about 1 %, on a machine that becomes slower.
            let noise = f64::from((repeat * 7 + depth * 3 + side as u32 * 2) % 5) * 0.005;
            let factor = if depth == 2 { factor } else { 1.0 };
            let rate = 1e9 * (1.0 + noise) * (1.0 - 0.01 * f64::from(repeat)) * factor;
            let mut one = record(cell("inline", 4096, depth), repeat, rate);
            one.started_unix_ms = 1000 + 100 * u64::from(repeat) + 10 * side;
            records.push(one);
        }
    }
    Run {
        name: name.to_owned(),
        manifest: manifest(&records),
        records,
    }
}

fn policy() -> Policy {
    Policy {
        metrics: vec![(Metric::Throughput, 0.05), (Metric::LatP50, 0.05)],
        least_repeats: 10,
    }
}

fn judged(baseline: &Run, candidate: &Run) -> Artefact {
    let policy = policy();
    let options = Options {
        metrics: policy.metrics.iter().map(|(metric, _)| *metric).collect(),
        across: None,
        labels: ["baseline", "candidate"],
    };
    decide(&Diff::of([baseline, candidate], &options).unwrap(), &policy)
}

/// The verdict on a candidate that was changed, and its exit status.
fn verdict(change: impl Fn(&mut Run)) -> (Verdict, u8) {
    let mut candidate = run("new", 1, 4, 1.0);
    change(&mut candidate);
    let artefact = judged(&run("old", 0, 4, 1.0), &candidate);
    (artefact.verdict, artefact.verdict.exit_status(false))
}

#[test]
fn the_same_passes_and_a_slower_and_a_faster_cell_are_found() {
    for (factor, expected, status) in [
        (1.0, Verdict::Pass, 0),
        (0.85, Verdict::Regressed, 10),
        (1.2, Verdict::Improved, 0),
        // Within what is allowed, however certain.
        (0.97, Verdict::Pass, 0),
    ] {
        let artefact = judged(&run("old", 0, 4, 1.0), &run("new", 1, 4, factor));
        let cells: Vec<Verdict> = artefact.cells.iter().map(|cell| cell.verdict).collect();
        assert_eq!(
            cells,
            [Verdict::Pass, expected, Verdict::Pass, Verdict::Pass],
            "{factor}"
        );
        assert_eq!(
            (artefact.verdict, artefact.verdict.exit_status(true)),
            (expected, status)
        );
        assert_eq!(
            (artefact.reasons.len(), artefact.interleaved),
            (0, Some(true)),
            "{factor}"
        );
    }
}

#[test]
fn what_is_not_known_to_be_well_does_not_pass() {
    assert_eq!(verdict(|_| {}), (Verdict::Pass, 0));
    let gone = verdict(|run| run.records.retain(|record| record.cell.depth != 3));
    assert_eq!(gone, (Verdict::Missing, 12));
    let vanished = verdict(|run| {
        run.records.retain(|record| record.cell.depth != 3);
        run.manifest = manifest(&run.records);
    });
    assert_eq!(vanished, (Verdict::Missing, 12));
    let partial = verdict(|run| drop(run.records.pop()));
    assert_eq!(partial, (Verdict::Incomplete, 12));
    let few = verdict(|run| {
        run.records.retain(|record| record.repeat <= 9);
        run.manifest = manifest(&run.records);
    });
    assert_eq!(few, (Verdict::Incomplete, 12));
    let running = verdict(|run| run.manifest.state = State::Running);
    assert_eq!(running, (Verdict::Incomplete, 12));
    let invalid = verdict(|run| run.records[5].doubts.push(Doubt::NotDirect));
    assert_eq!(invalid, (Verdict::Invalid, 13));
    let zero = verdict(|run| run.records.clear());
    assert_eq!(zero, (Verdict::Missing, 12));
    let nothing = verdict(|run| {
        run.records.clear();
        run.manifest.plan.clear();
    });
    assert_eq!(nothing, (Verdict::Missing, 12));
}

#[test]
fn another_machine_or_mechanism_is_no_pass() {
    let changes: [fn(&mut Run); 8] = [
        |run| run.manifest.environment.host = "other".to_owned(),
        |run| run.manifest.environment.cpu_model = "other".to_owned(),
        |run| run.manifest.environment.kernel = "other".to_owned(),
        |run| run.manifest.environment.governor = Some("powersave".to_owned()),
        |run| run.manifest.tool.profile = "debug".to_owned(),
        |run| run.records[0].achieved.cipher_backend = Some("portable".to_owned()),
        |run| {
            for record in &mut run.records {
                record.achieved.engine = "sync".to_owned();
            }
        },
        |run| run.records[0].doubts.push(Doubt::Simulated),
    ];
    for (number, change) in changes.iter().enumerate() {
        assert_eq!(
            verdict(change),
            (Verdict::EnvironmentMismatch, 14),
            "{number}"
        );
    }
    // Imports of both sides agree in that nothing is known.
    let unknown = |name, side| {
        let mut run = run(name, side, 2, 1.0);
        run.manifest.environment = Default::default();
        run
    };
    let artefact = judged(&unknown("old", 0), &unknown("new", 1));
    assert_eq!(artefact.verdict, Verdict::EnvironmentMismatch);
}

#[test]
fn noise_and_too_few_samples_are_inconclusive() {
    let noisy = verdict(|run| {
        for record in run
            .records
            .iter_mut()
            .filter(|record| record.cell.depth == 2)
        {
            let factor = if record.repeat % 2 == 0 { 0.7 } else { 1.4 };
            record.read.as_mut().unwrap().bw_bytes_per_s *= factor;
        }
    });
    assert_eq!(noisy, (Verdict::Inconclusive, 0));
    assert_eq!(Verdict::Inconclusive.exit_status(true), 11);
    let mut strict = policy();
    strict.metrics = vec![(Metric::LatP99, 0.05)];
    let (old, new) = (run("old", 0, 2, 1.0), run("new", 1, 2, 1.0));
    let options = Options {
        metrics: vec![Metric::LatP99],
        across: None,
        labels: ["baseline", "candidate"],
    };
    // The records have 100 samples each.
    let artefact = decide(&Diff::of([&old, &new], &options).unwrap(), &strict);
    assert!(
        artefact
            .cells
            .iter()
            .all(|cell| cell.verdict == Verdict::Inconclusive)
    );
}

#[test]
fn new_cells_are_named_and_no_failure() {
    let artefact = judged(&run("old", 0, 3, 1.0), &run("new", 1, 4, 1.0));
    assert_eq!(artefact.verdict, Verdict::Pass);
    assert_eq!(artefact.new_cells, ["memory randread 4k depth 4"]);
    assert_eq!(artefact.cells.len(), 3);
}

#[test]
fn a_regression_is_found_beside_other_trouble() {
    let mut candidate = run("new", 1, 4, 0.85);
    candidate.records.retain(|record| record.cell.depth != 4);
    let artefact = judged(&run("old", 0, 4, 1.0), &candidate);
    assert_eq!(artefact.verdict, Verdict::Regressed);
    assert_eq!(
        (
            artefact.count(Verdict::Regressed),
            artefact.count(Verdict::Missing)
        ),
        (1, 1)
    );
}

#[test]
fn a_stored_verdict_is_believed_only_where_it_is_whole_and_unchanged() {
    let artefact = judged(&run("old", 0, 4, 1.0), &run("new", 1, 4, 0.85));
    let text = artefact.to_json();
    let read = Artefact::parse(&text).unwrap();
    assert_eq!(
        (read.verdict, read.cells),
        (Verdict::Regressed, artefact.cells.clone())
    );
    let forged = text.replace("\"regressed\"", "\"pass\"");
    assert!(
        Artefact::parse(&forged)
            .unwrap_err()
            .contains("mark does not fit")
    );
    let contradicting = Artefact {
        verdict: Verdict::Pass,
        ..artefact.clone()
    }
    .to_json();
    assert!(
        Artefact::parse(&contradicting)
            .unwrap_err()
            .contains("not the one that its cells lead to")
    );
    for broken in [
        "",
        "{}",
        &text[..text.len() / 2],
        &text.replace("\"schema_version\": 1", "\"schema_version\": 2"),
    ] {
        assert!(Artefact::parse(broken).is_err());
    }
    let unfinished = Artefact::parse(&unfinished(&policy()).to_json()).unwrap();
    assert_eq!(unfinished.verdict, Verdict::Incomplete);
}

#[test]
fn artefacts_fit_the_published_schema() {
    let schema = published("gate.schema.json", schema_for!(Artefact).to_value());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut candidate = run("new", 1, 4, 0.85);
    candidate.records[0].doubts.push(Doubt::NotDirect);
    for artefact in [
        judged(&run("old", 0, 4, 1.0), &candidate),
        unfinished(&policy()),
    ] {
        let value: Value = serde_json::from_str(&artefact.to_json()).unwrap();
        assert!(
            validator.is_valid(&value),
            "{:?}",
            validator.iter_errors(&value).next()
        );
        let mut broken = value.clone();
        broken["verdict"] = serde_json::json!("fine");
        assert!(!validator.is_valid(&broken));
    }
}

#[test]
fn text_and_markdown_name_what_is_no_pass_first() {
    let artefact = judged(&run("old", 0, 3, 1.0), &run("new", 1, 4, 0.85));
    let text = text::text(&artefact);
    assert!(
        text.starts_with("regressed: 3 cells: 1 regressed, 2 pass, 1 new\n"),
        "{text}"
    );
    assert_eq!(text.matches("depth 2").count(), 2, "{text}");
    assert!(
        !text.contains("depth 1") && text.contains("new: memory randread 4k depth 4"),
        "{text}"
    );
    let markdown = markdown::document(&artefact);
    assert!(
        markdown.starts_with("### Gate: regressed: 3 cells"),
        "{markdown}"
    );
    assert_tables_are_whole(&markdown);
}

#[test]
fn junit_has_a_case_per_cell_and_one_for_the_gate() {
    let mut candidate = run("new", 1, 4, 0.85);
    candidate.records[0].doubts.push(Doubt::NotDirect);
    candidate.manifest.environment.memory_bytes += 1;
    let artefact = judged(&run("old", 0, 4, 1.0), &candidate);
    let xml = junit::document(&artefact, false);
    assert!(
        xml.contains("tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"0\""),
        "{xml}"
    );
    assert_eq!(xml.matches("<testcase ").count(), 5);
    assert_eq!(xml.matches("</testcase>").count(), 5);
    assert!(xml.contains("<failure message=\"regressed\""), "{xml}");
    let lost = judged(&run("old", 0, 4, 1.0), &run("n<w>&", 1, 0, 1.0));
    assert!(!junit::document(&lost, false).contains("n<w>"));
}

#[test]
fn annotations_are_one_line_each() {
    let mut candidate = run("new", 1, 4, 0.85);
    candidate.manifest.environment.host = "100%\nother".to_owned();
    let artefact = judged(&run("old", 0, 4, 1.0), &candidate);
    let commands = github::commands(&artefact, false);
    let all = commands
        .lines()
        .all(|line| line.starts_with("::error ") || line.starts_with("::notice "));
    assert!(all, "{commands}");
    assert!(
        commands.contains("host in baseline, 100%25%0Aother in candidate"),
        "{commands}"
    );
    let pass = judged(&run("old", 0, 4, 1.0), &run("new", 1, 4, 1.0));
    assert_eq!(github::commands(&pass, false).lines().count(), 1);
}

#[test]
fn histories_get_the_figures_that_may_be_compared() {
    let mut candidate = run("new", 1, 4, 1.0);
    candidate.records[0].doubts.push(Doubt::NotDirect);
    let artefact = judged(&run("old", 0, 4, 1.0), &candidate);
    let bmf: Value = serde_json::from_str(&bencher::metric_format(&artefact)).unwrap();
    assert_eq!(bmf.as_object().unwrap().len(), 3);
    let measure = &bmf["memory randread 4k depth 2"]["bw_bytes_per_s"];
    let at = |key: &str| measure[key].as_f64().unwrap();
    assert!(
        at("lower_value") <= at("value") && at("value") <= at("upper_value"),
        "{measure}"
    );
    let list: Value = serde_json::from_str(&bencher::smaller_is_better(&artefact)).unwrap();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 6);
    let first = &list[0];
    assert_eq!(
        (&first["unit"], &first["name"]),
        (
            &Value::from("s/GB"),
            &Value::from("memory randread 4k depth 2: Throughput")
        )
    );
    assert!(
        (first["value"].as_f64().unwrap() - 1.06).abs() < 0.05,
        "{first}"
    );
}
