/** Pseudo-random numbers from 0 (inclusive) to 1 (exclusive), the same for the same seed. */
export type Random = () => number;

const INCREMENT = 0x9e3779b9;
const TWO_POW_32 = 2 ** 32;

/** A generator with three words of state that mix each other. Its period is far longer than any simulation. */
export function randomOf(seed: number): Random {
  let [a, b, c] = [seed >>> 0, Math.floor(seed / TWO_POW_32) >>> 0, INCREMENT];
  const next = (): number => {
    c = (c + INCREMENT) >>> 0;
    a = Math.imul(a ^ (a >>> 15) ^ c, 0x2c1b3c6d) >>> 0;
    b = (Math.imul(b ^ (b >>> 13), 0x297a2d39) + a) >>> 0;
    return ((a ^ (b << 7) ^ (b >>> 11)) >>> 0) / TWO_POW_32;
  };
  // Seeds that differ in one bit start with similar numbers; after some turns they do not.
  for (let turn = 0; turn < 16; turn++) next();
  return next;
}

/** The time until the next event, if events are independent of each other and `mean` apart on average. */
export function exponential(random: Random, mean: number): number {
  return -mean * Math.log(1 - random());
}
