//! Lists of policies: `inline,workqueue:no_read_workqueue,same_cpu_crypt,adaptive:latency,max_workers=2`.
//!
//! A comma separates policies as well as the flags of one; a flag belongs to the policy before it.

#![forbid(unsafe_code)]

use crypt_core::policy::PolicySpec;

use crate::result::RAW_POLICY;

/// What adaptive policies by themselves are compared with.
const BASELINES: [&str; 2] = ["inline", "workqueue"];
const ADAPTIVE: &str = "adaptive";

/// Puts the comma-separated items back together into policies, in their own notation, each once.
///
/// # Errors
/// A flag before any policy, or what is no policy or flag at all.
pub fn join_flags(items: &[String]) -> Result<Vec<String>, String> {
    let mut texts: Vec<String> = Vec::new();
    for item in items {
        match texts.last_mut() {
            Some(last) if is_flag(item) && last.contains(':') => {
                last.push(',');
                last.push_str(item);
            }
            _ if is_flag(item) => {
                return Err(format!(
                    "--policy: `{item}` looks like a flag: write {}:{item} (flags follow a colon)",
                    owner(item)
                ));
            }
            _ => texts.push(item.clone()),
        }
    }
    let mut policies: Vec<String> = Vec::with_capacity(texts.len());
    for text in texts {
        let policy = if text == RAW_POLICY {
            text
        } else {
            let policy: Result<PolicySpec, _> = text.parse();
            policy.map_err(|error| refused(&text, &error))?.to_string()
        };
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    Ok(policies)
}

/// Why an item is no policy; of a name that there is none of, with the one that only this program has.
fn refused(text: &str, error: &crypt_core::Error) -> String {
    let name = text.split(':').next().unwrap_or(text);
    match name.parse::<PolicySpec>() {
        Ok(_) => format!("--policy: {error}"),
        Err(_) => format!("--policy: {error}, {RAW_POLICY} (no crypt stage)"),
    }
}

/// What a policy has as a flag, or looks like that: names of flags have underscores, those of policies don't.
fn is_flag(item: &str) -> bool {
    let name = item.split_once(':').map_or(item, |(name, _)| name);
    PolicySpec::is_flag(item) || name.contains('_')
}

/// The policy that an item is a flag of, or might be.
fn owner(item: &str) -> &'static str {
    let of_adaptive = format!("{ADAPTIVE}:{item}").parse::<PolicySpec>().is_ok();
    if of_adaptive { ADAPTIVE } else { "workqueue" }
}

/// Adds what adaptive policies are compared with, in front of them, where there are no others.
#[must_use]
pub fn with_baselines(policies: Vec<String>, only: bool) -> Vec<String> {
    if only || !policies.iter().all(|policy| is_adaptive(policy)) {
        return policies;
    }
    BASELINES
        .iter()
        .map(|&name| name.to_owned())
        .chain(policies)
        .collect()
}

fn is_adaptive(policy: &str) -> bool {
    policy.split(':').next() == Some(ADAPTIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> Result<Vec<String>, String> {
        let items: Vec<String> = text.split(',').map(str::to_owned).collect();
        join_flags(&items)
    }

    #[test]
    fn flags_belong_to_the_policy_before_them() {
        let policies =
            joined("inline,workqueue:no_read_workqueue,same_cpu_crypt,raw,adaptive,inline")
                .unwrap();
        assert_eq!(
            policies,
            [
                "inline",
                "workqueue:same_cpu_crypt,no_read_workqueue",
                "raw",
                "adaptive"
            ]
        );
    }

    #[test]
    fn objectives_and_limits_are_flags_too() {
        let policies = joined(
            "adaptive:max_workers=2,latency,inline,adaptive:efficiency,adaptive:balanced,workqueue:high_priority",
        );
        assert_eq!(
            policies.unwrap(),
            [
                "adaptive:latency,max_workers=2",
                "inline",
                "adaptive:efficiency",
                "adaptive",
                "workqueue:high_priority"
            ]
        );
    }

    #[test]
    fn a_flag_that_is_refused_is_no_matter_of_names() {
        for text in ["adaptive:max_cpu=0", "workqueue:fast", "inline:fast"] {
            let message = joined(text).unwrap_err();
            assert!(!message.contains(RAW_POLICY), "{message}");
        }
    }

    #[test]
    fn what_is_neither_is_refused_with_advice() {
        for (text, advice) in [
            ("same_cpu_crypt", "workqueue:same_cpu_crypt"),
            ("inline,same_cpu_crypt", "workqueue:same_cpu_crypt"),
            ("inlien", "inline, workqueue, adaptive, raw"),
            ("raw:fast", "raw"),
            ("", "inline"),
            ("workqueue:fast", "no_read_workqueue"),
            ("inline:fast", "inline"),
            ("latency", "adaptive:latency"),
            ("adaptive,max_cpu=50", "adaptive:max_cpu=50"),
            (
                "adaptive:latency,efficiency",
                "list adaptive:latency and adaptive:efficiency",
            ),
            ("adaptive:max_cpu=0", "from 1 to 100"),
        ] {
            let message = joined(text).unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
    }

    #[test]
    fn only_adaptive_policies_by_themselves_get_baselines() {
        let one = |name: &str| vec![name.to_owned()];
        assert_eq!(
            with_baselines(one("adaptive"), false),
            ["inline", "workqueue", "adaptive"]
        );
        assert_eq!(with_baselines(one("adaptive"), true), ["adaptive"]);
        assert_eq!(with_baselines(one("workqueue"), false), ["workqueue"]);
        let two = vec!["adaptive:latency".to_owned(), "adaptive".to_owned()];
        let compared = ["inline", "workqueue", "adaptive:latency", "adaptive"];
        assert_eq!(with_baselines(two, false), compared);
    }
}
