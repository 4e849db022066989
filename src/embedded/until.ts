const everyMs = 10;

/** Polls until `look` returns a value; undefined once the time is over. */
export async function until<T>(withinMs: number, look: () => T | undefined): Promise<T | undefined> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const seen = look();
    if (seen !== undefined || performance.now() > deadline) return seen;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

/** The same for a process that is about to exit and can no longer await promises. */
export function untilSync<T>(withinMs: number, look: () => T | undefined): T | undefined {
  const deadline = performance.now() + withinMs;
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const seen = look();
    if (seen !== undefined || performance.now() > deadline) return seen;
    Atomics.wait(cell, 0, 0, everyMs);
  }
}
