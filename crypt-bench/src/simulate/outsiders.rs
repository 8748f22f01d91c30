//! How many CPUs the threads outside the pool keep busy: as `crypt_core::exec` counts them, in virtual time.

#![forbid(unsafe_code)]

/// Threads that issue requests or write, and run now. A thread is known by the CPU that it is bound to; those
/// that are bound to one CPU share it.
#[derive(Debug)]
pub(super) struct Outsiders {
    /// Threads bound to each CPU that run.
    bound: Box<[u32]>,
    /// Threads that run anywhere.
    others: u32,
}

impl Outsiders {
    /// Threads that all run, on a machine of so many CPUs.
    pub(super) fn new(cpus: u32, threads: impl IntoIterator<Item = Option<usize>>) -> Self {
        let mut outsiders = Self {
            bound: vec![0; cpus as usize].into(),
            others: 0,
        };
        for cpu in threads {
            *outsiders.on(cpu) += 1;
        }
        outsiders
    }

    /// A thread begins to run.
    pub(super) fn runs(&mut self, cpu: Option<usize>) {
        *self.on(cpu) += 1;
    }

    /// A thread goes to sleep.
    pub(super) fn sleeps(&mut self, cpu: Option<usize>) {
        *self.on(cpu) -= 1;
    }

    /// CPUs that are busy with them.
    pub(super) fn count(&self) -> u32 {
        self.others + self.bound.iter().filter(|&&threads| threads > 0).count() as u32
    }

    /// Whether a running thread shares its CPU with another one.
    pub(super) fn is_crowded(&self, cpu: Option<usize>) -> bool {
        cpu.is_some_and(|cpu| self.bound[cpu] > 1)
    }

    fn on(&mut self, cpu: Option<usize>) -> &mut u32 {
        match cpu {
            Some(cpu) => &mut self.bound[cpu],
            None => &mut self.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_bound_to_one_cpu_count_once() {
        let mut outsiders = Outsiders::new(4, [Some(0), Some(0), Some(3), None]);
        assert_eq!(outsiders.count(), 3);
        assert!(outsiders.is_crowded(Some(0)) && !outsiders.is_crowded(Some(3)));
        assert!(!outsiders.is_crowded(None));
        outsiders.sleeps(Some(0));
        assert_eq!(outsiders.count(), 3);
        outsiders.sleeps(Some(0));
        outsiders.runs(None);
        assert_eq!(outsiders.count(), 3);
        assert!(!outsiders.is_crowded(Some(0)));
    }
}
