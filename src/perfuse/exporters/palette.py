"""Colours of origins of code, in OKLCH: distinct in normal and in colour-blind vision, with readable text on each."""

from dataclasses import dataclass
from math import cos, radians, sin

Colour = tuple[float, float, float]
"""Lightness, chroma, hue in degrees."""


@dataclass(frozen=True, slots=True)
class Origin:
    """An origin of code in legends.

    Attributes:
        name: Its name in tables.
        label: Its name for people.
        light: Its colour on a light page.
        dark: Its colour on a dark page.
    """

    name: str
    label: str
    light: Colour
    dark: Colour


# The higher the tier, the darker its colour on a light page, and the lighter on a dark one: order is seen without hue.
ORIGINS: tuple[Origin, ...] = (
    Origin("interpreter", "Interpreter", (0.915, 0.125, 130), (0.340, 0.138, 85)),
    Origin("baseline", "Baseline JIT", (0.885, 0.140, 97), (0.407, 0.081, 61)),
    Origin("mid_tier", "Mid-tier JIT", (0.790, 0.145, 80), (0.484, 0.096, 40)),
    Origin("optimised", "Optimised JIT", (0.700, 0.140, 50), (0.538, 0.150, 66)),
    Origin("ahead_of_time", "Ahead of time", (0.669, 0.108, 338), (0.300, 0.130, 325)),
    Origin("jit", "JIT", (0.875, 0.085, 200), (0.507, 0.113, 197)),
    Origin("stub", "Stubs, builtins", (0.820, 0.085, 150), (0.453, 0.065, 190)),
    Origin("inlined", "Inlined", (0.680, 0.035, 90), (0.543, 0.150, 310)),
    Origin("native", "Native", (0.775, 0.095, 240), (0.376, 0.119, 272)),
    Origin("kernel", "Kernel", (0.680, 0.115, 265), (0.458, 0.092, 292)),
    Origin("type", "Allocated type", (0.760, 0.060, 80), (0.400, 0.060, 310)),
    Origin("unknown", "Unknown", (0.780, 0.008, 240), (0.340, 0.014, 285)),
)
"""Every origin, in the order of legends."""

SHADES = (-0.012, 0.0, 0.012)
"""What is added to the lightness: neighbours of one origin differ a little."""


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
