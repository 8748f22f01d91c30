//! Traces of requests: fio's iologs, and what blkparse prints.
//!
//! The first byte of an input says how the trace is changed, the rest is the trace.

#![forbid(unsafe_code)]

use crypt_bench::trace::{Changes, Kind, Reader, Stage, Summary};

/// Reads a trace twice: summed up, and event by event.
///
/// # Panics
/// Where events make no sense, or the two readings differ.
pub fn check(input: &[u8]) -> bool {
    let Some((how, text)) = input.split_first() else {
        return false;
    };
    let changes = changes(*how);
    let summary = match Reader::new(text, changes.clone()).and_then(Summary::of) {
        Ok(summary) => summary,
        Err(error) => {
            let lines = text.split(|byte| *byte == b'\n').count() as u64;
            assert!(
                (1..=lines).contains(&error.line),
                "line {} of {lines}",
                error.line
            );
            assert!(error.message.len() > 5, "says little: {}", error.message);
            return false;
        }
    };
    let Ok(reader) = Reader::new(text, changes.clone()) else {
        panic!("refused the second time");
    };
    check_events(reader, &changes, &summary);
    summary.reads + summary.writes > 0
}

/// The traces of the tests, with each change.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let folder = "../crypt-bench/tests/jobs/parts";
    let traces = [".log", "blocks.txt"]
        .map(|end| super::files(folder, end))
        .concat();
    let changed = |trace: &Vec<u8>| [0, 4, 0x12].map(|how| [&[how], trace.as_slice()].concat());
    traces.iter().flat_map(changed).collect()
}

/// Words and numbers of traces.
#[must_use]
pub fn pieces() -> Vec<String> {
    let pieces = [
        "fio version 2 iolog\n",
        "fio version 3 iolog\n",
        "0 c add\n",
        "0 c open\n",
        "c add\n",
        "c open\n",
        "c close\n",
        "c read 0 4096\n",
        "c write 4096 512\n",
        "5 c read 8192 512\n",
        "18446744073709551615 c read 0 512\n",
        "c wait 18446744073709551615 0\n",
        "c wait 1000\n",
        "c sync 0 0\n",
        "c datasync\n",
        "c trim 0 4096\n",
        "8,0 0 1 0.000000000 7 Q R 8 + 8 [x]\n",
        "253,1 0 1 18446744073709.551615 7 Q WS 9007199254740991 + 8 [x]\n",
        "8,0 0 1 5.999999999 7 D FWFS 0 + 1 [x]\n",
        "8,0 0 1 5.999999999 7 Q FWS [x]\n",
        "CPU0 (8,0):\n",
        "\n",
        " ",
        "\0",
        "\r\n",
        "9223372036854775296",
        "2147483136",
        "-1",
        "+1",
        "é",
    ];
    pieces.map(str::to_owned).to_vec()
}

/// Scale, alignment, kinds left out and where requests are taken, from the bits of a byte.
fn changes(how: u8) -> Changes {
    let kinds = [Kind::Read, Kind::Write, Kind::Sync, Kind::Trim];
    let skipped = kinds.into_iter().enumerate();
    let skipped = skipped.filter(|(bit, _)| how & 0x10 << bit != 0);
    Changes {
        scale: u64::from(how & 3),
        align_bytes: if how & 4 == 0 { 0 } else { 4096 },
        skip: skipped.map(|(_, kind)| kind).collect(),
        unit_bytes: if how & 8 == 0 { 512 } else { 4096 },
        stage: if how & 3 == 3 {
            Stage::Issued
        } else {
            Stage::Queued
        },
    }
}

fn check_events(mut reader: Reader<&[u8]>, changes: &Changes, summary: &Summary) {
    let (mut bytes, mut counts, mut last_us) = (0_u64, [0; 3], 0);
    while let Ok(Some(event)) = reader.next_event() {
        assert!(event.after_us >= last_us, "time goes back");
        last_us = event.after_us;
        let unit = changes.unit_bytes;
        assert!(
            (event.offset_bytes | event.len_bytes).is_multiple_of(unit),
            "{event:?}"
        );
        let mut files = summary.files.iter();
        let file = files.find(|file| file.number == event.file);
        let end_bytes = file.map_or(0, |file| file.end_bytes);
        assert!(
            event.offset_bytes + event.len_bytes <= end_bytes,
            "{event:?}"
        );
        assert!(event.len_bytes <= summary.longest_bytes, "{event:?}");
        assert!(
            !changes.skip.contains(&event.kind),
            "{event:?} was to be left out"
        );
        assert!(event.file < reader.files().count(), "{event:?}");
        bytes = bytes.saturating_add(event.len_bytes);
        counts[match event.kind {
            Kind::Read => 0,
            Kind::Write => 1,
            _ => 2,
        }] += 1;
    }
    assert_eq!(counts, [summary.reads, summary.writes, summary.syncs]);
    assert_eq!((bytes, last_us), (summary.bytes, summary.length_us));
}
