//! Definitions of matrices, with their cases: TOML in, cells out.

#![forbid(unsafe_code)]

use crypt_bench::definition::Definition;
use crypt_bench::definition::device::DeviceSpec;
use crypt_bench::matrix::{Facts, Matrix};

use super::{check_message, files, toml_pieces};

/// What a definition says.
pub(super) const KEYS: &[&str] = &[
    "device",
    "rw",
    "rwmixread",
    "bs",
    "bssplit",
    "depth",
    "jobs",
    "devices",
    "policy",
    "cipher",
    "key-bits",
    "sector-size",
    "only",
    "issuers",
    "workers",
    "hipri",
    "readahead",
    "direct",
    "engine",
    "cipher-throttle",
    "size",
    "runtime",
    "ramp",
    "slice",
    "repeats",
    "seed",
    "case",
];

/// Reads a definition and multiplies it.
///
/// # Panics
/// Where it prints as another one, or a cell makes no sense.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else {
        return false;
    };
    let definition = match Definition::parse(text) {
        Ok(definition) => definition,
        Err(message) => {
            check_message(&message, text.len());
            return false;
        }
    };
    assert_eq!(
        Definition::parse(&definition.to_toml()),
        Ok(definition.clone()),
        "prints as another one"
    );
    let fallback = Definition::fallback().expect("the program's own default");
    multiplied(&definition.over(fallback), text.len())
}

/// Whether a definition is a matrix.
pub(super) fn multiplied(definition: &Definition, input_bytes: usize) -> bool {
    let facts = Facts {
        cpus: &[0, 1],
        threads_per_core: Some(2),
        size_bytes: &|device| matches!(device, DeviceSpec::File(_)).then_some(1 << 30),
    };
    let matrix = match Matrix::new(definition, &facts) {
        Ok(matrix) => matrix,
        Err(message) => {
            check_message(&message, input_bytes);
            return false;
        }
    };
    assert!(matrix.runs() > 0, "nothing to do");
    for cell in &matrix.cells {
        assert!(
            cell.depth > 0 && cell.jobs > 0 && cell.devices > 0,
            "{cell:?}"
        );
        assert!(
            cell.block_size_bytes > 0 && cell.block_size_bytes <= cell.size_bytes,
            "{cell:?}"
        );
        assert!(
            cell.block_size_bytes
                .is_multiple_of(u64::from(cell.sector_size_bytes)),
            "{cell:?}"
        );
        assert!(
            cell.rwmixread_percent <= 100 && cell.runtime_ms > 0,
            "{cell:?}"
        );
    }
    matrix.plan().len() as u64 == matrix.cells.len() as u64 * matrix.policies.len() as u64
}

/// The program's own, and one with cases.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let cases = "rw = [\"randread\"]\n[[case]]\nbs = [\"4k\"]\ndepth = [1, 4]\n[[case]]\nbssplit = [\"4k/50:8k/50\"]\n\
                 jobs = [\"cpus\"]\n";
    let mut corpus = files("../benches", ".toml");
    corpus.push(cases.as_bytes().to_vec());
    corpus
}

/// Lines of definitions.
#[must_use]
pub fn pieces() -> Vec<String> {
    let mut pieces = toml_pieces(KEYS);
    let lines = [
        "\n[[case]]\n",
        "\npolicy = [\"adaptive\"]\n",
        "\npolicy = [\"raw\", \"workqueue:no_read_workqueue\"]\n",
        "\nrw = [\"randrw\", \"read\"]\n",
        "\ndevice = [\"null\", \"file:/x\", \"model:nvme\"]\n",
        "\ncipher = [\"none\", \"aes-cbc-essiv:sha256\"]\n",
        "\nkey-bits = [256]\n",
        "\nissuers = \"0,1\"\n",
        "\nbssplit = [\"4k/50:8k/50,1m\", \"4k-64k\"]\n",
        "\nslice = \"1ms\"\n",
        "\ncipher-throttle = \"0.2GB/s\"\n",
        "\"cpus\"",
        "\"16t\"",
        "\"30000h\"",
    ];
    pieces.extend(lines.map(str::to_owned));
    pieces
}
