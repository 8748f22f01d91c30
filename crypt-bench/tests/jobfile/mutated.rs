//! Job files with random damage: read, or refused in words; never a panic, a hang or a huge answer.

#![forbid(unsafe_code)]

use std::fs;

use crypt_bench::generate::Random;
use crypt_bench::jobfile::{self, place::Plan};

use crate::common::{Folder, folder, names};

/// Damaged copies of each file.
const COPIES: u32 = 60;

/// Pieces that job files are made of.
const PIECES: &[&str] = &[
    "[",
    "]",
    "=",
    "\n",
    ";",
    "#",
    "${",
    "}",
    "$ncpus",
    "*",
    "(",
    ")",
    "%",
    ":",
    ",",
    "/",
    "-",
    "0x",
    "9999999999999999999999",
    "k",
    "KiB",
    "[global]\n",
    "include ",
    "\0",
    "é",
    "-1",
    "\\",
    "bs=",
    "99p",
];

#[test]
fn damaged_job_files_are_read_or_refused() {
    let mut random = Random::new(0x0f10);
    let (mut read, mut refused) = (0, 0);
    for name in names() {
        let text = fs::read_to_string(folder().join(&name)).unwrap();
        for _ in 0..COPIES {
            let mut damaged = text.clone();
            for _ in 0..=random.below(4) {
                damage(&mut damaged, &mut random);
            }
            let mut surroundings = Folder::default();
            surroundings.replaced.insert(name.clone(), damaged);
            let jobs = jobfile::load(std::slice::from_ref(&name), &[], &surroundings);
            match jobs.and_then(|jobs| Plan::new(jobs, &|_| Ok(Some(1 << 20)))) {
                Ok(_) => read += 1,
                Err(refusal) => {
                    refused += 1;
                    let message = refusal.to_string();
                    assert!(message.len() > 10, "{message}");
                }
            }
        }
    }
    assert!(
        read > 100 && refused > 100,
        "{read} read, {refused} refused"
    );
}

/// Removes, doubles or inserts something somewhere.
fn damage(text: &mut String, random: &mut Random) {
    let at = boundary(text, random);
    match random.below(4) {
        0 => {
            let end = boundary(text, random);
            text.replace_range(at.min(end)..(at.min(end) + 3).min(at.max(end)), "");
        }
        1 => {
            let line = text[..at].lines().last().unwrap_or_default().to_owned();
            text.insert_str(at, &line);
        }
        _ => text.insert_str(at, PIECES[random.below(PIECES.len() as u32) as usize]),
    }
}

/// A place between two characters.
fn boundary(text: &str, random: &mut Random) -> usize {
    let wanted = random.below(text.len() as u32 + 1) as usize;
    (0..=wanted)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}
