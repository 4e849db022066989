/** A number for humans: three significant digits, with thousands separators. */
export function number(n: number): string {
  if (n >= 1000) return Math.round(n).toLocaleString("en-US");
  return String(Number(n.toPrecision(3)));
}

/** A share as percent, with one more digit if it is small or almost 100 %. */
export function percent(share: number): string {
  const digits = share < 0.0995 || (share > 0.99 && share < 1) ? 1 : 0;
  return `${Number((share * 100).toFixed(digits))} %`;
}

/** Milliseconds in the unit that reads best. */
export function time(ms: number): string {
  if (ms < 1000) return `${number(ms)} ms`;
  return ms < 120_000 ? `${number(ms / 1000)} s` : `${number(ms / 60_000)} min`;
}

/** A count with its noun in singular or plural. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${number(n)} ${n === 1 ? one : many}`;
}
