//! Lists of policies: `inline,workqueue:no_read_workqueue,same_cpu_crypt,adaptive`.
//!
//! A comma separates policies as well as the flags of one; a flag belongs to the policy before it.

#![forbid(unsafe_code)]

/// The policies there are.
const POLICIES: [&str; 3] = ["inline", "workqueue", "adaptive"];

/// What a lone adaptive policy is compared with.
const BASELINES: [&str; 2] = ["inline", "workqueue"];

/// Puts the comma-separated items back together into policies, without repetitions.
///
/// # Errors
/// A flag before any policy, or a name that is neither.
pub fn join_flags(items: &[String]) -> Result<Vec<String>, String> {
    let mut policies: Vec<String> = Vec::new();
    for item in items {
        let name = item.split_once(':').map_or(item.as_str(), |(name, _)| name);
        if POLICIES.contains(&name) {
            policies.push(item.clone());
            continue;
        }
        let known = || format!("use {}", POLICIES.join(", "));
        match policies.last_mut() {
            Some(last) if item.contains('_') && last.contains(':') => {
                last.push(',');
                last.push_str(item);
            }
            _ if item.contains('_') => {
                return Err(format!(
                    "`{item}` looks like a flag: write workqueue:{item} (flags follow a colon)"
                ));
            }
            _ => return Err(format!("`{item}` is not a policy: {}", known())),
        }
    }
    let mut unique = Vec::with_capacity(policies.len());
    for policy in policies {
        if !unique.contains(&policy) {
            unique.push(policy);
        }
    }
    Ok(unique)
}

/// Adds what a lone adaptive policy is compared with, in front of it.
#[must_use]
pub fn with_baselines(policies: Vec<String>, only: bool) -> Vec<String> {
    let lone = matches!(&policies[..], [policy] if policy.starts_with("adaptive"));
    if only || !lone {
        return policies;
    }
    BASELINES
        .iter()
        .map(|&name| name.to_owned())
        .chain(policies)
        .collect()
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
            joined("inline,workqueue:no_read_workqueue,same_cpu_crypt,adaptive,inline").unwrap();
        assert_eq!(
            policies,
            [
                "inline",
                "workqueue:no_read_workqueue,same_cpu_crypt",
                "adaptive"
            ]
        );
    }

    #[test]
    fn what_is_neither_is_refused_with_advice() {
        for (text, advice) in [
            ("same_cpu_crypt", "workqueue:same_cpu_crypt"),
            ("inline,same_cpu_crypt", "workqueue:same_cpu_crypt"),
            ("inlien", "use inline, workqueue, adaptive"),
            ("", "use inline"),
        ] {
            let message = joined(text).unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
    }

    #[test]
    fn only_a_lone_adaptive_gets_baselines() {
        let one = |name: &str| vec![name.to_owned()];
        assert_eq!(
            with_baselines(one("adaptive"), false),
            ["inline", "workqueue", "adaptive"]
        );
        assert_eq!(with_baselines(one("adaptive"), true), ["adaptive"]);
        assert_eq!(with_baselines(one("workqueue"), false), ["workqueue"]);
    }
}
