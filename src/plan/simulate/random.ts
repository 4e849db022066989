/** Numbers that look random and are the same for the same seed, from 0 (included) to 1 (not). */
export type Random = () => number;

const INCREMENT = 0x9e3779b9;
const TWO_POW_32 = 2 ** 32;

/** Three words of state that stir each other: its period is far beyond what a simulation draws. */
export function randomOf(seed: number): Random {
  let [a, b, c] = [seed >>> 0, Math.floor(seed / TWO_POW_32) >>> 0, INCREMENT];
  const next = (): number => {
    c = (c + INCREMENT) >>> 0;
    a = Math.imul(a ^ (a >>> 15) ^ c, 0x2c1b3c6d) >>> 0;
    b = (Math.imul(b ^ (b >>> 13), 0x297a2d39) + a) >>> 0;
    return ((a ^ (b << 7) ^ (b >>> 11)) >>> 0) / TWO_POW_32;
  };
  // Seeds that differ in one bit begin alike; after some turns they do not.
  for (let turn = 0; turn < 16; turn++) next();
  return next;
}

/** How long until the next, if they come independently of each other and so far apart on average. */
export function exponential(random: Random, mean: number): number {
  return -mean * Math.log(1 - random());
}
