"""Colours of flame graphs: a hue for each origin of code, in OKLCH, in which equal lightness looks equal."""

from dataclasses import dataclass
from math import cos, radians, sin


@dataclass(frozen=True, slots=True)
class Origin:
    """An origin of code in legends.

    Attributes:
        name: Its name in tables.
        label: Its name for people.
        hue: Hue in degrees.
        chroma: Chroma; 0 is grey.
    """

    name: str
    label: str
    hue: float
    chroma: float


ORIGINS: tuple[Origin, ...] = (
    Origin("interpreter", "Interpreter", 95, 0.09),
    Origin("baseline", "Baseline JIT", 70, 0.09),
    Origin("mid_tier", "Mid-tier JIT", 48, 0.095),
    Origin("optimised", "Optimised JIT", 152, 0.085),
    Origin("jit", "JIT", 185, 0.065),
    Origin("stub", "Stubs, builtins", 305, 0.055),
    Origin("inlined", "Inlined", 122, 0.08),
    Origin("native", "Native", 248, 0.055),
    Origin("kernel", "Kernel", 14, 0.07),
    Origin("type", "Allocated type", 340, 0.06),
    Origin("unknown", "Unknown", 260, 0.005),
)
"""Every origin, in the order of legends."""

LIGHT = (0.855, 0.88, 0.905)
"""Lightness of boxes on a light page: neighbours of one origin differ a little."""
DARK = (0.42, 0.45, 0.48)
"""Lightness of boxes on a dark page."""


def hexadecimal(lightness: float, chroma: float, hue: float) -> str:
    """An OKLCH colour as `#rrggbb`, for viewers without OKLCH; colours out of gamut are clipped."""
    a, b = chroma * cos(radians(hue)), chroma * sin(radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    channels = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * min(max(_gamma(channel), 0), 1)):02x}" for channel in channels)


def _gamma(linear: float) -> float:
    if linear <= 0.0031308:
        return 12.92 * max(linear, 0)
    return float(1.055 * linear ** (1 / 2.4) - 0.055)
