#!/usr/bin/env bash
# All that must hold on a machine with an NVIDIA GPU, in one go. Reports of the runs go to FOLDER, as
# cuda_METHOD_sSTRIDE.json, from where scripts/docs.py makes tables of them. Default: docs/results/run/NAME.
#   bash scripts/gpu_acceptance.sh NAME [FOLDER]
set -uo pipefail
cd "$(dirname "$0")/.."
machine=${1:?a name for this machine}
results=${2:-docs/results/run/$machine}
failed=0
step() { echo "== $1"; shift; "$@" || { failed=1; echo "FAILED: $*"; }; }

step "what works here" python3 -m edgeconv doctor
step "GPU tests" python3 -m pytest -q -m gpu -n 8 --dist loadgroup --complete --no-header -p no:cacheprovider
step "fuzz" python3 scripts/fuzz.py --device cuda --seconds 300 --jobs "$(nproc)"
step "compute-sanitizer" python3 scripts/sanitize_gpu.py

step "draw the inputs" python3 scripts/make_input.py --sizes 2048,4096
mkdir -p edges "$results"
lab="--filter laplacian8 --channels mix --border zero"
methods='from edgeconv.api.auto import runnable; print(*(name for name, device in runnable() if device == "cuda"))'
for method in $(python3 -c "$methods"); do
    for stride in 1 2 3; do
        name=cuda_${method}_s$stride
        step "$method at stride $stride" python3 -m edgeconv run images/input_2048.png $lab --method "$method" --device cuda \
            --stride "$stride" --check full --overwrite -o "edges/$name.png"
        cp "edges/$name.json" "$results" || failed=1
    done
done
# CuPy's pool refuses to grow past this limit, so the run shows that bands keep im2col inside 2 GiB.
step "im2col at 4096 within 2 GiB" env CUPY_GPU_MEMORY_LIMIT=2147483648 python3 -m edgeconv run \
    images/input_4096.png $lab --method im2col --device cuda --overwrite -o edges/im2col.png
exit $failed
