//! What `crypt-bench run` writes: patterns, zeros, data that compresses or repeats.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::fs;

use crate::runner::{place, run, stderr, succeed};

/// What a write of the whole file with these options leaves in it.
fn written(options: &str) -> Vec<u8> {
    let place = place();
    fs::write(place.path().join("text"), "from a file").unwrap();
    let text = format!("[w]\nfilename=disk\nrw=write\nbs=16k\n{options}\n");
    succeed(&place, &text, "--destroy-data-on disk");
    fs::read(place.path().join("disk")).unwrap()
}

fn distinct(data: &[u8], len: usize) -> usize {
    data.chunks(len).collect::<HashSet<_>>().len()
}

#[test]
fn patterns_and_zeros_are_what_is_in_the_file() {
    let pattern = written("buffer_pattern=0xdeadface\"abcd\"'text'");
    let one = b"\xde\xad\xfa\xceabcdfrom a file";
    for block in pattern.chunks(16 << 10) {
        assert!(
            block
                .chunks(one.len())
                .all(|part| part == &one[..part.len()])
        );
    }
    assert!(written("zero_buffers").iter().all(|byte| *byte == 0));
    let compressed = written("buffer_compress_percentage=75\nbuffer_compress_chunk=1k");
    assert!(compressed.chunks(1024).all(|part| part[256..] == [0; 768]));
    assert_eq!(distinct(&compressed, 1024), 1024);
}

#[test]
fn blocks_repeat_unless_they_are_made_anew() {
    assert_eq!(distinct(&written(""), 16 << 10), 1);
    assert_eq!(distinct(&written("refill_buffers"), 16 << 10), 64);
    assert_eq!(distinct(&written("scramble_buffers=1"), 512), 2048);
    let repeated = distinct(&written("dedupe_percentage=50"), 16 << 10);
    assert!((16..48).contains(&repeated), "{repeated}");
    assert_eq!(written("refill_buffers"), written("refill_buffers"));
}

#[test]
fn reads_do_not_leave_their_data_in_what_is_written() {
    let text = "[w]\nfilename=disk\nrw=randrw\nbs=4k\nzero_buffers\ntime_based\nruntime=50ms\n";
    let place = place();
    succeed(&place, text, "--destroy-data-on disk");
    let data = fs::read(place.path().join("disk")).unwrap();
    let whole = |byte: u8| move |block: &&[u8]| block.iter().all(|seen| *seen == byte);
    let zeros = data.chunks(4096).filter(whole(0)).count();
    let old = data.chunks(4096).filter(whole(1)).count();
    assert!(zeros > 0 && zeros + old == 256, "{zeros} {old}");
}

#[test]
fn a_pattern_file_that_is_not_there_is_an_error_with_its_line() {
    let text = "[w]\nfilename=disk\nrw=write\nbuffer_pattern='none'\n";
    let output = run(&place(), text, "--destroy-data-on disk");
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("a.fio:4: buffer_pattern: none: "),
        "{message}"
    );
}
