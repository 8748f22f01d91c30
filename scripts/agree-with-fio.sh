#!/usr/bin/env bash
# Holds `crypt-bench run` against fio: the same job files on the same file and loop device, in turns.
# --help says more.

set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
usage: scripts/agree-with-fio.sh [OPTION]...

  --target file|loop  only this target: a file in TMPDIR, or a loop device over a file in /dev/shm (needs
                      root). Default: both
  --only PATTERN      only job files of scripts/agree whose name fits this regular expression: '^0[1-4]'
  --size MIB          size of the targets (default 512)
  --runtime MS        milliseconds of each timed run, after 200 ms of warm-up (default 1000)
  --repeats N         runs of each program (default 7)
  --bench PATH        use this crypt-bench instead of building one
  --check             exit with status 1 where something differs and nothing explains it
  --smoke             one short run of each job, nothing said of times: only bytes and mixes
  --help              this text

Prints the medians of both, and the median of the ratios of neighbouring runs (ours divided by fio's). Bars:
IOPS and p50 within 5 %, p99 within 10 %, the mix within 4 standard deviations of a binomial draw, bytes of jobs
that end by their size exact. Latency is `lat`, from submission to completion. After a ratio,
  ~  beyond the bar, but so is not the whole 95 % interval of its median: noise
  *  beyond the bar with a reason, which is printed below
  !  beyond the bar
END
}

fail() {
    echo "agree-with-fio: $*" >&2
    exit 2
}

targets=(file loop) only='' size_mib=512 runtime_ms=1000 repeats=7 bench='' flags=()
while (($# > 0)); do
    case $1 in
        --target) targets=("${2:?--target needs file or loop}") && shift ;;
        --only) only=${2:?--only needs a pattern} && shift ;;
        --size) size_mib=${2:?--size needs a number of MiB} && shift ;;
        --runtime) runtime_ms=${2:?--runtime needs a number of milliseconds} && shift ;;
        --repeats) repeats=${2:?--repeats needs a number} && shift ;;
        --bench) bench=${2:?--bench needs a path} && shift ;;
        --check) flags+=(--check) ;;
        --smoke) flags+=(--smoke --check) && runtime_ms=50 repeats=1 size_mib=64 targets=(file) ;;
        --help) usage && exit 0 ;;
        *) usage >&2 && fail "unknown option $1" ;;
    esac
    shift
done
[[ $size_mib =~ ^[1-9][0-9]*$ ]] || fail "--size $size_mib: give a number of MiB"
((size_mib >= 64)) || fail "--size $size_mib: the job files need 64 MiB"
[[ $runtime_ms =~ ^[1-9][0-9]*$ ]] || fail "--runtime $runtime_ms: give whole milliseconds"
[[ $repeats =~ ^[1-9][0-9]*$ ]] || fail "--repeats $repeats: give a number"
[[ ${targets[*]} =~ ^(file|loop|file loop)$ ]] || fail "--target ${targets[*]}: give file or loop"
for program in fio python3; do
    command -v "$program" >/dev/null || fail "$program is missing; install it"
done

cd "$(dirname "$0")/.."
if [[ -z $bench ]]; then
    cargo build --release --quiet -p crypt-bench
    bench=${CARGO_TARGET_DIR:-target}/release/crypt-bench
fi

made=() loop=''
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
    [[ -z $loop ]] || losetup --detach "$loop"
    rm -f "${made[@]}"
}
trap cleanup EXIT

# make_file FOLDER: makes a file with content: blocks that were never written don't reach the disk when read.
make_file() {
    made+=("$(mktemp "$1/agree.XXXXXX")")
    head -c "${size_mib}M" /dev/urandom >"${made[-1]}"
    sync "${made[-1]}"
}

echo "$(fio --version), $("$bench" --version); $repeats runs of each in turns, timed ones $runtime_ms ms"
status=0
for target in "${targets[@]}"; do
    if [[ $target = file ]]; then
        make_file "${TMPDIR:-/tmp}"
        path=${made[-1]} identity=${made[-1]}
    else
        if ! { make_file /dev/shm && loop=$(losetup --find --show "${made[-1]}"); }; then
            echo 'skipped: no loop device; run as root'
            continue
        fi
        path=$loop identity=loop:${made[-1]}
    fi
    python3 scripts/agree/agree.py --bench "$bench" --target "$path" --identity "$identity" --label "$target" \
        --runtime-ms "$runtime_ms" --repeats "$repeats" --only "$only" "${flags[@]}" || status=$?
done
exit "$status"
