# shellcheck shell=bash
# What the comparisons with fio share; sourced by them. Pairs of runs are lines of "$scratch/pairs".

fail() {
    echo "$(basename "$0" .sh): $*" >&2
    exit 2
}

# Installs fio with apt-get where it is missing.
need_fio() {
    if command -v fio >/dev/null; then return 0; fi
    echo "$(basename "$0" .sh): installing fio" >&2
    local as_root=()
    ((EUID == 0)) || as_root=(sudo)
    "${as_root[@]}" apt-get install -y --no-install-recommends fio >&2 ||
        fail 'fio is missing and apt-get did not install it; install it by hand'
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

# Median of one column over the pairs.
column() { awk -v a="$1" '{ print $a }' "${scratch:?}/pairs" | median; }

is_below() { awk -v ratio="$1" -v bar="$2" 'BEGIN { exit !(ratio < bar) }'; }
