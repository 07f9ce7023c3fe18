"""GPU times by turns: flat rows by tiles, today's strips, and a copy; shares of the copy."""
import argparse, itertools, math, sys
import cupy, numpy as np, edgeconv
from edgeconv.core.filters import weight_set, named_filter
from edgeconv.core.problem import make_problem
from edgeconv.core.filters import Filter
from edgeconv.methods.cuda.flat_rows import FlatPlan, FlatTile, flat_filter
from edgeconv.methods.cuda.sliding import StripPlan, DirectPlan
from edgeconv.methods.cuda.sliding_arithmetic import has_strips, is_small

COLD = 4 * cupy.cuda.Device().attributes["L2CacheSize"]
def capture(runs):
    s = cupy.cuda.Stream(non_blocking=True)
    with s:
        for r in runs: r()
        s.synchronize(); s.begin_capture()
        for r in runs: r()
        g = s.end_capture()
        g.launch(s); s.synchronize()
    a, b = cupy.cuda.Event(), cupy.cuda.Event()
    def once():
        a.record(s); g.launch(s); b.record(s); b.synchronize()
        return cupy.cuda.get_elapsed_time(a, b) * 1e3 / len(runs)
    return once
def problem_of(shape, dtype, f, pictures=1, channels="each", mode=None, **kw):
    named = named_filter(f) if f != "nine" else Filter("n", np.random.default_rng(5).standard_normal((1,3,3)).astype(np.float32), "single", "", "")
    mode = mode or ("abs" if dtype[0] == "u" else "raw")
    return make_problem(shape, dtype, weight_set(named, channels, in_channels=shape[2]), output_mode=mode, **kw)
def measure(problem, plans, pictures=1, turns=15):
    rng = np.random.default_rng(1)
    shape = (pictures, *problem.input_shape)
    px = rng.integers(0, 256 if problem.dtype == np.uint8 else 20000, shape) if problem.dtype.kind == "u" else rng.standard_normal(shape)
    one = cupy.asarray(px.astype(problem.dtype)); oshape = (pictures, *problem.output_shape)
    if pictures == 1: one = one[0]; oshape = oshape[1:]
    out0 = cupy.empty(oshape, problem.output_dtype)
    moved = one.nbytes + out0.nbytes
    n = max(2, min(64, math.ceil(COLD / moved)))
    ins = [one.copy() for _ in range(n)]; outs = [cupy.empty_like(out0) for _ in range(n)]
    cupy.cuda.Device().synchronize(); here = cupy.cuda.get_current_stream
    half = [(cupy.zeros(moved // 2, cupy.uint8), cupy.empty(moved // 2, cupy.uint8)) for _ in range(n)]
    graphs = {"copy": capture([lambda a=a, b=b: b.data.copy_from_device_async(a.data, moved // 2, here()) for a, b in half])}
    results = {}
    for name, plan in plans.items():
        graphs[name] = capture([lambda a=a, b=b: plan.run(a, b) for a, b in zip(ins, outs)])
        results[name] = cupy.asnumpy(outs[0])
    times = {name: [] for name in graphs}
    for _ in range(turns):
        for name, g in graphs.items(): times[name].append(g())
    return {k: float(np.median(v)) for k, v in times.items()}, results
def differ(results, base):
    a = results[base].astype(np.float64)
    return {k: float(np.nanmax(np.abs(v.astype(np.float64) - a))) for k, v in results.items() if k != base}
if __name__ == "__main__":
    p = argparse.ArgumentParser(); p.add_argument("--sides", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    p.add_argument("--dtypes", nargs="+", default=["uint8", "uint16", "float16", "float32"])
    p.add_argument("--filters", nargs="+", default=["laplacian8", "sobel", "kirsch"])
    p.add_argument("--tiles", default=""); p.add_argument("--pictures", type=int, default=1); p.add_argument("--channels", type=int, default=3)
    o = p.parse_args()
    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    leads, shares = [], []
    for side, dtype, f in itertools.product(o.sides, o.dtypes, o.filters):
        pr = problem_of((side, side, o.channels), dtype, f, channels="each" if o.channels > 1 else "mix")
        flat = flat_filter(pr)
        kw = {"pictures": o.pictures}
        if not has_strips(pr): today = DirectPlan(pr, **kw)
        else: today = DirectPlan(pr, **kw) if is_small(pr) and o.pictures == 1 else StripPlan(pr, **kw)
        plans = {"today": today, "flat": FlatPlan(pr, filter=flat, **kw)}
        for t in filter(None, o.tiles.split(";")):
            tile = FlatTile(*map(int, t.split(",")))
            if True:
                plans[t] = FlatPlan(pr, filter=flat, tile=tile, **kw)
        t, r = measure(pr, plans, o.pictures)
        d = max(differ(r, "today").values())
        best = min((k for k in t if k not in ("copy", "today")), key=t.get)
        leads.append(t["flat"] / t["today"]); shares.append(t["copy"] / t["flat"])
        print(f"{side} {dtype} {f}: copy {t['copy']:.2f} today {t['today']:.2f} ({t['copy']/t['today']:.2f}) flat {t['flat']:.2f} ({t['copy']/t['flat']:.2f}) lead {t['flat']/t['today']:.2f} best {best} {t[best]:.2f} diff {d:.2g} {[k for k,v in differ(r,'today').items() if v>1]} { {k: round(v,1) for k,v in t.items() if k not in ('copy','today','flat')} }", flush=True)
    print("mean lead", np.exp(np.mean(np.log(leads))), "share", np.exp(np.mean(np.log(shares))))
