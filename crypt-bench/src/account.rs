//! What a queue's policy decided within the measured time: a copy of its counters at the start, and the
//! difference at the end. Nothing is allocated.

#![forbid(unsafe_code)]

use crypt_core::policy::{Explanation, Policy};

use crate::record::Window;

/// The decisions of one queue. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    start_ns: u64,
    end_ns: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Before,
    Within(Option<Explanation>),
    After(Option<Explanation>),
}

impl Account {
    /// Of decisions within `window`.
    #[must_use]
    pub fn new(window: &Window) -> Self {
        Self {
            start_ns: window.start_ns,
            end_ns: window.end_ns,
            state: State::Before,
        }
    }

    /// Looks at the policy, whenever there is something to do at `now_ns`.
    #[inline]
    pub fn look(&mut self, now_ns: u64, policy: impl FnOnce() -> Option<Explanation>) {
        let is_edge = match self.state {
            State::Before => now_ns >= self.start_ns,
            State::Within(_) => now_ns >= self.end_ns,
            State::After(_) => false,
        };
        if is_edge {
            self.pass(policy());
        }
    }

    fn pass(&mut self, counted: Option<Explanation>) {
        self.state = match self.state {
            State::Before => State::Within(counted),
            State::Within(before) => {
                let within = before.zip(counted);
                State::After(within.map(|(before, counted)| counted.since(&before)))
            }
            State::After(_) => return,
        };
    }

    /// What was decided; `None` for a policy without counters, or where the time did not end.
    #[must_use]
    pub fn decided(&self) -> Option<&Explanation> {
        match &self.state {
            State::After(decided) => decided.as_ref(),
            State::Before | State::Within(_) => None,
        }
    }
}

/// The counters of a policy, as [`Account::look`] takes them.
#[must_use]
pub fn of(policy: &dyn Policy) -> Option<Explanation> {
    policy.explanation().copied()
}

/// The sum over queues; `None` where none has any.
#[must_use]
pub fn sum<'a>(queues: impl IntoIterator<Item = &'a Account>) -> Option<Explanation> {
    let decided = queues.into_iter().filter_map(Account::decided);
    decided.fold(None, |sum, decided| {
        let mut sum: Explanation = sum.unwrap_or_default();
        sum.absorb(decided);
        Some(sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypt_core::policy::Reason;

    #[test]
    fn only_what_is_decided_within_the_window_counts_once_per_queue() {
        let mut counted = Explanation::default();
        let mut accounts = [Account::new(&Window::new(100, 50)); 2];
        for now_ns in (0..300).step_by(10) {
            for account in &mut accounts {
                account.look(now_ns, || Some(counted));
            }
            counted.decided(4096, Reason::Small, 7.0);
        }
        let sum = sum(&accounts).unwrap();
        // Those after the looks at 100, 110, 120, 130 and 140.
        assert_eq!(sum.decisions().map(|d| d.jobs).sum::<u64>(), 10);
    }

    #[test]
    fn policies_without_counters_and_windows_without_end_have_nothing() {
        let mut account = Account::new(&Window::new(100, 50));
        account.look(120, || Some(Explanation::default()));
        assert_eq!(account.decided(), None);
        let mut account = Account::new(&Window::new(100, 50));
        account.look(120, || None);
        account.look(200, || None);
        assert_eq!((account.decided(), sum([&account])), (None, None));
    }
}
