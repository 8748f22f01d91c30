#!/usr/bin/env bash
# Compares AES-256-XTS with OpenSSL, AWS-LC and xts-mode: one thread, sectors of 512 bytes and 4 KiB, the same
# buffers in turns in one process; then with the C libraries held down to VAES with AVX2, and to AES-NI.
# Builds the C libraries (a C compiler, perl, make; some minutes). --criterion: with criterion's statistics instead.

set -euo pipefail
cd "$(dirname "$0")/../benches/peers"

case "${1-}" in
"") exec cargo run -q --release ;;
--criterion) exec cargo bench ;;
*)
    sed -n '2,/^$/s/^# \{0,1\}//p' "../../scripts/$(basename "$0")"
    [ "$1" = --help ]
    ;;
esac
