#!/usr/bin/env bash
# Holds the simulator against what others published of dm-crypt with and without workqueues: simulates every
# published table on its machine, and says change by change whether the simulation goes the same way. --help says more.

set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
usage: scripts/validate-published.sh [OPTION]...

  --preset NAME   only this table; may be given several times (default: all that have figures or statements)
  --bench PATH    the program (default: target/release/crypt-bench, which is built)
  --out DIR       where results go (default: a temporary folder, removed)
  --help          this text

Nothing is measured: it all happens in virtual time, in about a minute, and is the same each time. Exit status 10 where
less than 80 % of the published changes beyond the noise of their table are shown, or where
benches/published/misses.toml does not say why one is missed.
END
}

fail() {
    echo "validate-published: $*" >&2
    exit 2
}

presets=() bench='' out=''
while (($# > 0)); do
    case $1 in
        --preset) presets+=("${2:?--preset needs a name}") && shift ;;
        --bench) bench=${2:?--bench needs a path} && shift ;;
        --out) out=${2:?--out needs a folder} && shift ;;
        --help) usage && exit 0 ;;
        *) usage >&2 && fail "unknown option $1" ;;
    esac
    shift
done
[[ -z $out ]] || out=$(realpath -m "$out")
[[ -z $bench ]] || bench=$(realpath "$bench")
cd "$(dirname "$0")/.."
if [[ -z $bench ]]; then
    cargo build --release -q -p crypt-bench
    bench=${CARGO_TARGET_DIR:-target}/release/crypt-bench
fi
if [[ -z $out ]]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
mkdir -p "$out"
((${#presets[@]} > 0)) || presets=(dorminy-ssd dorminy-hdd dorminy-optane korchagin-brd cloudflare-brd
    lemoal-mixed lemoal-null-blk)

runs=()
for preset in "${presets[@]}"; do
    [[ ! -e $out/$preset ]] || fail "$out/$preset is there already: give another --out"
    echo "simulating $preset" >&2
    "$bench" simulate --preset "$preset" --out "$out/$preset" >"$out/$preset.txt" 2>"$out/$preset.log" ||
        fail "see $out/$preset.log: $(tail -n 1 "$out/$preset.log")"
    runs+=("$out/$preset")
done
"$bench" published "${runs[@]}" --check
