#!/usr/bin/env bash
# All that must hold on a machine with an NVIDIA GPU, and its records, in steps of at most eight minutes each. It may be
# stopped at any time; started again, it does what has not passed yet. scripts/docs.py makes tables of the records.
#   bash scripts/gpu_acceptance.sh NAME      records in docs/results/run/NAME and docs/results/bench/NAME
set -uo pipefail
cd "$(dirname "$0")/.."
runs=docs/results/run/${1:?a name for this machine} benches=docs/results/bench/$1 passed=edges/passed_$1 failed=0
mkdir -p edges "$runs" "$benches"
step() {
    grep -qsxF "$1" "$passed" && return
    echo "== $1"
    if "${@:2}"; then echo "$1" >> "$passed"; else failed=1; echo "FAILED: $1"; fi
}
edgeconv() { python3 -m edgeconv "$@"; }
bench() { edgeconv bench --l2 cold --formats json --resume --stop-after 400 -o "$benches" "$@"; }
lab() { # METHOD STRIDE: its report
    edgeconv run images/input_2048.png --filter laplacian8 --channels mix --border zero --method "$1" --device cuda \
        --stride "$2" --check full --overwrite -o "edges/cuda_$1_s$2.png" && cp "edges/cuda_$1_s$2.json" "$runs"
}
step "what works here" edgeconv doctor
step "GPU tests" python3 -m pytest -q -m gpu -n 8 --dist loadgroup --complete --no-header -p no:cacheprovider
step "fuzz" python3 scripts/fuzz.py --device cuda --seconds 300 --jobs "$(nproc)"
step "compute-sanitizer" python3 scripts/sanitize_gpu.py
step "draw the input" python3 scripts/make_input.py --sizes 2048
for method in sliding implicit im2col textbook cudnn; do
    for stride in 1 2 3; do step "$method at stride $stride" lab $method $stride; done
done
step "channels by themselves" bench --grid each --devices cuda --time-limit 0.05 --name each
for part in 1 2 3; do step "beside peers, part $part" bench --grid gpu --peers all --samples 60 --name gpu; done
exit $failed
