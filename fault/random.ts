/** Chance that can be repeated: the same seed, the same choices. */
export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number;
  /** From `least` to `most`, both included. */
  between(least: number, most: number): number;
  pick<T>(of: readonly T[]): T;
  /** A stream of its own, so that one who takes more numbers does not change another's. */
  fork(name: string): Random;
}

export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  // Mulberry32: 32 bits of state are plenty for a schedule of faults.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    between: (least, most) => least + Math.floor(next() * (most - least + 1)),
    pick: (of) => of[Math.floor(next() * of.length)]!,
    fork: (name) => randomOf(hashOf(`${seed} ${name}`)),
  };
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return hash;
}
