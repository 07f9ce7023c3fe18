"""The package as the fuzzer drives it: the one file that changes when its doors do."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import FuzzCase, lay_out
from oracle import (
    FLOAT32,
    FLOAT64,
    TWOFOLD_HALF,
    VENDOR_FLOAT32,
    VENDOR_HALF,
    VENDOR_TF32,
    WHOLE_HALVES,
    Arithmetic,
    expect,
)

import edgeconv
from edgeconv.api import check
from edgeconv.api.convolve import PLANS
from edgeconv.core.problem import Problem
from edgeconv.core.request import make_request
from edgeconv.errors import EdgeconvError, MemoryLimitError, UnavailableError
from edgeconv.methods import prepare
from edgeconv.methods.base import Plan
from edgeconv.methods.options import Options

GUARD_BYTES = 256
TABLE_BYTES = 16 * 2**10
"""Weights laid out as a kernel wants them are no workspace that a limit could lower."""

RIGHT, REFUSED = "right", "refused"
CHECKED_EVERY = 8
"""Cases that are put to the package's own check, and run twice: one of this number."""


class FuzzFailure(Exception):
    """What is wrong: its kind in some words, and a line."""

    def __init__(self, kind: str, line: str) -> None:
        super().__init__(line)
        self.kind = kind


def arithmetic_of(case: FuzzCase) -> Arithmetic:
    """How the method is allowed to err."""
    if case.method == "reference":
        return FLOAT64
    if case.method == "cudnn":
        return {"fma": VENDOR_FLOAT32, "tf32": VENDOR_TF32, "half": VENDOR_HALF}[case.options.get("math", "fma")]
    if case.options.get("gemm") == "cublas":
        return VENDOR_FLOAT32
    if case.device == "cuda" and case.method in ("sliding", "strips", "auto"):
        return {"float16": TWOFOLD_HALF, "uint8": WHOLE_HALVES}.get(case.dtype, FLOAT32)
    return FLOAT32


def try_case(case: FuzzCase) -> str:
    """Run and judge one case: `right` or `refused`; raises FuzzFailure, or whatever the package raised."""
    image = case.picture()
    try:
        got, plan = _call(case, image) if case.door == "call" else _run_plan(case, image)
    except (MemoryLimitError, UnavailableError) as refusal:
        _judge_refusal(case, refusal)
        return REFUSED
    except EdgeconvError as error:
        raise FuzzFailure("refusal", f"refused what is right: {error}") from None
    expected = expect(image, case.asked, arithmetic_of(case))
    if got.shape != expected.low.shape or got.dtype.name != expected.low.dtype.name:
        raise FuzzFailure(
            "shape or type", f"{got.shape} {got.dtype}, right is {expected.low.shape} {expected.low.dtype}"
        )
    wrong = expected.wrong(got)
    if wrong.any():
        verdict = ", and the package's own check passes it" if _own_check_passes(case, image, got, plan) else ""
        raise FuzzFailure("values", expected.describe_first(got, wrong) + verdict)
    # Where sums leave the arithmetic's range nothing is promised, and the check may say either.
    promised = "holes" in case.samples or not expected.free.any()
    if promised and case.index % CHECKED_EVERY == 0 and _own_check_passes(case, image, got, plan) is False:
        raise FuzzFailure("own check", "the package's own check calls a right output wrong")
    return RIGHT


def _judge_refusal(case: FuzzCase, refusal: EdgeconvError) -> None:
    limited, special = "workspace_limit_bytes" in case.options, set(case.options) & {"math", "gemm", "cudnn_find"}
    if isinstance(refusal, MemoryLimitError) and not limited:
        raise FuzzFailure("refusal", f"refused without a limit: {refusal}")
    if isinstance(refusal, UnavailableError) and not (special or limited or case.method == "cudnn"):
        raise FuzzFailure("refusal", f"refused what is right: {refusal}")
    if f"--method {case.method}." in str(refusal):
        raise FuzzFailure("advice", f"a refusal that advises what was refused: {refusal}")


def _request(case: FuzzCase) -> Any:
    return make_request(
        case.filter,
        channels=case.channels,
        luma=case.luma,
        stride=case.stride,
        padding=case.padding,
        border=case.border,
        output_mode=case.mode,
    )


def _call(case: FuzzCase, image: np.ndarray) -> tuple[np.ndarray, Plan]:
    """edgeconv.convolve, with the picture lying as the case says; the output, and the plan behind it."""
    xp: Any = np
    if case.on_device:
        import cupy as xp
    given = lay_out(image, case.layout, xp)
    out = edgeconv.convolve(
        given,
        case.filter,
        case.method,
        stride=case.stride,
        padding=case.padding,
        border=case.border,
        channels=case.channels,
        luma=case.luma,
        output_mode=case.mode,
        device=case.device,
        options=Options(**case.options) if case.options else None,
    )
    if type(out) is not xp.ndarray:
        raise FuzzFailure("shape or type", f"{type(out).__name__} came back for {type(given).__name__}")
    if out.ndim != (2 if case.channels == "luma" else 3):
        raise FuzzFailure("shape or type", f"{out.shape} came back for {given.shape} with channels {case.channels}")
    after = given if xp is np else given.get()
    if after.astype(image.dtype).tobytes() != image.tobytes():
        raise FuzzFailure("input changed", "the picture was changed")
    computed = out.reshape(*out.shape[:2], -1)
    return computed if xp is np else computed.get(), list(PLANS.plans.values())[-1].method_plan


def _prepare(case: FuzzCase, problem: Problem) -> Plan:
    options = Options(**case.options)
    if case.method == "strips":
        from edgeconv.methods.cuda.sliding import DirectPlan, StripPlan
        from edgeconv.methods.cuda.sliding_choice import choose_strips

        strips = choose_strips(problem)
        return DirectPlan(problem) if strips is None else StripPlan(problem, strips=strips)
    return prepare(case.method, case.device, problem, options)  # type: ignore[arg-type]


def _run_plan(case: FuzzCase, image: np.ndarray) -> tuple[np.ndarray, Plan]:
    """The plan itself, on arrays that start anywhere, with guard bytes on both sides of the output."""
    problem = _request(case).problem(image.shape, image.dtype)
    plan = _prepare(case, problem)
    limit = case.options.get("workspace_limit_bytes")
    if limit is not None and plan.workspace_bytes > limit + TABLE_BYTES:
        raise FuzzFailure(
            "workspace limit", f"a workspace of {plan.workspace_bytes:,} bytes above the limit of {limit:,}"
        )
    xp: Any = np
    if case.device == "cuda":
        import cupy as xp
    _, source = _placed(image.shape, image.dtype, case.offsets[0], xp)
    memory, out = _placed(problem.output_shape, problem.output_dtype, case.offsets[1], xp)
    source[...] = image if xp is np else xp.asarray(image)
    before = _bytes(memory)
    results = []
    for _ in range(2 if case.index % CHECKED_EVERY == 1 else 1):
        plan.run(source, out)
        results.append(_host(out).copy())
    if _host(source).tobytes() != image.tobytes():
        raise FuzzFailure("input changed", "the picture was changed")
    if results[0].tobytes() != results[-1].tobytes():
        raise FuzzFailure("repetition", "a second run of the same plan gives other bytes")
    first = GUARD_BYTES + case.offsets[1] * problem.output_dtype.itemsize
    after = _bytes(memory)
    last = first + results[0].nbytes
    if after[:first] != before[:first] or after[last:] != before[last:]:
        raise FuzzFailure("memory", "the plan wrote outside its output")
    return results[0], plan


def _placed(shape: tuple[int, ...], dtype: np.dtype, offset: int, xp: Any) -> tuple[Any, Any]:
    """Poisoned memory, and an array in it that starts `offset` samples past an aligned address."""
    count = int(np.prod(shape)) * dtype.itemsize
    slack = 64 if xp is np else 0  # CuPy's memory starts on 512 bytes
    whole = xp.full(count + 2 * GUARD_BYTES + offset * dtype.itemsize + slack, 0xA5, np.uint8)
    memory = whole[-whole.ctypes.data % 64 :][: len(whole) - slack] if xp is np else whole
    first = GUARD_BYTES + offset * dtype.itemsize
    return memory, memory[first : first + count].view(dtype).reshape(shape)


def _host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


def _bytes(array: Any) -> bytes:
    return _host(array).tobytes()


def _own_check_passes(case: FuzzCase, image: np.ndarray, got: np.ndarray, plan: Plan) -> bool | None:
    """What the package's own check says of an output of `plan`; None where it cannot be asked."""
    if case.mode == "normalize" or case.options.get("math", "fma") != "fma":
        return None
    return check.check(image, got, _request(case).problem(image.shape, image.dtype), plan.arithmetic).passed
