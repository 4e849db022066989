/** What one process saw of its tasks, in the order in which they began. Times by the shared clock. */
export interface Ledger {
  /** The names of keys; a task's key is an index into it, -1 for none. */
  readonly keys: readonly string[];
  readonly key: Int32Array;
  readonly n: Int32Array;
  readonly beganMs: Float64Array;
  /** NaN: it still ran when it was asked. */
  readonly endedMs: Float64Array;
}

export interface Finding {
  /** Starts with a smaller n than an earlier start of the same key. */
  readonly inversions: number;
  /** Starts while another of the same key still ran. */
  readonly overlaps: number;
  /** The most that ran at once, over all processes. */
  readonly peak: number;
  readonly peakPerKey: number;
}

interface Moment {
  readonly atMs: number;
  readonly change: 1 | -1;
  readonly key: string | null;
  readonly n: number;
  /** Who is first at one moment. */
  readonly turn: 0 | 1 | 2;
}

interface KeyState {
  last: number;
  running: number;
}

/** Looks at what all processes saw together. */
export function audit(ledgers: readonly Ledger[]): Finding {
  const keys = new Map<string, KeyState>();
  const found = { inversions: 0, overlaps: 0, peak: 0, peakPerKey: 0 };
  let running = 0;
  for (const moment of momentsOf(ledgers)) {
    running += moment.change;
    found.peak = Math.max(found.peak, running);
    if (moment.key !== null) see(keys, moment, moment.key, found);
  }
  return found;
}

function see(
  keys: Map<string, KeyState>,
  { change, n }: Moment,
  key: string,
  found: { inversions: number; overlaps: number; peakPerKey: number },
): void {
  let state = keys.get(key);
  if (state === undefined) keys.set(key, (state = { last: -1, running: 0 }));
  if (change === 1) {
    if (n < state.last) found.inversions++;
    if (state.running > 0) found.overlaps++;
    state.last = Math.max(state.last, n);
  }
  state.running += change;
  found.peakPerKey = Math.max(found.peakPerKey, state.running);
}

/**
 * Begins and ends in the order of time. The clock is not infinitely fine: at one moment first those end
 * that began before, then come those that began and ended within it, each for itself, then those that go on.
 */
function momentsOf(ledgers: readonly Ledger[]): Moment[] {
  const moments: Moment[] = [];
  for (const { keys, key, n, beganMs, endedMs } of ledgers) {
    for (let i = 0; i < beganMs.length; i++) {
      const [began, ended] = [beganMs[i]!, endedMs[i]!];
      const of = { key: keys[key[i]!] ?? null, n: n[i]! };
      const instant = ended <= began;
      moments.push({ ...of, atMs: began, change: 1, turn: instant ? 1 : 2 });
      if (!Number.isNaN(ended))
        moments.push({ ...of, atMs: Math.max(began, ended), change: -1, turn: instant ? 1 : 0 });
    }
  }
  return moments.toSorted((a, b) => a.atMs - b.atMs || a.turn - b.turn);
}
