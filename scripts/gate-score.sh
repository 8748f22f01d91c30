#!/usr/bin/env bash
# How often a gate on this machine is wrong, and what it finds: a pool of A/A measurements, gates tried out on it, and live
# ones. --help says more.

set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
usage: scripts/gate-score.sh [OPTION]...

  --matrix FILE   what is measured: a TOML file, or a preset (default: gate, 24 cells)
  --metric LIST   what is judged (default: bw_bytes_per_s)
  --slices N      parts that the pool is measured in (default 4)
  --repeats N     repeats of each side in a slice (default 12)
  --live N        gates that are measured by themselves, the program against itself (default 0)
  --out DIR       where results go, and stay (default reports/gate-score)
  --bench PATH    the program (default: target/release/crypt-bench, which is built)
  --lock CMD      a command to run each measurement under, as `flock FILE`
  --help          this text

Prints the noise of every figure; of 300 gates on the pool, those that call a regression where there is none, and those that
find one cell slowed down by 10 %, and then 5 % where nothing is allowed; and the verdicts of the live ones.
Exit status 1 where a regression is called that is none.
END
}

fail() {
    echo "gate-score: $*" >&2
    exit 2
}

number() { [[ $2 =~ ^[0-9]+$ ]] || fail "$1 $2: give a number"; }

matrix=gate metric=bw_bytes_per_s slices=4 repeats=12 live=0 out=reports/gate-score bench='' lock=()
while [ $# -gt 0 ]; do
    case $1 in
    --help) usage && exit 0 ;;
    --matrix | --metric | --slices | --repeats | --live | --out | --bench | --lock)
        [ $# -ge 2 ] || fail "$1 needs a value"
        ;;&
    --matrix) matrix=$2 ;;
    --metric) metric=$2 ;;
    --slices) number "$1" "$2" && slices=$2 ;;
    --repeats) number "$1" "$2" && repeats=$2 ;;
    --live) number "$1" "$2" && live=$2 ;;
    --out) out=$2 ;;
    --bench) bench=$2 ;;
    --lock) read -ra lock <<<"$2" ;;
    *) fail "$1: unknown option; see --help" ;;
    esac
    shift 2
done
[ ! -e "$out" ] || fail "$out is there already; name another --out"
if [ -z "$bench" ]; then
    cd "$(dirname "$0")/.."
    cargo build --release -p crypt-bench
    bench=target/release/crypt-bench
fi

mkdir -p "$out"
baseline=() candidate=()
for ((slice = 1; slice <= slices; slice++)); do
    "${lock[@]}" "$bench" noise --matrix "$matrix" --repeats "$repeats" --out "$out/slice-$slice" --decisions 0 \
        --metric "$metric" >/dev/null
    baseline+=("$out/slice-$slice/baseline")
    candidate+=("$out/slice-$slice/candidate")
done
"$bench" merge "${baseline[@]}" --out "$out/baseline"
"$bench" merge "${candidate[@]}" --out "$out/candidate"

wrong=0
for allowed in "10% 5%" "5% 0%"; do
    read -r effect share <<<"$allowed"
    printf '\n== a slow-down of %s in one cell, where %s are allowed\n' "$effect" "$share"
    "$bench" noise "$out/baseline" "$out/candidate" --metric "$metric" --effect "$effect" --max-regress "$share" \
        >"$out/noise-$effect.txt"
    cat "$out/noise-$effect.txt"
    grep -q ': 0 of 300 gates called a regression' "$out/noise-$effect.txt" || wrong=1
done

declare -A verdicts=()
for ((gate = 1; gate <= live; gate++)); do
    "${lock[@]}" "$bench" gate run --baseline-bin "$bench" --candidate-bin "$bench" --matrix "$matrix" --metric "$metric" \
        --repeats "$repeats" --out "$out/live-$gate" --json "$out/live-$gate.json" >/dev/null || wrong=1
    verdict=$(sed -n 's/^  "verdict": "\(.*\)",$/\1/p' "$out/live-$gate.json" | head -n 1)
    verdicts[$verdict]=$((${verdicts[$verdict]:-0} + 1))
done
[ "$live" -eq 0 ] || printf '\n== live gates of the program against itself\n'
for verdict in "${!verdicts[@]}"; do echo "$verdict: ${verdicts[$verdict]} of $live"; done
exit "$wrong"
