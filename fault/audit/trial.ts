// How long each run surely held what it held, and from when on its task might run elsewhere. The log
// does not say when a lease was lost: that is told from the disturbances, and where it cannot be told
// the run is doubtful, which is counted and held against nobody.
import type { History, Run } from "./history.js";
import type { Past } from "./past.js";
import { EVERYBODY } from "./history.js";
import type { Terms } from "./line.js";
import { joined, Windows, type Window } from "./windows.js";

// A worker beats every third of its lease, so when a disturbance begins the lease has at least two
// thirds to go. A sixth is left for a beat that came late.
const SURE = 1 / 2;
// A disturbance that is shorter cannot cost the lease.
const LONG = 0.6;
// Between two disturbances so close there may have been no beat.
const GAP = 1 / 3;
// Broken connections may be noticed, and replaced, some time after the disturbance is over.
const SHADOW = 1;
/** A process that has said nothing for so long, in leases, may have been asleep. */
export const SILENCE = 1 / 2;
// A start line may come so long after its claim without anything being wrong.
const LATE = 1 / 2;

export interface Judged {
  readonly run: Run;
  readonly start: number;
  /** When its handler ended or died; Infinity if neither is known. */
  readonly stop: number;
  /** Until then it held its slots for certain. At most `stop`. */
  readonly sureUntil: number;
  /** Its claim may have been long over when it started: nothing is held against it. */
  readonly doubtfulStart: boolean;
  /** It went on when its lease was, or may have been, lost. */
  readonly zombie: boolean;
  /** Its process died with it. */
  readonly diedAt: number | null;
  /** From then on another run of its task is no wonder, and why. Infinity: never. */
  readonly againFrom: number;
  readonly againWhy: string;
}

/** What is known of a process's ability to keep its lease. */
interface Troubles {
  /** Disturbances that were announced, of the process or of everybody, and of the process alone. */
  readonly spells: Windows;
  readonly own: Windows;
  /** The lease before each moment at which it was said to be lost. */
  readonly lost: Windows;
}

export class Trial {
  readonly lateMs: number;
  /** Disturbances of everybody. */
  readonly everybody: Windows;
  /** How often a lease was lost without a disturbance. */
  readonly leasesLost: number;
  readonly judged: readonly Judged[];
  /** From when the database's clock is set forward until whatever was claimed before has said so. */
  readonly #jumps: Windows;
  readonly #leaseMs: number;
  readonly #troubles = new Map<Past, Troubles>();

  constructor(history: History, { leaseMs }: Terms) {
    this.#leaseMs = leaseMs;
    this.lateMs = leaseMs * LATE;
    this.everybody = new Windows(history.processes.get(EVERYBODY)?.windows ?? []);
    const forward = history.jumps.filter(({ byMs }) => byMs > 0);
    this.#jumps = new Windows(forward.map(({ from, to }) => ({ from, to: to + this.lateMs, what: "clock" })));
    for (const past of history.processes.values()) this.#troubles.set(past, this.#troublesOf(past));
    this.leasesLost = [...this.#troubles.values()].reduce((sum, t) => sum + this.#unannounced(t), 0);
    this.judged = history.runs.map((run) => this.#judge(run));
  }

  of(run: Run): Judged {
    return this.judged[run.n]!;
  }

  /** Whether the process, or everybody, was disturbed between the two or shortly before. */
  disturbed(past: Past, from: number, to: number): boolean {
    const { lost } = this.#troubles.get(past)!;
    return this.announced(past, from, to) || lost.touching(from, to).length > 0;
  }

  /** The same, by a fault that said so. */
  announced(past: Past, from: number, to: number): boolean {
    const { spells } = this.#troubles.get(past)!;
    return spells.touching(from - this.#leaseMs * SHADOW, to).length > 0;
  }

  /** Whether a disturbance may cost the lease. */
  isLong({ from, to }: Window): boolean {
    return to - from >= this.#leaseMs * LONG;
  }

  #troublesOf(past: Past): Troubles {
    const lost: Window[] = [];
    for (const to of past.leasesLost) {
      const last = lost.at(-1);
      if (last !== undefined && to - last.to < this.#leaseMs / 2) last.to = to;
      else lost.push({ from: to - this.#leaseMs, to, what: "lease lost" });
    }
    const announced = past.name === EVERYBODY ? [] : past.windows;
    const spells = joined([...announced, ...this.everybody.all], this.#leaseMs * GAP);
    return { spells: new Windows(spells), own: new Windows(announced), lost: new Windows(lost) };
  }

  #unannounced({ lost, spells }: Troubles): number {
    const shadowMs = this.#leaseMs * SHADOW;
    return lost.all.filter(({ from, to }) => spells.touching(from - shadowMs, to).length === 0).length;
  }

  #judge(run: Run): Judged {
    const start = run.line.at;
    const diedAt = run.end === null ? deathAfter(run.past, start) : null;
    const stop = Math.max(start, run.end?.at ?? diedAt ?? Number.POSITIVE_INFINITY);
    const lost = run.end?.how === "left" && run.end.reason === "lease_lost";
    const asleep = this.#mayHaveSlept(run);
    const leased = asleep ? start : Math.max(start, this.#leasedUntil(run, stop));
    const sureUntil = Math.max(start, Math.min(leased, this.#handedBack(run, stop)));
    const zombie = lost || asleep || stop - leased > this.#leaseMs * SURE;
    const doubtfulStart = asleep || (leased === start && stop > start);
    const again = this.#again(run, { stop, sureUntil, diedAt });
    return { run, start, stop, sureUntil, doubtfulStart, zombie, diedAt, ...again };
  }

  /**
   * A process that was frozen after a claim starts what it claimed when it wakes, long after. What
   * disturbs everybody puts nobody to sleep: a claim that comes through then is as good as any.
   */
  #mayHaveSlept({ past, line, awakeSince }: Run): boolean {
    if (line.at - awakeSince > this.#leaseMs * SURE) return false;
    const { own } = this.#troubles.get(past)!;
    const near = own.touching(line.at - this.#leaseMs * SURE, line.at);
    return near.some((window) => this.isLong(window));
  }

  /** Until when the lease has surely lasted, and with it the run's slots. */
  #leasedUntil(run: Run, stop: number): number {
    const { spells, own, lost } = this.#troubles.get(run.past)!;
    const [start, sureMs] = [run.line.at, this.#leaseMs * SURE];
    const ends = [stop];
    for (const spell of spells.touching(start, stop)) {
      if (!this.isLong(spell)) continue;
      // Who claims in the middle of a disturbance has a lease, if perhaps not much of it: then the
      // worker says so itself, unless it is put to sleep as well.
      ends.push(Math.max(spell.from, start) + sureMs);
      if (spell.from < start) ends.push(...own.touching(start, stop).flatMap(({ from }) => (from > start ? from : [])));
    }
    // A clock that is set forward ends all leases at once.
    ends.push(...this.#jumps.touching(start, stop).map(({ from }) => Math.max(from, start)));
    // Whoever says that the lease was lost says so late when the machine is starved.
    ends.push(...lost.touching(start, stop).map(({ from }) => from + sureMs));
    return Math.min(...ends);
  }

  /** A worker that stops hands its tasks back and tells the handlers in one go, so these may be a little late. */
  #handedBack({ end, past, line }: Run, stop: number): number {
    if (end?.how === "left" && isShutdown(end.reason))
      return Math.max(end.at - this.lateMs, past.terminating.findLast((at) => at <= end.at) ?? 0);
    if (end !== null) return stop;
    return past.terminating.find((at) => at >= line.at && at <= stop) ?? stop;
  }

  #again(
    run: Run,
    { stop, sureUntil, diedAt }: { stop: number; sureUntil: number; diedAt: number | null },
  ): { againFrom: number; againWhy: string } {
    const { end } = run;
    if (end !== null && end.how !== "completed" && end.how !== "cancelled")
      return { againFrom: sureUntil, againWhy: end.reason ?? end.how };
    if (diedAt !== null) return { againFrom: sureUntil, againWhy: "its process died" };
    if (sureUntil < stop) return { againFrom: sureUntil, againWhy: "its lease may be lost" };
    if (failureAt(run, stop) !== null) return { againFrom: stop, againWhy: "timeout" };
    // Its worker may have handed it back while it told its end.
    if (run.past.terminating.some((at) => at <= stop))
      return { againFrom: stop, againWhy: "it ended while its process did" };
    return { againFrom: this.#unrecordedFrom(run, stop), againWhy: "its end may be unrecorded" };
  }

  /** What a handler has said is recorded soon after, unless something happens to its process. */
  #unrecordedFrom({ past }: Run, end: number): number {
    const { spells, lost } = this.#troubles.get(past)!;
    const killed = deathAfter(past, end);
    const inOrder = past.terminating.some((at) => killed !== null && at <= killed);
    return Math.min(
      spells.firstFrom(end, this.#leaseMs * SHADOW),
      lost.firstFrom(end, 0),
      killed === null || inOrder ? Number.POSITIVE_INFINITY : killed,
    );
  }
}

function isShutdown(reason: string | null): boolean {
  return reason !== "timeout" && reason !== "lease_lost" && !/cancel/.test(reason ?? "");
}

/** In the same moment too: what was on its way to the log when a process died is told as of its death. */
function deathAfter({ deaths }: Past, at: number): number | null {
  return deaths.find((death) => death >= at) ?? null;
}

/** When a run used up an attempt of its task, if it did or may have. */
export function failureAt({ line, end }: Run, stop: number): number | null {
  if (end?.how === "thrown" || (end?.how === "left" && end.reason === "timeout")) return end.at;
  // The time runs from before the start line to after the end line: who ends shortly before may be too late.
  const timeout = line.timeoutMs ?? Number.POSITIVE_INFINITY;
  return stop - line.at >= timeout / 2 && Number.isFinite(stop) ? stop : null;
}
