#!/usr/bin/env bash
# All that must hold on a machine with an NVIDIA GPU, in one go. Reports go to the folder given, default docs/results/run.
#   bash scripts/gpu_acceptance.sh NAME [FOLDER]
set -uo pipefail
cd "$(dirname "$0")/.."
machine=${1:?a name for this machine}
results=${2:-docs/results/run}
failed=0
step() { echo "== $1"; shift; "$@" || { failed=1; echo "FAILED: $*"; }; }

step "what works here" python3 -m edgeconv doctor
step "GPU tests" python3 -m pytest -q -m gpu -n 8 --dist loadgroup --complete --no-header -p no:cacheprovider
step "fuzz" python3 scripts/fuzz.py --device cuda --seconds 300 --jobs "$(nproc)"
step "compute-sanitizer" python3 scripts/sanitize_gpu.py
step "every method, strides 1 to 3" python3 scripts/run_matrix.py --machine "$machine" --device cuda --results "$results"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
step "draw the largest input" python3 scripts/make_input.py --sizes 4096 --output "$scratch"
# CuPy's pool refuses to grow past this limit, so the run shows that bands keep im2col inside 2 GiB.
step "im2col at 4096 within 2 GiB" env CUPY_GPU_MEMORY_LIMIT=2147483648 python3 -m edgeconv run \
    "$scratch/input_4096.png" --method im2col --device cuda -o "$scratch/im2col.png"
exit $failed
