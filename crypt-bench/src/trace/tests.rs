//! Traces as fio writes them, and nonsense.

#![forbid(unsafe_code)]

use super::*;
use proptest::prelude::*;

fn changes() -> Changes {
    Changes {
        scale: 1,
        align_bytes: 1,
        skip: Vec::new(),
        unit_bytes: 512,
        stage: Stage::Queued,
    }
}

fn events(text: &str, changes: Changes) -> Result<Vec<Event>, TraceError> {
    let mut reader = Reader::new(text.as_bytes(), changes)?;
    let mut events = Vec::new();
    while let Some(event) = reader.next_event()? {
        events.push(event);
    }
    Ok(events)
}

const THREE: &str = "fio version 3 iolog\n0 /d add\n0 /d open\n50 /d read 4096 4096\n\
                     250 /d write 0 8192\n240 /d datasync 0 0\n900 /d close\n";

#[test]
fn both_versions_are_understood() {
    let read = events(THREE, changes()).unwrap();
    let seen: Vec<_> = read
        .iter()
        .map(|event| {
            (
                event.after_us,
                event.kind,
                event.offset_bytes,
                event.len_bytes,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (0, Kind::Read, 4096, 4096),
            (200, Kind::Write, 0, 8192),
            (200, Kind::Sync, 0, 0)
        ]
    );
    let two = "fio version 2 iolog\n/d add\n/d open\n/d wait 70 0\n/d read 0 512\n\n/d wait 30 0\n\
               /d wait 5 0\n/d sync 0 0\n/d close\n";
    let times: Vec<u64> = events(two, changes())
        .unwrap()
        .iter()
        .map(|event| event.after_us)
        .collect();
    assert_eq!(times, [0, 35]);
}

#[test]
fn offsets_are_scaled_then_aligned_and_kinds_left_out() {
    let changed = Changes {
        scale: 3,
        align_bytes: 1024,
        skip: vec![Kind::Write],
        ..changes()
    };
    let read = events(THREE, changed).unwrap();
    assert_eq!((read.len(), read[0].offset_bytes), (2, 1024));
    let trims = "fio version 2 iolog\n/d add\n/d open\n/d trim 0 512\n";
    let error = events(trims, changes()).unwrap_err().to_string();
    assert!(
        error.starts_with("line 4: trims") && error.contains("replay_skip=trim"),
        "{error}"
    );
    let skip = vec![Kind::Trim];
    assert_eq!(events(trims, Changes { skip, ..changes() }), Ok(Vec::new()));
}

#[test]
fn what_is_malformed_is_refused_with_its_line() {
    for (lines, place, reason) in [
        ("", "line 3", ""),
        ("/d read 0", "line 4", "length is missing"),
        ("/d read 0 512 1", "line 4", "more than"),
        ("/d read x 512", "line 4", "`x` is not a whole number"),
        ("/d read +1 512", "line 4", "not a whole number"),
        (
            "/d read 99999999999999999999 512",
            "line 4",
            "not a whole number",
        ),
        ("/d read 18446744073709551104 512", "line 4", "63 bits"),
        ("/d read 0 0", "line 4", "length of 0 bytes"),
        ("/d read 0 100", "line 4", "length of 100 bytes"),
        ("/d read 100 512", "line 4", "add replay_align=512"),
        ("/d jump 0 512", "line 4", "`jump`: use"),
        ("/e read 0 512", "line 4", "was not added"),
        ("/d close\n/d read 0 512", "line 5", "is not open"),
        ("/d", "line 4", "write FILE"),
    ] {
        let text = format!("fio version 2 iolog\n/d add\n/d open\n{lines}\n");
        match events(&text, changes()) {
            Ok(read) => assert!(lines.is_empty() && read.is_empty(), "{lines}"),
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.starts_with(place) && error.contains(reason),
                    "{lines}: {error}"
                );
            }
        }
    }
    for text in ["", "\u{7}tae binary", "fio version 1 iolog\n"] {
        let error = events(text, changes()).unwrap_err().to_string();
        assert!(error.starts_with("line 1: a trace begins with"), "{error}");
    }
    let wait = "fio version 3 iolog\n0 /d add\n1 /d wait 5 0\n";
    assert!(
        events(wait, changes())
            .unwrap_err()
            .message
            .contains("times instead of `wait`")
    );
    let long = format!("fio version 2 iolog\n{}", "x".repeat(10_000));
    assert!(
        events(&long, changes())
            .unwrap_err()
            .message
            .contains("longer than")
    );
}

#[test]
fn a_summary_counts_everything() {
    let reader = Reader::new(THREE.as_bytes(), changes()).unwrap();
    let summary = Summary::of(reader).unwrap();
    assert_eq!((summary.reads, summary.writes, summary.syncs), (1, 1, 1));
    assert_eq!(
        (summary.bytes, summary.longest_bytes, summary.end_bytes()),
        (12_288, 8192, 8192)
    );
    assert_eq!(
        (summary.files[0].name.as_str(), summary.length_us),
        ("/d", 200)
    );
}

/// A trace of two devices as blkparse prints it, with the figures at its end.
const BLOCKS: &str = "  8,0    0        1     0.000000500   697  Q   W 223490 + 8 [kjournald]
  8,0    0        2     0.000001000   697  G   W 223490 + 8 [kjournald]
  8,0    0        4     0.000100000   697  Q  RS 8 + 16 [kjournald]
  8,0    0        6     0.000200000   697  Q FWS [kjournald]
  8,0    0        7     0.000300000   697  C   W 223490 + 8 [0]
253,1    0       10     1.000300000   697  Q   R 16 + 8 [kjournald]
CPU0 (t):
 Reads Queued:           2,       12KiB\t Writes Queued:           4,       68KiB

Throughput (R/W): 0KiB/s / 4KiB/s
";

#[test]
fn block_traces_are_understood_as_they_are_printed() {
    let mut reader = Reader::new(BLOCKS.as_bytes(), changes()).unwrap();
    assert!(reader.is_of_devices());
    let mut seen = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        seen.push((
            event.after_us,
            event.kind,
            event.file,
            event.offset_bytes,
            event.len_bytes,
        ));
    }
    let expected = [
        (0, Kind::Write, 0, 223_490 * 512, 4096),
        (100, Kind::Read, 0, 4096, 8192),
        (200, Kind::Sync, 0, 0, 0),
        (1_000_300, Kind::Read, 1, 8192, 4096),
    ];
    assert_eq!(seen, expected);
    let names: Vec<&str> = reader.files().collect();
    assert_eq!(names, ["/dev/block/8:0", "/dev/block/253:1"]);
    let broken = BLOCKS.replace("CPU0", "oops");
    let error = events(&broken, changes()).unwrap_err().to_string();
    assert!(error.starts_with("line 7: `oops`"), "{error}");
    let discard = "8,0 0 9 1.000200000 697 Q   D 4096 + 128 [x]\n";
    let error = events(discard, changes()).unwrap_err().to_string();
    assert!(
        error.starts_with("line 1: trims can't be played"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn no_text_panics(lines in proptest::collection::vec("[/d0-9a-z .+-]{0,40}", 0..20), three: bool) {
        let version = if three { 3 } else { 2 };
        let text = format!("fio version {version} iolog\n{}", lines.join("\n"));
        let _ = events(&text, changes());
        let lines: Vec<String> = lines.iter().map(|line| format!("8,0 1 1 0.000000001 9 Q {line}\n")).collect();
        let _ = events(&lines.concat(), changes());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut input = b"fio version 2 iolog\n".to_vec();
        input.extend(bytes);
        if let Ok(mut reader) = Reader::new(input.as_slice(), changes()) {
            while let Ok(Some(_)) = reader.next_event() {}
        }
    }
}
