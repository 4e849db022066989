import type { Case } from "./case.js";
import type { Task } from "./history.js";
import { named } from "./lost.js";
import { failureAt } from "./trial.js";

/** A place of an order key, and when it was done with. */
interface Place {
  readonly task: Task;
  readonly place: number;
  /** It had come to its last end, or somebody had asked to cancel it. */
  readonly over: number;
  /** Its outcome was recorded. */
  readonly recorded: number;
}

/**
 * A place may start only when every lower one is over and recorded as such. Places that were never
 * acknowledged and never ran do not count: they may not exist. What somebody had retried by hand is
 * behind its turn by right. Returns how many keys there were.
 */
export function order(on: Case): number {
  const keys = new Map<string, Task[]>();
  for (const task of on.history.tasks.values()) {
    const key = task.claims?.orderKey ?? null;
    if (key === null) continue;
    const tasks = keys.get(key);
    if (tasks === undefined) keys.set(key, [task]);
    else tasks.push(task);
  }
  for (const [key, tasks] of keys) inTurn(on, key, tasks);
  return keys.size;
}

function inTurn(on: Case, key: string, tasks: readonly Task[]): void {
  const places = tasks.map((task) => placeOf(on, task)).toSorted((a, b) => a.place - b.place);
  // Of all lower places, the one that was over last and the one that was recorded last.
  let over: Place | null = null;
  let recorded: Place | null = null;
  for (let i = 0; i < places.length;) {
    const { place } = places[i]!;
    const same: Place[] = [];
    while (places[i]?.place === place) same.push(places[i++]!);
    for (const { task } of same) held(on, key, task, { over, recorded });
    for (const one of same) {
      if (over === null || one.over > over.over) over = one;
      if (recorded === null || one.recorded > recorded.recorded) recorded = one;
    }
  }
}

function held(
  { trial, findings, clock }: Case,
  key: string,
  task: Task,
  lower: { readonly over: Place | null; readonly recorded: Place | null },
): void {
  for (const { start, doubtfulStart, run } of task.runs.map((one) => trial.of(one))) {
    if (doubtfulStart || (task.retrying[0] ?? Infinity) <= start) continue;
    const began = (): string =>
      `${key}: place ${run.line.place} (${named(task)}) started at ${clock(start)}, before place`;
    if (lower.over !== null && start < lower.over.over)
      findings.add("outOfOrder", () => `${began()} ${lower.over!.place} was over`);
    else if (lower.recorded !== null && start < lower.recorded.recorded)
      findings.add("startedBeforeRecorded", () => `${began()} ${lower.recorded!.place} was recorded`);
  }
}

function placeOf({ trial }: Case, task: Task): Place {
  const recorded = task.accepted[0]?.at ?? Infinity;
  const runs = task.runs.map((run) => trial.of(run));
  const ends = runs.flatMap(({ run: { end } }) =>
    end?.how === "completed" || end?.how === "cancelled" ? [end.at] : [],
  );
  const failures = runs.flatMap(({ run, stop }) => failureAt(run, stop) ?? []).toSorted((a, b) => a - b);
  const failed = failures[(task.claims?.attempts ?? 1) - 1] ?? Infinity;
  const over = Math.min(
    recorded,
    failed,
    task.cancelling[0] ?? Infinity,
    ends.toSorted((a, b) => a - b)[0] ?? Infinity,
  );
  return { task, place: task.claims?.place ?? 0, over, recorded };
}
