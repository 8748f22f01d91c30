//! `crypt-bench score`, and samples of a matrix.

#![forbid(unsafe_code)]

use crate::common::{Place, text};

const SMALL: &str = "simulate --machine two-cores --device memory,model:nvme --rw randread,randwrite --bs 4k,64k,1m \
                     --depth 1,32 --sector-size 4k --runtime 5ms --ramp 1ms";

#[test]
fn a_score_counts_every_cell_once_per_bar_and_its_status_is_its_verdict() {
    let place = Place::new();
    place.succeed(&format!(
        "{SMALL} --policy adaptive --repeats 6 --sample 5 --out results"
    ));
    let table = place.succeed("score results --all");
    let counts: Vec<[usize; 4]> = table.lines().filter_map(counts).collect();
    assert_eq!(counts.len(), 3, "{table}");
    for [cells, met, missed, open] in &counts {
        assert_eq!((*cells, met + missed + open), (5, 5), "{table}");
    }
    let missed: usize = counts.iter().map(|[_, _, missed, _]| missed).sum();
    let named = |what: &str| table.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!(named("missed: "), missed, "{table}");
    let overall = |line: &str| line.starts_with("results  mean ");
    assert_eq!(table.lines().filter(|line| overall(line)).count(), 6);

    let checked = place.run("score results --check");
    // A mark stands in the column of its verdict: that of misses ends where its heading ends.
    let heading = table.lines().next().unwrap();
    let column = heading.find("missed").unwrap() + "missed".len();
    let missed_mean = table
        .lines()
        .filter(|line| overall(line))
        .any(|line| line[..column].ends_with('x'));
    let expected = if missed > 0 || missed_mean { 10 } else { 0 };
    assert_eq!(
        checked.status.code(),
        Some(expected),
        "{}",
        text(&checked.stderr)
    );
}

/// Cells, met, missed and open, of a row about single cells.
fn counts(line: &str) -> Option<[usize; 4]> {
    let (_, numbers) = line
        .split_once("the better fixed")
        .or_else(|| line.split_once("the cell's winner"))?;
    let mut numbers = numbers.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?, next()?])
}

#[test]
fn results_without_both_kinds_of_policy_have_no_score() {
    let place = Place::new();
    place.succeed(&format!(
        "{SMALL} --policy inline,workqueue --repeats 1 --sample 1 --out fixed"
    ));
    for (arguments, advice) in [
        ("score fixed", "--policy adaptive"),
        ("score nowhere", "nowhere"),
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(
            text(&output.stderr).contains(advice),
            "{}",
            text(&output.stderr)
        );
    }
    // One repeat is no sample: nothing can be said, and that is no pass.
    place.succeed(&format!(
        "{SMALL} --policy adaptive --repeats 1 --sample 1 --out once"
    ));
    place.succeed("score once");
    assert_eq!(place.run("score once --check").status.code(), Some(10));
}
