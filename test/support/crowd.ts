import { signal } from "../flow/scene.js";

/** Counts how many callers are inside at once. */
export interface Crowd {
  readonly peak: number;
  /** Enters, waits until the crowd was complete once, works and leaves. */
  pass(work: () => Promise<void>): Promise<void>;
}

/** A crowd of this size. The first callers wait for each other, so that a limit is reached by design and not by luck. */
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
