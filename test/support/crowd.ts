import { signal } from "../flow/scene.js";

/** Counts how many are inside at once. */
export interface Crowd {
  readonly peak: number;
  /** Goes in, stays until as many have been inside at once as may be, works, and leaves. */
  pass(work: () => Promise<void>): Promise<void>;
}

/** So many may be inside: the first ones wait for each other, so that a limit is reached by a signal and not by luck. */
export function crowd(size: number): Crowd {
  let inside = 0;
  let peak = 0;
  const full = signal();
  return {
    get peak() {
      return peak;
    },
    async pass(work) {
      peak = Math.max(peak, ++inside);
      if (inside === size) full.resolve();
      await full.promise;
      try {
        await work();
      } finally {
        inside--;
      }
    },
  };
}
