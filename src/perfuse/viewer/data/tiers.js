// Tiers of compilers, whose names differ from runtime to runtime, as origins of code, which have colours.

/** The number of the origin, in a list of origins, that has a tier or kind of code; of other code that of JIT code. */
export function originOfTier(tier, origins) {
  const name = (tier ?? "").toLowerCase();
  const origin = origins.findIndex(({ tiers }) => tiers.includes(name));
  return origin < 0 ? origins.findIndex((each) => each.name === "jit") : origin;
}
