#!/usr/bin/env bash
# Compares what a request costs crypt-bench and fio themselves: both play the same job files on the
# null engine, in turns, recording every latency. Prints medians and ratios. --help says more.

set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
usage: scripts/vs-fio-null.sh [OPTION]...

  --runtime S     seconds of each run (default 1)
  --repeats N     runs of each program (default 7)
  --check         exit with status 1 where a ratio is below its bar
  --help          this text

Rows: 4 KiB random reads at depth 1, 32 and 128, with one job and with two. No cipher stage.

fio is installed with apt-get where it is missing.
END
}

# shellcheck source=scripts/fio-pairs.sh
source "$(dirname "$0")/fio-pairs.sh"

runtime_s=1 repeats=7 check=no
while (($# > 0)); do
    case $1 in
        --runtime) runtime_s=${2:?--runtime needs a number of seconds} && shift ;;
        --repeats) repeats=${2:?--repeats needs a number} && shift ;;
        --check) check=yes ;;
        --help) usage && exit 0 ;;
        *) usage >&2 && fail "unknown option $1" ;;
    esac
    shift
done
[[ $runtime_s =~ ^[1-9][0-9]*$ ]] || fail "--runtime $runtime_s: give whole seconds"
[[ $repeats =~ ^[1-9][0-9]*$ ]] || fail "--repeats $repeats: give a number"

need_fio

cd "$(dirname "$0")/.."
cargo build --release --quiet -p crypt-bench
bench=$(realpath "${CARGO_TARGET_DIR:-target}/release/crypt-bench")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

write_job() {
    cat >"$scratch/null.fio" <<END
[null]
ioengine=null
rw=randread
bs=4k
size=1g
iodepth=$1
numjobs=$2
thread
group_reporting
norandommap
randrepeat=0
time_based
runtime=$runtime_s
END
}

# The reads of a report in fio's JSON; each program gets the same job file.
iops_of() {
    "$@" --output-format=json "$scratch/null.fio" 2>"$scratch/log" |
        awk '/"read" ?: ?\{/ { inside = 1 }
            inside && !iops && /"iops" ?:/ { sub(/.*: */, ""); iops = $0 + 0 }
            END { if (iops + 0 == 0) exit 1; print iops }' || fail "$1 gave no result: $(cat "$scratch/log")"
}

bar=2 missed=0
echo "$(fio --version), $("$bench" --version); $repeats runs of $runtime_s s each, in turns; null engine"
printf '%-20s %14s %14s %8s %6s\n' '4 KiB random reads' 'fio IOPS' 'our IOPS' 'ratio' 'bar'
for jobs in 1 2; do
    for depth in 1 32 128; do
        write_job "$depth" "$jobs"
        : >"$scratch/pairs"
        for ((n = 0; n < repeats; n++)); do
            # Who goes first changes, so that a drift of the machine favours nobody.
            if ((n % 2 == 0)); then
                theirs=$(iops_of fio)
                ours=$(iops_of "$bench" run)
            else
                ours=$(iops_of "$bench" run)
                theirs=$(iops_of fio)
            fi
            awk -v t="$theirs" -v o="$ours" 'BEGIN { print t, o, o / t }' >>"$scratch/pairs"
        done
        ratio=$(column 3)
        printf '%-20s %14.0f %14.0f %8.3f %6s\n' "depth $depth, jobs $jobs" \
            "$(column 1)" "$(column 2)" "$ratio" "$bar"
        is_below "$ratio" "$bar" && missed=$((missed + 1))
    done
done
if [[ $check = yes ]] && ((missed > 0)); then
    echo "vs-fio-null: $missed of 6 rows are below their bar" >&2
    exit 1
fi
