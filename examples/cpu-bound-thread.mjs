// The thread of cpu-bound.ts: counts primes the slow way, and tells how long it took.
import { parentPort } from "node:worker_threads";

function primesBelow(limit) {
  let primes = 0;
  for (let n = 2; n < limit; n++) {
    let divisor = 2;
    while (divisor * divisor <= n && n % divisor !== 0) divisor++;
    if (divisor * divisor > n) primes++;
  }
  return primes;
}

parentPort.on("message", (limit) => {
  const startedMs = performance.now();
  const primes = primesBelow(limit ?? Infinity);
  parentPort.postMessage({ primes, tookMs: performance.now() - startedMs });
});
