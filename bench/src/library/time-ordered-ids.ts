import { randomBytes } from "node:crypto";

const COUNTER_DIGITS = 9;

/**
 * UUIDs (version 7) of which each is greater than the one before: the time, a counter, and what tells
 * two processes apart.
 */
export function timeOrderedIds(): () => string {
  const time = hex(Date.now(), 12);
  const own = randomBytes(5).toString("hex").slice(1);
  const head = `${time.slice(0, 8)}-${time.slice(8)}`;
  let count = 0;
  return () => {
    const n = hex(count++, COUNTER_DIGITS);
    return `${head}-7${n.slice(0, 3)}-8${n.slice(3, 6)}-${n.slice(6)}${own}`;
  };
}

function hex(n: number, digits: number): string {
  return n.toString(16).padStart(digits, "0");
}
