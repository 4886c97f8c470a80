"""The colours of the timeline and the call tree: where code comes from, and how well it was compiled."""

import json

from perfuse.exporters.source import Source, text

_INTERPRETER = """
    ignition|ignition handler|interpreter|llint|llintthunk|baselineinterpreter|blinterpinterpreter|blinterpop
"""
_BASELINE = "sparkplug|liftoff|baseline|bbq|wasmbbq|quickjitted|minoptjitted|tier0|instrumented"
_MID_TIER = "maglev|dfg|c1"
_OPTIMIZING = """
    turbofan|ftl|omg|wasmomg|ion|c2|optimized|optimizedtier1|optimizedtier1osr|tier1|tier1osr
"""

CATEGORIES: dict[str, tuple[str, str]] = {
    # The first grey one is what the front end falls back to.
    "Other": ("grey", ""),
    "Native": ("yellow", ""),
    "Kernel": ("orange", ""),
    "Hypervisor": ("lightred", ""),
    "Interpreter": ("red", _INTERPRETER),
    "Baseline JIT": ("blue", _BASELINE),
    "Mid-tier JIT": ("lightblue", _MID_TIER),
    "Optimizing JIT": ("green", _OPTIMIZING),
    "JIT": ("purple", ""),
    "JIT stub": ("brown", ""),
    "Ahead of time": ("magenta", "prejit|readytorun"),
}
"""Category name: its colour, and the tiers that mean it, in lower case. Code of any other tier is `JIT`."""

_TIERS = " ".join(
    f"WHEN lower(tier) IN ({', '.join(map(text, tiers.strip().split('|')))}) THEN {text(name)}"
    for name, (_, tiers) in CATEGORIES.items()
    if tiers
)

CATEGORY = f"""
    CASE
        WHEN kind = 'kernel' THEN 'Kernel'
        WHEN kind = 'hypervisor' THEN 'Hypervisor'
        WHEN kind = 'native' THEN 'Native'
        WHEN kind <> 'jit' THEN 'Other'
        {_TIERS}
        WHEN code_kind IN ('stub', 'helper') THEN 'JIT stub'
        WHEN code_kind = 'aot' THEN 'Ahead of time'
        ELSE 'JIT'
    END
"""
"""Category name of a row of `exporters.frames.FRAMES`."""

CATEGORY_INDEX = (
    "CASE category " + " ".join(f"WHEN {text(name)} THEN {i}" for i, name in enumerate(CATEGORIES)) + " END"
)

SUBCATEGORY_INDEX = """
    CASE WHEN tier IS NULL THEN 0
         ELSE dense_rank() OVER (PARTITION BY category, tier IS NULL ORDER BY tier) END
"""
"""A tier is a subcategory, after the `Other` that every category starts with."""


def categories_json(profile: Source, frames: str) -> str:
    """`meta.categories`: all of them, each with the tiers that occur in the query `frames`."""
    tiers: dict[str, list[str]] = {name: ["Other"] for name in CATEGORIES}
    query = f"SELECT DISTINCT category, subcategory, tier FROM ({frames}) WHERE tier IS NOT NULL ORDER BY ALL"
    for category, _, tier in profile.sql(query).fetchall():
        tiers[category].append(tier)
    rows = [(name, color, tiers[name]) for name, (color, _) in CATEGORIES.items()]
    return json.dumps([{"name": name, "color": color, "subcategories": tiers} for name, color, tiers in rows])
