"""Where the picture lies in the window: a zoom and the point of the picture in the middle. Numbers alone.

Picture coordinates are pixels, (0, 0) the outer corner of the first one; screen coordinates are physical pixels of
the area it is shown in. `zoom` is physical screen pixels per picture pixel, so 1 is 1:1 on a screen of any density.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MOST_ZOOM = 256.0
"""One pixel then fills a hand's breadth, with room for its values."""
MOST_FIT = 16.0
"""To which Fit enlarges a small picture: larger pixels show no more of it."""
LEAST_SHARE = 0.5
"""The least zoom is this share of what fits, or of 1:1 where the picture is smaller than the area."""


@dataclass(frozen=True)
class Viewport:
    """Immutable: every change gives another. `width` and `height` are the picture's, `area_` the screen's."""

    width: int
    height: int
    area_width: float
    area_height: float
    zoom: float = 1.0
    centre_x: float = 0.0
    centre_y: float = 0.0
    fitted: bool = True
    """Stays fitted when the area changes."""
    enlarges: bool = False
    """Fits a small picture by enlarging it, as was asked for; one that was just opened is shown 1:1."""

    @property
    def fit_zoom(self) -> float:
        """The zoom at which the whole picture is seen."""
        most = MOST_FIT if self.enlarges else 1.0
        return min(most, self.area_width / self.width, self.area_height / self.height)

    @property
    def least_zoom(self) -> float:
        """The farthest that zooming out goes."""
        return LEAST_SHARE * min(1.0, self.fit_zoom)

    def fit(self) -> Viewport:
        """The whole picture, in the middle."""
        return replace(self, zoom=self.fit_zoom, centre_x=self.width / 2, centre_y=self.height / 2, fitted=True)

    def resized(self, area_width: float, area_height: float) -> Viewport:
        """The same place in an area of another size."""
        changed = replace(self, area_width=max(1.0, area_width), area_height=max(1.0, area_height))
        return changed.fit() if self.fitted else changed._held()

    def of_picture(self, width: int, height: int) -> Viewport:
        """The same part of a picture of another size, such as the output of a stride of 2: it stays where it is."""
        if (width, height) == (self.width, self.height):
            return self
        x, y = width / self.width, height / self.height
        changed = replace(
            self,
            width=width,
            height=height,
            zoom=self.zoom / x,
            centre_x=self.centre_x * x,
            centre_y=self.centre_y * y,
        )
        return changed.fit() if self.fitted else changed._held()

    def zoomed(self, factor: float, screen_x: float | None = None, screen_y: float | None = None) -> Viewport:
        """Zoom by `factor`; the picture point under (screen_x, screen_y), or the middle, stays where it is."""
        return self.at_zoom(self.zoom * factor, screen_x, screen_y)

    def at_zoom(self, zoom: float, screen_x: float | None = None, screen_y: float | None = None) -> Viewport:
        """The same for a given zoom, within the limits."""
        x = self.area_width / 2 if screen_x is None else screen_x
        y = self.area_height / 2 if screen_y is None else screen_y
        held_x, held_y = self.to_picture(x, y)
        zoom = min(MOST_ZOOM, max(self.least_zoom, zoom))
        return replace(
            self,
            zoom=zoom,
            centre_x=held_x - (x - self.area_width / 2) / zoom,
            centre_y=held_y - (y - self.area_height / 2) / zoom,
            fitted=False,
        )._held()

    def panned(self, screen_dx: float, screen_dy: float) -> Viewport:
        """Move the picture by so many screen pixels."""
        return replace(
            self,
            centre_x=self.centre_x - screen_dx / self.zoom,
            centre_y=self.centre_y - screen_dy / self.zoom,
            fitted=False,
        )._held()

    def to_picture(self, screen_x: float, screen_y: float) -> tuple[float, float]:
        """The picture point at a screen point."""
        return (
            self.centre_x + (screen_x - self.area_width / 2) / self.zoom,
            self.centre_y + (screen_y - self.area_height / 2) / self.zoom,
        )

    def to_screen(self, x: float, y: float) -> tuple[float, float]:
        """The screen point of a picture point."""
        return (
            (x - self.centre_x) * self.zoom + self.area_width / 2,
            (y - self.centre_y) * self.zoom + self.area_height / 2,
        )

    def pixel_at(self, screen_x: float, screen_y: float) -> tuple[int, int] | None:
        """(x, y) of the pixel at a screen point, or None outside the picture."""
        x, y = self.to_picture(screen_x, screen_y)
        return (int(x), int(y)) if 0 <= x < self.width and 0 <= y < self.height else None

    def _held(self) -> Viewport:
        """With the middle of the area on the picture, so that it is never lost."""
        return replace(
            self,
            centre_x=min(max(self.centre_x, 0.0), float(self.width)),
            centre_y=min(max(self.centre_y, 0.0), float(self.height)),
        )
