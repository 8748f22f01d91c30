//! What `run` can't do yet, although `explain` understands it. Pure.

#![forbid(unsafe_code)]

use crate::jobfile::Refusal;
use crate::jobfile::job::{Access, Job};

/// Refuses what can't be done.
///
/// # Errors
/// The first such option, with its line and advice.
pub(super) fn check(jobs: &[Job]) -> Result<(), Refusal> {
    jobs.iter().try_for_each(check_one)
}

fn check_one(job: &Job) -> Result<(), Refusal> {
    let [fsync, fdatasync] = ["fsync", "fdatasync"].map(|name| job.settings.number(name));
    let both = fsync.zip(fdatasync).filter(|(a, b)| *a > 0 && *b > 0);
    if both.is_some_and(|(a, b)| a != b) {
        let message = "fsync and fdatasync at different distances are not supported yet; use one";
        return Err(job.refuse("fdatasync", message));
    }
    if job.hipri && job.access == Access::Null {
        return Err(job.refuse("hipri", "the null engine can't be polled; remove hipri"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobfile::testing::Fake;

    fn check(options: &str) -> Result<(), Refusal> {
        let fake = Fake::default().file("a.fio", &format!("[a]\n{options}\n"));
        let jobs = crate::jobfile::load(&["a.fio".to_owned()], &[], &fake)?;
        super::check(&jobs)
    }

    #[test]
    fn what_cannot_be_done_is_refused_and_what_asks_for_nothing_is_not() {
        assert_eq!(check("fsync=4\nfdatasync=4"), Ok(()));
        for (options, reason) in [
            ("fsync=1\nfdatasync=2", "a.fio:3: fsync and fdatasync"),
            ("ioengine=null\ndirect=1\nhipri", "a.fio:4: the null engine"),
        ] {
            let refusal = check(options).unwrap_err().to_string();
            assert!(refusal.contains(reason), "{refusal}");
        }
    }
}
