import type { Line } from "./audit.js";
import type { Run } from "./runs.js";

/** How many ran at once under a limit while it had this number; of a limit per key, in the busiest. */
export interface Peak {
  readonly limit: string;
  readonly slots: number;
  readonly peak: number;
}

type Event = { readonly at: number; readonly turn: number } & (
  { readonly run: Run; readonly begins: boolean } | { readonly line: Line }
);

/** Goes through time once and holds every start against the number in force. */
export function sweep(
  log: readonly Line[],
  runs: readonly Run[],
): { over: string[]; peaks: Peak[] } {
  const limits = new Map<string, SweptLimit>();
  for (const event of eventsOf(log, runs)) {
    if ("line" in event) limitOf(event.line.limits![0]!).change(event.line);
    else for (const key of event.run.limits) limitOf(key).count(key, event);
  }
  const swept = [...limits.values()];
  return { over: swept.flatMap((l) => l.over), peaks: swept.flatMap((l) => [...l.peaks.values()]) };

  /** `name/key` is a key of a limit, `name` one without keys. */
  function limitOf(key: string): SweptLimit {
    const name = key.split("/")[0]!;
    if (!limits.has(name)) limits.set(name, new SweptLimit(name));
    return limits.get(name)!;
  }
}

/** In the order of time. In the same moment a slot is first given back, then a number changes, then somebody starts. */
function eventsOf(log: readonly Line[], runs: readonly Run[]): Event[] {
  const changes = log.filter((line) => line.kind === "asked" || line.kind === "set");
  const events: Event[] = [
    ...runs.map((run) => ({ at: run.stop, turn: 0, run, begins: false })),
    ...changes.map((line) => ({ at: line.at, turn: 1, line })),
    ...runs.map((run) => ({ at: run.start, turn: 2, run, begins: true })),
  ];
  return events.toSorted((a, b) => a.at - b.at || a.turn - b.turn);
}

class SweptLimit {
  readonly over: string[] = [];
  readonly peaks = new Map<number, Peak>();
  /** Who runs under each key, and how many starts above the number may still come from older claims. */
  readonly #keys = new Map<string, { running: number; excused: number }>();
  #slots = 0;
  #excusedAtFirst = 0;

  constructor(readonly name: string) {}

  /**
   * A higher number may be used from when it was asked for; a lower one counts from when `set` has
   * returned. What was claimed before that may write its start a moment later. No clock tells which
   * those are, but their number is bounded: with those that ran they fitted under the old number.
   */
  change({ kind, slots }: Line): void {
    const [before, now] = [this.#slots, slots!];
    this.#slots = kind === "asked" ? Math.max(before, now) : now;
    const excused = (running: number): number => Math.max(0, before - Math.max(now, running));
    if (kind === "asked") return;
    this.#excusedAtFirst = excused(0);
    for (const key of this.#keys.values()) key.excused = excused(key.running);
  }

  count(name: string, { run, begins }: { readonly run: Run; readonly begins: boolean }): void {
    const key = this.#keys.get(name) ?? { running: 0, excused: this.#excusedAtFirst };
    this.#keys.set(name, key);
    key.running += begins ? 1 : -1;
    if (!begins) return;
    const [slots, { running }] = [this.#slots, key];
    if (running <= slots) {
      const peak = Math.max(running, this.peaks.get(slots)?.peak ?? 0);
      this.peaks.set(slots, { limit: this.name, slots, peak });
    } else if (key.excused > 0) key.excused--;
    else
      this.over.push(`${run.type} ${run.task} began as number ${running} of ${slots} in ${name}`);
  }
}
