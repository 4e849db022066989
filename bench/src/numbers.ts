/** The middle value, or the mean of the middle two. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** By linear interpolation between the neighbours. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  if (low === undefined || high === undefined) throw new Error("no values");
  return low + (high - low) * (at - Math.floor(at));
}

// performance.now() counts from when this process began; it is a quarter of the price of hrtime.
const BEGAN_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** A monotonic clock that all processes of this machine share. */
export function nowMs(): number {
  return BEGAN_MS + performance.now();
}

/** The smallest and the largest part of a whole, in percent. */
export function sharesOf(counts: readonly number[]): {
  readonly min: number;
  readonly max: number;
} {
  const whole = counts.reduce((a, b) => a + b, 0);
  const shares = counts.map((count) => (whole === 0 ? 0 : (count * 100) / whole));
  return { min: Math.min(...shares), max: Math.max(...shares) };
}
