import type { Case } from "./case.js";
import { spreadOf, Tally } from "./findings.js";
import type { Of } from "./history.js";
import { named } from "./lost.js";
import { Numbers, Rule } from "./numbers.js";
import type { Recovery } from "./report.js";
import type { Judged } from "./trial.js";
import { Unserved } from "./unserved.js";
import { firstAfter, Windows, type Window } from "./windows.js";

/**
 * What a process died with must start again within the lease and `recoverMs`. Times are told from the
 * line that says it is dead. What waited for a good reason is excused, and counted by that reason.
 */
export function recovery(on: Case): Recovery {
  const excuses = new Excuses(on);
  const [afterMs, excused]: [number[], Tally] = [[], new Tally()];
  let [died, settled] = [0, 0];
  for (const one of on.trial.judged) {
    if (one.diedAt === null) continue;
    died++;
    const again = startAfter(on, one);
    if (settledBefore(one, again ?? Number.POSITIVE_INFINITY)) settled++;
    else {
      const why = judge(on, one, again, excuses);
      if (why !== null) excused.add(why);
      else if (again !== null) afterMs.push(Math.max(0, again - one.diedAt));
    }
  }
  return { died, settled, excused: excused.toJSON(), ...spreadOf(afterMs) };
}

/** Recorded without running again; somebody may have it retried by hand later. */
function settledBefore({ run, start }: Judged, again: number): boolean {
  return run.task.accepted.some(({ at }) => at >= start && at <= again);
}

/**
 * When its task started again: perhaps before its process was known to be dead. A start in doubt counts if its success
 * was recorded, for then its claim was in force.
 */
function startAfter({ trial }: Case, { run }: Judged): number | null {
  const { runs, accepted } = run.task;
  const recorded = new Set(accepted.map(({ claim }) => claim));
  const later = runs.slice(runs.indexOf(run) + 1).map((next) => trial.of(next));
  const sure = later.find((one) => !one.doubtfulStart || recorded.has(one.run.line.claim));
  return sure?.start ?? null;
}

/** Reports it if it is late without excuse; returns the excuse if there is one. */
function judge(on: Case, one: Judged, again: number | null, excuses: Excuses): string | null {
  const limitMs = on.terms.leaseMs + on.terms.recoverMs;
  const by = again ?? on.history.last;
  if (by - one.diedAt! <= limitMs) return null;
  const excuse = excuses.find(one, by, limitMs);
  if (excuse !== null) return excuse;
  on.findings.add("slowRecovery", () => {
    const late = again === null ? "did not start again" : `started ${Math.round(by - one.diedAt!)} ms later`;
    return `${named(one.run.task)}: ${one.run.line.process} died with it at ${on.clock(one.diedAt!)}; it ${late}`;
  });
  return null;
}

/** What may keep a task waiting that nobody has forgotten. */
class Excuses {
  readonly #on: Case;
  readonly #numbers: Numbers;
  readonly #pauses: Map<string, Windows>;
  /** Times in which a limit was being changed, or had a lower number than at first. */
  readonly #changes: Map<string, Windows>;
  /** When processes died or were disturbed: one may have had the task in hand, and not have started it. */
  readonly #mishaps: readonly number[];
  readonly #unserved: Unserved;

  constructor(on: Case) {
    this.#on = on;
    this.#numbers = new Numbers(on.history, on.terms);
    this.#pauses = pausesOf(on.history.pauses);
    this.#changes = this.#changesOf();
    this.#unserved = new Unserved(on.history);
    this.#mishaps = [...on.history.processes.values()]
      .flatMap(({ deaths, windows }) => [...deaths, ...windows.map(({ to }) => to)])
      // When the clock is set back, what is left of a lease begins anew.
      .concat(on.history.jumps.map(({ to }) => to))
      .filter((at) => Number.isFinite(at))
      .toSorted((a, b) => a - b);
  }

  find({ run, diedAt }: Judged, by: number, limitMs: number): string | null {
    const died = diedAt!;
    const { line, task } = run;
    const due = this.#dueBy(died, by, limitMs);
    // What comes after it was due cannot be why it was late.
    const touched = (windows: Windows | undefined): boolean =>
      (windows?.touching(died, Math.min(by, due)).length ?? 0) > 0;
    if (touched(this.#on.trial.everybody)) return "everybody was disturbed";
    if (touched(this.#pauses.get(line.type))) return "its type was paused";
    if (line.limits.some((slot) => touched(this.#changes.get(this.#numbers.ruleOf(slot)))))
      return "a limit of it was lowered or changed";
    if (touched(this.#unserved.of(line.type))) return "no worker that serves it was well";
    if (task.cancelling.some((at) => at <= by)) return "somebody asked to cancel it";
    return due >= by ? "another process may have died with it" : null;
  }

  /** Whoever claims it and dies before its start line begins the time anew. */
  #dueBy(died: number, by: number, limitMs: number): number {
    let until = died;
    for (let i = firstAfter(this.#mishaps, died, (at) => at); i < this.#mishaps.length; i++) {
      if (this.#mishaps[i]! > until + limitMs || until + limitMs >= by) break;
      until = this.#mishaps[i]!;
    }
    return until + limitMs;
  }

  #changesOf(): Map<string, Windows> {
    const rules = new Map<string, { rule: Rule; windows: Window[] }>();
    for (const change of this.#on.history.changes) {
      const name = this.#numbers.ruleOf(change.limit);
      const first = this.#numbers.firstOf(name);
      const known = rules.get(name) ?? { rule: new Rule(first), windows: [] };
      rules.set(name, known);
      known.rule.change(change);
      const open = known.windows.findLast(({ to }) => to === Infinity);
      if (open !== undefined) open.to = change.at;
      // Open while it is being changed, and from then on if it is lower than at first.
      const lower = change.kind === "changed" && known.rule.slots < first;
      if (lower || change.kind === "changing") known.windows.push({ from: change.at, to: Infinity, what: name });
    }
    return new Map([...rules].map(([name, { windows }]) => [name, new Windows(windows)]));
  }
}

function pausesOf(lines: readonly Of<"pausing" | "paused" | "resuming" | "resumed">[]): Map<string, Windows> {
  const windows = new Map<string, Window[]>();
  for (const { kind, types, at } of lines) {
    for (const type of types) {
      const of = windows.get(type) ?? [];
      windows.set(type, of);
      const open = of.at(-1)?.to === Infinity ? of.at(-1) : undefined;
      if (kind === "resumed" && open !== undefined) open.to = at;
      else if (kind === "pausing" && open === undefined) of.push({ from: at, to: Infinity, what: type });
    }
  }
  return new Map([...windows].map(([type, of]) => [type, new Windows(of)]));
}
