"""Colours of origins, measured: contrast by WCAG 2.2, colour-blind vision by Machado, Oliveira and Fernandes 2009."""

from itertools import combinations
from math import dist

import pytest

from perfuse.exporters.palette import ORIGINS, SHADES, Colour, hexadecimal

# Severity 1 of their table, on linear light.
VISIONS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
# Text on boxes, as in viewer/flame/palette.js and exporters/svg.py, and its least contrast.
TEXT = {"light": (hexadecimal(0.2, 0.01, 260), "#1c2126"), "dark": (hexadecimal(0.97, 0, 0), "#f0f3f6")}
LEAST_CONTRAST = 4.5
LEAST_DISTANCE = 0.05


def linear(colour: str) -> list[float]:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def luminance(colour: str) -> float:
    return sum(part * channel for part, channel in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def oklab(colour: str, vision: str) -> tuple[float, float, float]:
    seen = [min(max(sum(a * b for a, b in zip(row, linear(colour), strict=True)), 0), 1) for row in VISIONS[vision]]
    red, green, blue = seen
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def fills(theme: str, shade: float = 0.0) -> dict[str, str]:
    colours: dict[str, Colour] = {origin.name: getattr(origin, theme) for origin in ORIGINS}
    return {name: hexadecimal(lightness + shade, chroma, hue) for name, (lightness, chroma, hue) in colours.items()}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_on_every_colour_is_readable(theme):
    for shade in SHADES:
        for name, fill in fills(theme, shade).items():
            for text in TEXT[theme]:
                assert contrast(text, fill) >= LEAST_CONTRAST, f"{name} {fill} under {text}"


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_origins_are_distinct_in_every_vision(theme, vision):
    colours = fills(theme)
    distances = {
        (one, other): dist(oklab(colours[one], vision), oklab(colours[other], vision))
        for one, other in combinations(colours, 2)
    }
    nearest = min(distances, key=distances.__getitem__)
    assert distances[nearest] >= LEAST_DISTANCE, f"{nearest}: {distances[nearest]:.3f}"


def test_higher_tiers_have_more_weight():
    tiers = [origin for origin in ORIGINS if origin.name in {"interpreter", "baseline", "mid_tier", "optimised"}]
    assert [origin.light[0] for origin in tiers] == sorted((origin.light[0] for origin in tiers), reverse=True)
    assert [origin.dark[0] for origin in tiers] == sorted(origin.dark[0] for origin in tiers)
