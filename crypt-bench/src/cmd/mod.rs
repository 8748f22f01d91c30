//! The subcommands: one file each, with its arguments and a `run` that reads as a list of steps.

#![forbid(unsafe_code)]

pub mod baseline;
pub mod calibrate;
pub mod cipher;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod gate;
pub mod history;
pub mod import;
mod interrupt;
mod key;
pub mod matrix;
pub mod merge;
pub mod noise;
mod output;
pub mod published;
pub mod report;
pub mod run;
pub mod score;
pub mod simulate;
mod surroundings;
mod turns;
