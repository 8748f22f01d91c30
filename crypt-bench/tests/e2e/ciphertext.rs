//! What `file:` writes is decrypted by an independent implementation: Python's `cryptography`.

#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;

use crate::common::{Place, text};

/// Decrypts an image sector by sector with its key, and checks that every block is the stream of a
/// slot: SplitMix64 in little-endian from the seed of the cell plus the number of the slot.
const CHECK: &str = r#"
import struct, sys
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

image, key, sector, block, depth, seed = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7])
key = open(key, "rb").read()
M = (1 << 64) - 1

def stream(state, length):
    out = bytearray()
    while len(out) < length:
        state = (state + 0x9E3779B97F4A7C15) & M
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
        out += struct.pack("<Q", z ^ (z >> 31))
    return bytes(out[:length])

slots = {stream(seed + slot, block): slot for slot in range(depth)}
data = open(image, "rb").read()
used = set()
for start in range(0, len(data), block):
    plain = b""
    for offset in range(start, start + block, sector):
        tweak = struct.pack("<QQ", offset // 512, 0)
        cipher = Cipher(algorithms.AES(key), modes.XTS(tweak)).decryptor()
        plain += cipher.update(data[offset:offset + sector]) + cipher.finalize()
    assert plain in slots, f"block at byte {start} is not plaintext of any slot"
    used.add(slots[plain])
print(len(data) // block, "blocks,", len(used), "slots")
"#;

#[test]
fn an_independent_implementation_decrypts_what_was_written() {
    let probe = Command::new("python3")
        .args(["-c", "import cryptography"])
        .output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: needs python3 with the module cryptography");
        return;
    }
    for (bits, sector, policy) in [
        (512, 4096, "inline"),
        (512, 512, "adaptive"),
        (256, 512, "workqueue"),
        (256, 4096, "workqueue:no_write_workqueue"),
    ] {
        let place = Place::new();
        let key: Vec<u8> = (0..bits / 8).map(|n| (n * 37 + 11) as u8).collect();
        fs::write(place.path("key"), key).unwrap();
        // Sequential writes over a small image; each block is written twice over.
        let records = place.measure(
            &format!(
                "matrix --device file:disk.img --create --destroy-data-on disk.img --size 256k --rw \
                 write --bs 8k --depth 4 --sector-size {sector} --key-bits {bits} --key-file key \
                 --policy {policy} --only --ramp 0 --repeats 1 --seed 5"
            ),
            |records| records[0].write.as_ref().is_some_and(|write| write.ios >= 64),
        );
        assert_eq!(records[0].achieved.errors, 0);
        let check = Command::new("python3")
            .args(["-c", CHECK])
            .arg(place.path("disk.img"))
            .arg(place.path("key"))
            .args([&sector.to_string(), "8192", "4", "5"])
            .output()
            .unwrap();
        assert!(check.status.success(), "{policy}: {}", text(&check.stderr));
        assert!(
            text(&check.stdout).starts_with("32 blocks"),
            "{}",
            text(&check.stdout)
        );
    }
}
