//! `crypt-bench doctor`, on whatever machine this is.

#![forbid(unsafe_code)]

use serde_json::Value;

use crate::common::{Place, text};

#[test]
fn every_finding_stands_in_both_forms_and_decides_the_status() {
    let place = Place::new();
    let findings: Value = serde_json::from_str(&place.succeed("doctor --json")).unwrap();
    let findings = findings.as_array().unwrap();
    assert!(findings.len() >= 18);
    for finding in findings {
        let disturbs = finding["state"] == "disturbs";
        assert!(!disturbs || finding["advice"].is_string(), "{finding}");
    }
    // The build of a test disturbs in any case.
    let checked = place.run("doctor --check");
    let shown = text(&checked.stdout);
    assert_eq!(checked.status.code(), Some(10));
    assert!(
        shown.contains("not optimised") && shown.contains("-> build with --release"),
        "{shown}"
    );
    assert_eq!(place.content().len(), 1, "it leaves nothing behind");
}
