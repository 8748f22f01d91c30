#!/usr/bin/env bash
# Holds the simulator against reality: calibrates this machine, measures a matrix on it, simulates the
# same matrix, and says how far apart they are. --help says more.

set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
usage: scripts/validate-simulator.sh [OPTION]... [-- MATRIX OPTION...]

  --bench PATH    the program (default: target/release/crypt-bench, which is built)
  --out DIR       where results go (default: a temporary folder, removed)
  --check         exit with status 1 where a bar is missed
  --help          this text

What stands after -- goes to both `crypt-bench matrix` and `crypt-bench simulate`; the default is
memory and modelled drives, 4k to 1m, depths 1, 4 and 32, under inline, workqueue and adaptive.

Bars: throughput predicted within 15 %, in the mean over cells; of the pairs of policies that differ by more
than the noise of the measurement, the better one named in at least 90 %.
END
}

fail() {
    echo "validate-simulator: $*" >&2
    exit 2
}

bench='' out='' check=no
while (($# > 0)); do
    case $1 in
        --bench) bench=${2:?--bench needs a path} && shift ;;
        --out) out=${2:?--out needs a folder} && shift ;;
        --check) check=yes ;;
        --help) usage && exit 0 ;;
        --) shift && break ;;
        *) usage >&2 && fail "unknown option $1" ;;
    esac
    shift
done
cd "$(dirname "$0")/.."
if [[ -z $bench ]]; then
    cargo build --release -q -p crypt-bench
    bench=target/release/crypt-bench
fi
if [[ -z $out ]]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
mkdir -p "$out"
matrix=("$@")
if ((${#matrix[@]} == 0)); then
    # shellcheck disable=SC2054 # lists of the program, not of the shell
    matrix=(--policy inline,workqueue,adaptive --device memory,model:nvme,model:optane
        --rw randread,randwrite --bs 4k,64k,1m --depth 1,4,32 --sector-size 4k
        --runtime 150ms --ramp 50ms --repeats 5)
fi

"$bench" calibrate -o "$out/machine.toml"
"$bench" matrix "${matrix[@]}" --out "$out/measured" >"$out/measured.txt"
"$bench" simulate --machine "$out/machine.toml" "${matrix[@]}" --out "$out/simulated" >"$out/simulated.txt"
python3 scripts/validate-simulator.py "$out/measured" "$out/simulated" "$check"
