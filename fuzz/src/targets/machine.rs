//! Machines of the simulator.

#![forbid(unsafe_code)]

use crypt_bench::simulate::Machine;

use super::{check_message, files, toml_pieces};

/// Reads a machine.
///
/// # Panics
/// Where it prints as another one.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let machine = match Machine::parse(text) {
        Ok(machine) => machine,
        Err(message) => {
            check_message(&message, text.len());
            return false;
        }
    };
    assert_eq!(
        Machine::parse(&machine.to_toml()),
        Ok(machine.clone()),
        "prints as another one"
    );
    assert!(machine.cpus() > 0);
    for at in [0.0, 0.3, 1.0] {
        assert!(machine.hand_off.asleep_ns_at(at).is_finite());
    }
    assert!(machine.hand_off.asleep_ns_mean().is_finite());
    for name in machine.cipher.keys() {
        assert!(machine.cipher(name).is_ok(), "{name}");
    }
    true
}

/// The program's own.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    files("../benches/machines", ".toml")
}

/// Lines of machines.
#[must_use]
pub fn pieces() -> Vec<String> {
    let mut pieces = toml_pieces(&[
        "name",
        "cores",
        "threads-per-core",
        "smt-share",
        "nodes",
        "encrypt-ns-per-byte",
        "call-ns",
        "node-factor",
        "copies",
        "wakes-by",
        "asleep-ns",
        "wake-asleep-self-ns",
        "spin-ns",
        "slice-ns",
        "switch-ns",
        "doze-ns",
    ]);
    let sections = [
        "cpu",
        "cipher.x",
        "request",
        "memory",
        "device",
        "hand-off",
        "scheduler",
    ];
    pieces.extend(sections.map(|name| format!("\n[{name}]\n")));
    pieces
}
