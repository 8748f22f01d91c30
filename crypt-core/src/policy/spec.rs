//! Which policy, in writing: `inline`, `workqueue:no_read_workqueue,same_cpu_crypt`, `adaptive`.
//!
//! Parsing and printing are inverse; flags print in one order whatever the order they came in.
#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use super::{Adaptive, Inline, OffloadRules, Policy, Workqueue, WorkqueueFlags};
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
    /// Each job where it is expected to end soonest.
    Adaptive,
}

impl PolicySpec {
    /// Every policy without flags, for conformance suites.
    pub const ALL: [Self; 3] = [
        Self::Inline,
        Self::Workqueue(WorkqueueFlags::empty()),
        Self::Adaptive,
    ];

    /// A fresh policy for one queue.
    #[must_use]
    pub fn build(&self) -> Box<dyn Policy> {
        match *self {
            Self::Inline => Box::new(Inline),
            Self::Workqueue(flags) => Box::new(Workqueue::new(flags)),
            Self::Adaptive => Box::new(Adaptive::new()),
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
            Self::Adaptive => true,
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
            Self::Adaptive => "adaptive",
        }
    }

    /// The same policy with the flag of this name, or `None` where it has no such flag.
    fn with_flag(self, name: &str) -> Option<Self> {
        match self {
            Self::Workqueue(flags) => WorkqueueFlags::NAMES
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, flag)| Self::Workqueue(flags | *flag)),
            Self::Inline | Self::Adaptive => None,
        }
    }

    /// Names of the flags that the policy knows.
    fn known_flags(&self) -> Vec<&'static str> {
        match self {
            Self::Workqueue(_) => WorkqueueFlags::NAMES
                .iter()
                .map(|(name, _)| *name)
                .collect(),
            Self::Inline | Self::Adaptive => Vec::new(),
        }
    }

    fn flag_names(&self) -> Vec<&'static str> {
        match self {
            Self::Workqueue(set) => {
                let set = WorkqueueFlags::NAMES
                    .iter()
                    .filter(|(_, flag)| set.contains(*flag));
                set.map(|(name, _)| *name).collect()
            }
            Self::Inline | Self::Adaptive => Vec::new(),
        }
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base_name())?;
        let flags = self.flag_names();
        if flags.is_empty() {
            return Ok(());
        }
        write!(f, ":{}", flags.join(","))
    }
}

impl FromStr for PolicySpec {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a name or flag that doesn't exist, with those that do.
    fn from_str(text: &str) -> Result<Self> {
        let (name, flags) = match text.split_once(':') {
            Some((name, flags)) => (name, Some(flags)),
            None => (text, None),
        };
        let base = Self::ALL.into_iter().find(|spec| spec.base_name() == name);
        let base = base.ok_or_else(|| unknown_policy(name))?;
        let Some(flags) = flags else { return Ok(base) };
        flags.split(',').try_fold(base, |spec, flag| {
            spec.with_flag(flag)
                .ok_or_else(|| unknown_flag(&base, flag))
        })
    }
}

fn unknown_policy(name: &str) -> Error {
    let names = PolicySpec::ALL.map(|spec| spec.base_name()).join(", ");
    let context = format!("no policy is called '{name}'; there are {names}");
    Error::new(ErrorKind::InvalidInput, context)
}

fn unknown_flag(spec: &PolicySpec, flag: &str) -> Error {
    let (name, known) = (spec.base_name(), spec.known_flags());
    let context = if known.is_empty() {
        format!("the policy '{name}' has no flags, so '{flag}' can't be one; write '{name}' alone")
    } else {
        format!(
            "the policy '{name}' has no flag '{flag}'; there are {}",
            known.join(", ")
        )
    };
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
    fn only_policies_that_hand_off_need_workers() {
        let needs = |text: &str| text.parse::<PolicySpec>().unwrap().needs_workers();
        assert!(!needs("inline"));
        assert!(!needs("workqueue:no_read_workqueue,no_write_workqueue"));
        assert!(needs("workqueue:no_read_workqueue"));
        assert!(needs("adaptive"));
    }
}
