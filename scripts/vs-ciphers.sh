#!/usr/bin/env bash
# Compares AES-256-XTS with OpenSSL, AWS-LC and xts-mode: one thread, sectors of 512 bytes and 4 KiB, the same
# buffers in turns in one process; then with the C libraries held down to VAES with AVX2, and to AES-NI.
# Builds the C libraries (a C compiler, perl, make; some minutes).
#   --lto        optimise across crates, which helps xts-mode most (builds everything once more)
#   --criterion  with criterion's statistics instead

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../benches/peers"

case "${1-}" in
"") exec cargo run -q --release ;;
--lto) exec cargo run -q --profile lto ;;
--criterion) exec cargo bench ;;
*)
    sed -n '2,/^$/s/^# \{0,1\}//p' ../../scripts/vs-ciphers.sh
    [ "$1" = --help ]
    ;;
esac
