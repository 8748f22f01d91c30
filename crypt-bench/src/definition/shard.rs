//! A part of a matrix, so that several machines or runs share it.

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of so many parts: part 2 of 4 has every fourth cell, from the second one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// Its number, from 1.
    pub number: u32,
    /// How many parts there are.
    pub of: u32,
}

impl Shard {
    /// Its share of all cells, in their order. All parts together have each cell once.
    ///
    /// # Errors
    /// More parts than cells, some of which would be empty.
    pub fn of<T>(self, cells: Vec<T>) -> Result<Vec<T>, String> {
        let count = cells.len();
        if (self.of as usize) > count {
            return Err(format!(
                "--shard {self}: there are only {count} cells; use at most {count} parts"
            ));
        }
        let first = self.number as usize - 1;
        Ok(cells
            .into_iter()
            .skip(first)
            .step_by(self.of as usize)
            .collect())
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u32>().ok();
        let parts = text
            .split_once('/')
            .and_then(|(number_of, of)| Some((number(number_of)?, number(of)?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err(format!(
                "`{text}` is no part: write 1/4 for the first of four, up to 4/4"
            )),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_together_have_each_cell_once() {
        for (cells, of) in [(10, 3), (4, 4), (7, 1)] {
            let all: Vec<u32> = (0..cells).collect();
            let mut seen: Vec<u32> = (1..=of)
                .flat_map(|number| Shard { number, of }.of(all.clone()).unwrap())
                .collect();
            seen.sort_unstable();
            assert_eq!(seen, all);
        }
        let message = Shard { number: 1, of: 5 }.of(vec![0; 4]).unwrap_err();
        assert!(message.contains("only 4 cells"), "{message}");
    }

    #[test]
    fn parts_are_written_as_they_are_read() {
        let shard: Shard = "2/4".parse().unwrap();
        assert_eq!(
            (shard, shard.to_string()),
            (Shard { number: 2, of: 4 }, "2/4".to_owned())
        );
        for wrong in ["0/4", "5/4", "1/0", "1", "a/b", "-1/4", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
