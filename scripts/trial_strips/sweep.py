"""Times of strips: `old` (default tile) or `new` (default and a sweep); one JSON line a case."""
import json, math, sys, itertools
from dataclasses import replace
import cupy, numpy as np
from edgeconv.core.filters import weight_set, named_filter, custom_filter
from edgeconv.core.problem import make_problem
import edgeconv.methods.cuda.sliding as S
from edgeconv.methods.cuda import sliding_tiles as T
from edgeconv.methods.cuda.sliding_arithmetic import arithmetic_for
OLD = sys.argv[1] == "old"; SIDES = [int(x) for x in sys.argv[2].split(",")]; PART = tuple(map(int, sys.argv[3].split("/"))) if len(sys.argv) > 3 and "/" in sys.argv[3] else None
GRID = sys.argv[4] if len(sys.argv) > 4 else "none"
COLD = 3 * cupy.cuda.Device().attributes["L2CacheSize"]
def capture(runs):
    s = cupy.cuda.Stream(non_blocking=True)
    with s:
        for r in runs: r()
        s.synchronize(); s.begin_capture()
        for r in runs: r()
        g = s.end_capture(); g.launch(s); s.synchronize()
    a, b = cupy.cuda.Event(), cupy.cuda.Event()
    def once():
        a.record(s); g.launch(s); b.record(s); b.synchronize()
        return cupy.cuda.get_elapsed_time(a, b) * 1e3 / len(runs)
    return once
RANDOM = custom_filter(np.random.default_rng(5).standard_normal((3,3,3,3)).astype(np.float32), "random")
WORKS = [("laplacian8","mix","uint8",1),("laplacian8","mix","float32",1),("laplacian8","each","uint8",1),("laplacian8","each","float32",1),("sobel","each","uint8",1),("kirsch","each","uint8",1),("sobel","mix","uint8",1),("sobel","luma","uint8",1)] + [("random","mix",d,s) for d in ("uint8","float32","float16") for s in (1,2,3)] + [("random","mix",d,s) for d in ("uint16","float64") for s in (1,2,3)] + [("random","mix","float32",4)] + [
 (f,"mix",d,1) for f in ("laplacian8","sobel","kirsch") for d in ("uint8","float16","float32")] + [("sobel","luma",d,1) for d in ("uint8","float32")] + [
 (f,"each",d,s) for f in ("laplacian8","sobel") for d in ("uint8","float32") for s in (1,2)] + [("kirsch","each","uint8",1),("kirsch","each","uint8",2),("sobel","each","float16",1),("sobel","grey","uint8",2),("random","grey","float32",2)]
def problem_of(side, f, c, dtype, stride):
    ch = 1 if c == "grey" else 3
    if f == "random" and ch == 1: fil = custom_filter(np.random.default_rng(5).standard_normal((3,3)).astype(np.float32), "r1")
    else: fil = RANDOM if f == "random" else named_filter(f)
    return make_problem((side, side, ch), dtype, weight_set(fil, "mix" if ch == 1 else c, in_channels=ch), stride=stride, output_mode="abs" if dtype[0] == "u" else "raw")
def grid(p):
    t = T.tile_for(p); out = {"default": t}
    if GRID == "none": return out
    mma = arithmetic_for(p) == "mma"
    least = max(1, 4 // p.dtype.itemsize) if not mma else 4
    import edgeconv
    mma = arithmetic_for(p) == "mma"
    for px, rows, ahead in itertools.product((t.thread_pixels, 2 * t.thread_pixels), ((2, 4) if mma else (1, 3) if p.stride < 3 else (1,)), (0, 1, 2)):
        out[f"{px},{rows},{ahead}"] = T.StripTile(px, rows, ahead, t.strip_rows)
    return out
def main():
    count = 0
    for side, (f, c, d, s) in itertools.product(SIDES, WORKS):
        count += 1
        if PART and count % PART[1] != PART[0]: continue
        p = problem_of(side, f, c, d, s)
        if not S.has_strips(p): continue
        plans = {}
        if OLD: plans["default"] = S.StripPlan(p)
        else:
            for k, t in grid(p).items():
                try: plans[k] = S.StripPlan(p, tile=t)
                except Exception as e: print("  ", k, type(e).__name__, str(e)[-200:], file=sys.stderr)
        if PART: continue
        rng = np.random.default_rng(1)
        px = rng.integers(0, 256 if d == "uint8" else 20000, p.input_shape) if d[0] == "u" else rng.standard_normal(p.input_shape)
        one = cupy.asarray(px.astype(p.dtype)); out0 = cupy.empty(p.output_shape, p.output_dtype)
        moved = one.nbytes + out0.nbytes; n = max(2, min(64, math.ceil(COLD / moved)))
        ins = [one.copy() for _ in range(n)]; outs = [cupy.empty_like(out0) for _ in range(n)]
        half = [(cupy.zeros(moved // 2, cupy.uint8), cupy.empty(moved // 2, cupy.uint8)) for _ in range(n)]
        cupy.cuda.Device().synchronize()
        graphs = {"copy": capture([lambda a=a, b=b: b.data.copy_from_device_async(a.data, moved // 2, cupy.cuda.get_current_stream()) for a, b in half])}
        want = None
        if not OLD:
            S.DirectPlan(p).run(one, out0); cupy.cuda.Device().synchronize(); want = out0.astype(cupy.float64)
        wrong = []
        for name, plan in plans.items():
            outs[0].fill(7); cupy.cuda.Device().synchronize()
            graphs[name] = capture([lambda a=a, b=b: plan.run(a, b) for a, b in zip(ins, outs)])
            if want is not None and name == "default" and float(cupy.nanmax(cupy.abs(outs[0].astype(cupy.float64) - want))) > (1 if d[0] == "u" else 0.05): wrong.append(name)
        if not bool((ins[0] == one).all()): wrong.append("INPUT")
        times = {k: [] for k in graphs}
        for _ in range(5):
            for k, g in graphs.items(): times[k].append(g())
        print(json.dumps({"case": f"{side} {f} {c} {d} s{s}", "how": arithmetic_for(p), "wrong": wrong, "us": {k: round(float(np.median(v)), 2) for k, v in times.items()}}), flush=True)
main()
