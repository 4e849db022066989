/** The value below which this share of them lies, in hundredths; 0 of none. */
export function percentile(of: readonly number[], share: number): number {
  const sorted = of.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return Math.round(value * 100) / 100;
}
