"""`canny` finds edges in one call; `chain` states any chain of stages for `convolve` and `plan`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edgeconv.api.convolve import convolve
from edgeconv.api.parameters import with_parameters
from edgeconv.core.chains import Chain, make_chain
from edgeconv.core.choices import Gradient, ThresholdRule
from edgeconv.core.option import AUTO
from edgeconv.errors import EdgeconvError
from edgeconv.methods.options import Options


def canny(
    image: Any,
    low: float | None = None,
    high: float | None = None,
    *,
    rule: ThresholdRule | None = None,
    gradient: Gradient = "l1",
    blur: int = 0,
    method: str = AUTO,
    device: str = AUTO,
    options: Options | None = None,
    out: Any = None,
) -> Any:
    """Edges of a picture, or of a batch, by Canny: of 8-bit pictures byte for byte those of `cv2.Canny`, aperture 3.

    Args:
        image: height × width (× 1), grey, or height × width × 3, RGB, or a batch of either with its pictures in front:
            uint8 or uint16; an array of any library that `convolve` takes. Of RGB the channel of the largest gradient
            counts.
        low, high: thresholds in units of the Sobel gradient, in either order; fractions are allowed.
        rule: finds them in the picture where they are not given: `median` (default) or `otsu`
            (`edgeconv.core.chains.automatic_thresholds` states both). A batch has one pair for all its pictures.
        gradient: magnitudes |gx| + |gy| (`l1`), or sqrt(gx² + gy²) (`l2`), as L2gradient in OpenCV.
        blur: 3 or 5 smooths by a binomial of that size before, as `cv2.GaussianBlur` with sigma 0; 0 does not.
        method, device, options, out: see `convolve`.

    Returns:
        height × width, behind the pictures of a batch; height × width × 1 where the picture is so. uint8, 255 on edges
        and 0 elsewhere, an array of the library that was given, on its device.

    Raises:
        UsageError: a picture, threshold or setting that has no meaning (also a ValueError).
        UnavailableError: a method or device that this machine does not have, or that does not compute canny.
    """
    chosen = chain("canny", low=low, high=high, rule=rule, gradient=gradient, blur=blur)
    return convolve(image, chosen, method, device=device, options=options, out=out)


def chain(
    stages: str | Iterable[str],
    *,
    low: float | None = None,
    high: float | None = None,
    rule: ThresholdRule | None = None,
    gradient: Gradient | None = None,
    blur: int = 0,
) -> Chain:
    """A chain of 3×3 stages, for the `filter` of `convolve` and `plan`: `chain("gaussian,sobel,thin")`.

    Args:
        stages: the name of a chain (`canny`), or stages with commas between them or as a list: gaussian, gaussian5,
            sobel, scharr, prewitt, thin, hysteresis; each takes what the one before it gives.
        low, high, rule, gradient, blur: see `canny`; thresholds are those of hysteresis.

    Raises:
        UsageError: stages that do not fit together, or a setting that none of them takes.
    """
    try:
        return make_chain(stages, low=low, high=high, rule=rule, gradient=gradient, blur=blur)
    except EdgeconvError as error:
        raise with_parameters(error) from error.__cause__
