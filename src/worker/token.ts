import { randomFillSync } from "node:crypto";

const POOL = new BigUint64Array(256);
let next = POOL.length;

/** A claim token: 62 random bits, so that no failover and no clock change can repeat one. */
export function newToken(): string {
  if (next === POOL.length) {
    randomFillSync(POOL);
    next = 0;
  }
  return (POOL[next++]! >> 2n).toString();
}
