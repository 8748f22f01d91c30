//! Which policy, in writing: `inline`, `workqueue:no_read_workqueue,same_cpu_crypt`, `adaptive`,
//! `adaptive:latency,max_workers=2`.
//!
//! Parsing and printing are inverse; flags print in one order whatever the order they came in.
#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use super::{Adaptive, AdaptiveOptions, Inline, OffloadRules, Policy, Workqueue, WorkqueueFlags};
use crate::error::{Error, ErrorKind, Result};

/// A policy's name and flags. [`PolicySpec::build`] makes one instance per queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicySpec {
    /// Everything on the queue's thread.
    #[default]
    Inline,
    /// Everything on workers, as dm-crypt does, with dm-crypt's flags.
    Workqueue(WorkqueueFlags),
    /// Each job where it is expected to end soonest, or what else its objective is, within its limits.
    Adaptive(AdaptiveOptions),
}

impl PolicySpec {
    /// Every policy without flags, for conformance suites.
    pub const ALL: [Self; 3] = [
        Self::Inline,
        Self::Workqueue(WorkqueueFlags::empty()),
        Self::Adaptive(AdaptiveOptions::new()),
    ];

    /// A fresh policy for one queue.
    #[must_use]
    pub fn build(&self) -> Box<dyn Policy> {
        match *self {
            Self::Inline => Box::new(Inline),
            Self::Workqueue(flags) => Box::new(Workqueue::new(flags)),
            Self::Adaptive(options) => Box::new(Adaptive::new(options)),
        }
    }

    /// Whether the policy ever hands off, so that a pool of workers is worth starting.
    #[must_use]
    pub fn needs_workers(&self) -> bool {
        match self {
            Self::Inline => false,
            Self::Workqueue(flags) => !flags.contains(
                WorkqueueFlags::NO_READ_WORKQUEUE.union(WorkqueueFlags::NO_WRITE_WORKQUEUE),
            ),
            Self::Adaptive(_) => true,
        }
    }

    /// How queues treat what the policy hands off; also says how the workers should be started.
    #[must_use]
    pub fn rules(&self) -> OffloadRules {
        self.build().offload_rules()
    }

    const fn base_name(&self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Workqueue(_) => "workqueue",
            Self::Adaptive(_) => "adaptive",
        }
    }

    /// The policy of this name with these flags.
    fn with_flags(self, flags: &str) -> Result<Self> {
        match self {
            Self::Inline => Err(no_flags(&self, flags)),
            Self::Workqueue(_) => WorkqueueFlags::parse(flags).map(Self::Workqueue),
            Self::Adaptive(_) => AdaptiveOptions::parse(flags).map(Self::Adaptive),
        }
    }

    /// Whether a word is a flag of some policy, rather than a policy: what stands between commas in a list of
    /// policies may be either.
    #[must_use]
    pub fn is_flag(word: &str) -> bool {
        let name = |flag: &str| flag.split('=').next() == word.split('=').next();
        let adaptive = AdaptiveOptions::FLAGS.into_iter().any(name);
        adaptive || WorkqueueFlags::NAMES.iter().any(|(flag, _)| name(flag))
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base_name())?;
        let flags = match self {
            Self::Inline => String::new(),
            Self::Workqueue(flags) => flags.names().join(","),
            Self::Adaptive(options) => options.to_string(),
        };
        if flags.is_empty() {
            return Ok(());
        }
        write!(f, ":{flags}")
    }
}

impl FromStr for PolicySpec {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a name or flag that doesn't exist, with those that do, and for flags that
    /// contradict each other.
    fn from_str(text: &str) -> Result<Self> {
        let (name, flags) = match text.split_once(':') {
            Some((name, flags)) => (name, Some(flags)),
            None => (text, None),
        };
        let base = Self::ALL.into_iter().find(|spec| spec.base_name() == name);
        let base = base.ok_or_else(|| unknown_policy(name))?;
        match flags {
            None => Ok(base),
            Some(flags) => base.with_flags(flags),
        }
    }
}

fn unknown_policy(name: &str) -> Error {
    let names = PolicySpec::ALL.map(|spec| spec.base_name()).join(", ");
    let context = format!("no policy is called '{name}'; there are {names}");
    Error::new(ErrorKind::InvalidInput, context)
}

fn no_flags(spec: &PolicySpec, flags: &str) -> Error {
    let name = spec.base_name();
    let context = format!(
        "the policy '{name}' has no flags, so '{flags}' can't be one; write '{name}' alone"
    );
    Error::new(ErrorKind::InvalidInput, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_flags_come_in_one_order() {
        for text in [
            "inline",
            "workqueue",
            "adaptive",
            "workqueue:same_cpu_crypt",
            "adaptive:latency",
            "adaptive:throughput,max_workers=2",
            "adaptive:max_cpu=50",
            "adaptive:efficiency,max_workers=65535,max_cpu=100",
        ] {
            assert_eq!(text.parse::<PolicySpec>().unwrap().to_string(), text);
        }
        let spec: PolicySpec = "workqueue:no_write_workqueue,high_priority"
            .parse()
            .unwrap();
        assert_eq!(
            spec.to_string(),
            "workqueue:high_priority,no_write_workqueue"
        );
        assert_eq!(spec.build().name(), spec.to_string());
        let spec: PolicySpec = "adaptive:max_cpu=7,max_workers=3,latency".parse().unwrap();
        assert_eq!(spec.to_string(), "adaptive:latency,max_workers=3,max_cpu=7");
        assert_eq!(spec.build().name(), spec.to_string());
        let spec: PolicySpec = "adaptive:balanced".parse().unwrap();
        assert_eq!(spec.to_string(), "adaptive");
    }

    #[test]
    fn every_combination_of_flags_round_trips() {
        for bits in 0..=WorkqueueFlags::all().bits() {
            let spec = PolicySpec::Workqueue(WorkqueueFlags::from_bits_retain(bits));
            assert_eq!(spec.to_string().parse::<PolicySpec>().unwrap(), spec);
        }
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let message = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert!(message("inlined").contains("inline, workqueue, adaptive"));
        assert!(message("").contains("inline, workqueue, adaptive"));
        assert!(message("workqueue:fast").contains("submit_from_crypt_cpus"));
        assert!(message("workqueue:").contains("no flag ''"));
        assert!(message("inline:fast").contains("has no flags"));
    }

    #[test]
    fn flags_of_the_adaptive_policy_are_refused_with_advice() {
        for (flags, advice) in [
            (
                "fast",
                "balanced, latency, throughput, efficiency, max_workers=N, max_cpu=PERCENT",
            ),
            ("", "no flag ''"),
            ("latency=1", "no flag 'latency=1'"),
            ("same_cpu_crypt", "no flag 'same_cpu_crypt'"),
            (
                "latency,efficiency",
                "list adaptive:latency and adaptive:efficiency",
            ),
            ("balanced,latency", "one objective"),
            ("max_workers", "from 1 to 65535"),
            ("max_workers=0", "from 1 to 65535"),
            ("max_workers=+1", "from 1 to 65535"),
            ("max_workers=65536", "from 1 to 65535"),
            ("max_cpu=101", "from 1 to 100"),
            ("max_cpu=50%", "from 1 to 100"),
            ("max_cpu=1,max_cpu=1", "max_cpu twice"),
        ] {
            let spec = format!("adaptive:{flags}").parse::<PolicySpec>();
            let message = spec.unwrap_err().to_string();
            assert!(message.contains(advice), "{message}");
        }
        assert!("adaptive:latency,latency".parse::<PolicySpec>().is_ok());
    }

    #[test]
    fn words_of_lists_are_flags_or_policies() {
        for flag in ["latency", "max_cpu=", "max_workers=3", "same_cpu_crypt"] {
            assert!(PolicySpec::is_flag(flag), "{flag}");
        }
        for other in ["inline", "adaptive", "adaptive:latency", "raw", ""] {
            assert!(!PolicySpec::is_flag(other), "{other}");
        }
    }

    #[test]
    fn only_policies_that_hand_off_need_workers() {
        let needs = |text: &str| text.parse::<PolicySpec>().unwrap().needs_workers();
        assert!(!needs("inline"));
        assert!(!needs("workqueue:no_read_workqueue,no_write_workqueue"));
        assert!(needs("workqueue:no_read_workqueue"));
        assert!(needs("adaptive"));
    }
}
