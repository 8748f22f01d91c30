//! Policies with their flags, as `--policy` has them: items between commas.

#![forbid(unsafe_code)]

use crypt_bench::definition::policy::{join_flags, with_baselines};
use crypt_core::policy::PolicySpec;

use super::{bytes, check_message, words};

/// Reads a list of policies.
///
/// # Panics
/// Where a policy prints as another one, or one stands there twice.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let items: Vec<String> = text.split(',').map(str::to_owned).collect();
    let policies = match join_flags(&items) {
        Ok(policies) => policies,
        Err(message) => {
            check_message(&message, text.len());
            return false;
        }
    };
    assert!(!policies.is_empty());
    for (index, policy) in policies.iter().enumerate() {
        assert!(!policies[..index].contains(policy), "{policy} twice");
        let spec = policy.parse::<PolicySpec>();
        assert_eq!(spec.is_err(), policy == "raw", "{policy}");
        let Ok(spec) = spec else { continue };
        assert_eq!(spec.to_string(), *policy);
        let _ = (spec.build(), spec.rules(), spec.needs_workers());
    }
    assert!(with_baselines(policies.clone(), false).len() >= policies.len());
    true
}

/// Some of each.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    bytes(&[
        "inline,workqueue,adaptive,raw",
        "adaptive",
        "workqueue:no_read_workqueue,same_cpu_crypt,inline",
        "workqueue:no_read_workqueue,no_write_workqueue,submit_from_crypt_cpus,high_priority",
    ])
}

/// Words of policies.
#[must_use]
pub fn pieces() -> Vec<String> {
    words(&[
        "inline",
        "workqueue",
        "adaptive",
        "raw",
        ":",
        ",",
        "_",
        "no_read_workqueue",
        "no_write_workqueue",
        "same_cpu_crypt",
        "submit_from_crypt_cpus",
        "high_priority",
        "workqueue:",
        ",,",
        "é",
        "\0",
        " ",
    ])
    .collect()
}
