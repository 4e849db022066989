import type { Case } from "./case.js";
import { named } from "./lost.js";
import { Numbers, Rule, type Change } from "./numbers.js";
import type { Peak } from "./report.js";
import type { Judged } from "./trial.js";

/**
 * Goes through time once and holds every start against the numbers in force. A start is above the
 * number if, with it, more hold a slot than the number allows; what still runs above a lowered number
 * is no excuse. A run holds its slots from its start line for as long as that is certain.
 */
export function limits(on: Case): { peaks: Peak[]; lateStarts: number } {
  const sweep = new Sweep(on);
  const { judged } = on.trial;
  const stops = judged.filter(holds).toSorted((a, b) => a.sureUntil - b.sureUntil);
  const { changes } = on.history;
  let [stopped, changed] = [0, 0];
  // In the same moment a slot is first given back, then a number changes, then somebody starts.
  const until = (at: number): void => {
    for (;;) {
      const stop = stops[stopped]?.sureUntil ?? Infinity;
      const change = changes[changed]?.at ?? Infinity;
      if (Math.min(stop, change) > at || Math.min(stop, change) === Infinity) return;
      if (stop <= change) sweep.stop(stops[stopped++]!);
      else sweep.change(changes[changed++]!);
    }
  };
  for (const one of judged) {
    until(one.start);
    if (!one.doubtfulStart) sweep.start(one);
  }
  until(Infinity);
  return sweep.done();
}

/** One that ended in the moment of its start is held against the number, but holds nothing. */
function holds({ start, sureUntil, doubtfulStart }: Judged): boolean {
  return !doubtfulStart && sureUntil > start;
}

class Sweep {
  readonly #on: Case;
  readonly #numbers: Numbers;
  readonly #limits = new Map<string, Limit>();

  constructor(on: Case) {
    this.#on = on;
    this.#numbers = new Numbers(on.history, on.terms);
    for (const rule of Object.keys(on.terms.limits)) this.#limitOf(rule);
  }

  start(one: Judged): void {
    const { line, task } = one.run;
    for (const slot of line.limits) {
      const over = this.#limitOf(slot).start(slot, one.start, holds(one));
      if (over === null) continue;
      this.#on.findings.add(
        slot.startsWith("window") ? "aboveWindow" : "overLimit",
        () =>
          `${named(task)} started at ${this.#on.clock(one.start)} as number ${over.running} of ${over.slots} in ${slot}`,
      );
    }
  }

  stop({ run }: Judged): void {
    for (const slot of run.line.limits) this.#limitOf(slot).stop(slot);
  }

  change(change: Change): void {
    this.#limitOf(change.limit).change(change);
  }

  done(): { peaks: Peak[]; lateStarts: number } {
    const all = [...this.#limits.values()];
    const peaks = all.map((limit) => limit.peakUntil(this.#on.history.last));
    const lateStarts = all.reduce((sum, limit) => sum + limit.lateStarts, 0);
    return { peaks: peaks.toSorted((a, b) => (a.limit < b.limit ? -1 : 1)), lateStarts };
  }

  #limitOf(slot: string): Limit {
    const name = this.#numbers.ruleOf(slot);
    let limit = this.#limits.get(name);
    if (limit === undefined) {
      const [first, { history, trial }] = [this.#numbers.firstOf(name), this.#on];
      limit = new Limit({ name, first, since: history.first, lateMs: trial.lateMs });
      this.#limits.set(name, limit);
    }
    return limit;
  }
}

interface Gauge {
  running: number;
  /** How many starts above the number may still come from claims made before it was lowered. */
  late: number;
}

class Limit {
  lateStarts = 0;
  readonly #o: { readonly name: string; readonly lateMs: number };
  readonly #rule: Rule;
  readonly #gauges = new Map<string, Gauge>();
  readonly #under = new Map<number, { peak: number; ms: number }>();
  #lateAtFirst = 0;
  #lateUntil = Number.NEGATIVE_INFINITY;
  #since: number;

  constructor(o: { readonly name: string; readonly first: number; readonly since: number; readonly lateMs: number }) {
    this.#o = o;
    this.#rule = new Rule(o.first);
    this.#since = o.since;
  }

  /** What was claimed under the higher number may write its start after it was lowered, though soon. */
  change(change: Change): void {
    const { at, kind } = change;
    this.#pass(at);
    const before = this.#rule.change(change);
    if (kind === "changing") return;
    const now = this.#rule.slots;
    if (at > this.#lateUntil) this.#forget();
    // No clock tells which those are, but with what ran they fitted under the number before.
    const more = (running: number): number => (now < before ? Math.max(0, before - Math.max(now, running)) : 0);
    this.#lateAtFirst += more(0);
    for (const gauge of this.#gauges.values()) gauge.late += more(gauge.running);
    if (now < before) this.#lateUntil = at + this.#o.lateMs;
  }

  /** How far it is over, if it is. */
  start(slot: string, at: number, holds: boolean): { running: number; slots: number } | null {
    const gauge = this.#gaugeOf(slot);
    const [running, { slots }] = [gauge.running + 1, this.#rule];
    if (holds) gauge.running++;
    if (running <= slots) {
      const under = this.#underOf(slots);
      under.peak = Math.max(under.peak, running);
      return null;
    }
    if (gauge.late <= 0 || at > this.#lateUntil) return { running, slots };
    gauge.late--;
    this.lateStarts++;
    return null;
  }

  stop(slot: string): void {
    this.#gaugeOf(slot).running--;
  }

  peakUntil(last: number): Peak {
    this.#pass(last);
    const under = [...this.#under].map(([slots, { peak, ms }]) => ({
      slots: Number.isFinite(slots) ? slots : null,
      peak,
      ms: Math.round(ms),
    }));
    return { limit: this.#o.name, peak: Math.max(0, ...under.map(({ peak }) => peak)), under };
  }

  #pass(at: number): void {
    this.#underOf(this.#rule.slots).ms += at - this.#since;
    this.#since = at;
  }

  #forget(): void {
    this.#lateAtFirst = 0;
    for (const gauge of this.#gauges.values()) gauge.late = 0;
  }

  #underOf(slots: number): { peak: number; ms: number } {
    let under = this.#under.get(slots);
    if (under === undefined) this.#under.set(slots, (under = { peak: 0, ms: 0 }));
    return under;
  }

  #gaugeOf(slot: string): Gauge {
    let gauge = this.#gauges.get(slot);
    if (gauge === undefined) this.#gauges.set(slot, (gauge = { running: 0, late: this.#lateAtFirst }));
    return gauge;
  }
}
