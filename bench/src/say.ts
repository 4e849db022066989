/** Progress, on stderr: stdout belongs to the results. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** 61234.5 -> "61,234"; small numbers keep their decimals. */
export function pretty(n: number): string {
  const digits = n >= 100 ? 0 : n >= 10 ? 1 : 2;
  return n.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
