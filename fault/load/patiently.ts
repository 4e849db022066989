import { setTimeout as delay } from "node:timers/promises";

const MS_MAX = 60_000;
const AGAIN_MS = 200;

/** The database may be away just now: a process manager would start us again and again. */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const end = performance.now() + MS_MAX;
  for (;;) {
    try {
      return await work();
    } catch (e) {
      if (performance.now() > end) throw e;
      await delay(AGAIN_MS);
    }
  }
}
