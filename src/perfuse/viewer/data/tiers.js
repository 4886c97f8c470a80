// Tiers of compilers, whose names differ from runtime to runtime, as origins of code, which have colours.

const ORIGIN_OF = [
  [/^(native|kernel|inlined|unknown)$/i, (name) => name.toLowerCase()], [/stub|builtin|trampoline|handler|regexp/i, () => "stub"], [/interp|ignition|bytecode/i, () => "interpreter"],
  [/baseline|sparkplug|c1|tier.?[0-3]\b|quick|tier0/i, () => "baseline"], [/mid|maglev|dfg/i, () => "mid_tier"], [/opt|turbofan|c2|ftl|tier.?4|tier1/i, () => "optimised"],
];

/** The number of a tier's origin in a list of origins. */
export function originOfTier(tier, origins) {
  const name = ORIGIN_OF.find(([pattern]) => pattern.test(tier ?? ""))?.[1](tier) ?? "jit";
  const origin = origins.findIndex((each) => each.name === name);
  return origin < 0 ? origins.length - 1 : origin;
}
