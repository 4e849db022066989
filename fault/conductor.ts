// When which fault happens. All of them get their turns, and chance comes from the seed alone.
import { isSluiceError } from "../src/index.js";
import type { Random } from "./random.js";
import type { Fault, Stage } from "./stage.js";

/** What became of one fault so far. */
export interface Tally {
  readonly fault: Fault;
  turns: number;
  bites: number;
  /** How long all its turns took. */
  ms: number;
  /** Turns that came to nothing because another fault had taken the server away. */
  interrupted: number;
}

/** One turn of a fault, for the plot. */
export interface Turn {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

interface Pace {
  /** Between two turns. */
  readonly restMs: readonly [number, number];
}

const PACES: Readonly<Record<Fault["disturbs"], Pace>> = {
  server: { restMs: [400, 1_200] },
  worker: { restMs: [100, 600] },
  work: { restMs: [50, 400] },
};
// kill -9 about every two seconds: some of that is waiting for a victim with tasks in hand.
const KILL_PACE: Pace = { restMs: [1_400, 2_000] };
// After a server's fault others may still stumble over what it left.
const AFTERMATH_MS = 5_000;

export class Conductor {
  readonly tallies: readonly Tally[];
  readonly turns: Turn[] = [];
  readonly #stage: Stage;
  readonly #random: Random;
  readonly #onWrong: (what: string) => void;
  /** Turns of faults that may keep tasks waiting. */
  readonly #rough = new Set<Promise<void>>();
  #calm = false;
  #serverDisturbed = 0;
  #serverRestoredMs = Number.NEGATIVE_INFINITY;

  constructor(stage: Stage, faults: readonly Fault[], random: Random, onWrong: (what: string) => void) {
    this.#stage = stage;
    this.#random = random;
    this.#onWrong = onWrong;
    this.tallies = faults.map((fault) => ({ fault, turns: 0, bites: 0, ms: 0, interrupted: 0 }));
  }

  /** Those that have not bitten yet. */
  get missing(): Tally[] {
    return this.tallies.filter(({ bites }) => bites === 0);
  }

  /** Plays until the stage's signal. Resolves when every fault has put back what it took. */
  async play(workers: number): Promise<void> {
    const of = (disturbs: Fault["disturbs"]): Tally[] =>
      this.tallies.filter(({ fault }) => fault.disturbs === disturbs && fault.name !== "kill");
    const kill = this.tallies.filter(({ fault }) => fault.name === "kill");
    const lanes: Promise<void>[] = [
      this.#lane("server", of("server"), PACES.server),
      this.#lane("kill", kill, KILL_PACE),
      this.#lane("work 1", of("work"), PACES.work),
      this.#lane("work 2", of("work"), PACES.work),
      this.#lane("worker 1", of("worker"), PACES.worker),
    ];
    if (workers > 2) lanes.push(this.#lane("worker 2", of("worker"), PACES.worker));
    await Promise.all(lanes);
  }

  /** From now on only numbers, tasks and queues change. Resolves when all other faults are over. */
  async calm(): Promise<void> {
    this.#calm = true;
    await Promise.all(this.#rough);
  }

  /** One after the other. Two lanes may share faults: a fault's turn is taken when it is begun. */
  async #lane(name: string, tallies: readonly Tally[], pace: Pace): Promise<void> {
    if (tallies.length === 0) return;
    const random = this.#random.fork(name);
    const [least, most] = pace.restMs;
    while (!this.#stage.signal.aborted) {
      await this.#stage.pause(random.between(least, most));
      if (this.#stage.signal.aborted) return;
      const fit = this.#calm ? tallies.filter(({ fault }) => !isRough(fault)) : tallies;
      if (fit.length === 0) return;
      await this.#turn(next(fit, random));
    }
  }

  async #turn(tally: Tally): Promise<void> {
    if (!isRough(tally.fault)) return this.#play(tally);
    const turn = this.#announced(tally);
    this.#rough.add(turn);
    try {
      await turn;
    } finally {
      this.#rough.delete(turn);
    }
  }

  async #announced(tally: Tally): Promise<void> {
    const { log } = this.#stage;
    const what = tally.fault.name;
    await log.write([{ kind: "faultBegun", what }]);
    try {
      await this.#play(tally);
    } finally {
      await log.write([{ kind: "faultOver", what }]);
    }
  }

  async #play(tally: Tally): Promise<void> {
    const { fault } = tally;
    const random = this.#random.fork(`${fault.name} ${++tally.turns}`);
    const fromMs = performance.now();
    if (fault.disturbs === "server") this.#serverDisturbed++;
    try {
      tally.bites += await fault.bite(this.#stage, random);
    } catch (e) {
      if (this.#stage.signal.aborted) return;
      if (this.#explains(e)) tally.interrupted++;
      else this.#onWrong(`the fault ${fault.name} failed: ${wordsOf(e)}`);
    } finally {
      if (fault.disturbs === "server") {
        this.#serverDisturbed--;
        this.#serverRestoredMs = performance.now();
      }
      const toMs = performance.now();
      tally.ms += toMs - fromMs;
      this.turns.push({ name: fault.name, fromMs, toMs });
    }
  }

  /** Whether a fault may fail like this because another one had taken the server away. */
  #explains(e: unknown): boolean {
    const disturbed = this.#serverDisturbed > 0 || performance.now() - this.#serverRestoredMs < AFTERMATH_MS;
    return disturbed && isAway(e);
  }
}

/** Whether it may keep tasks waiting although nothing of the queue holds them. */
function isRough({ disturbs, holdsLocks }: Fault): boolean {
  return disturbs !== "work" || holdsLocks === true;
}

/** Who had the fewest turns; among these the one that has bitten least, and then chance. */
function next(tallies: readonly Tally[], random: Random): Tally {
  const fewest = Math.min(...tallies.map(({ turns }) => turns));
  const missing = tallies.filter(({ turns, bites }) => turns > 0 && bites === 0);
  const behind = tallies.filter(({ turns }) => turns === fewest);
  return random.pick(fewest > 0 && missing.length > 0 ? missing : behind);
}

function isAway(e: unknown): boolean {
  if (isSluiceError(e, "database_unavailable") || isSluiceError(e, "database_busy")) return true;
  const { code } = e as { code?: unknown };
  if (typeof code === "string" && /^(08|53|57|40|25006|55P03|ECONN|EPIPE)/.test(code)) return true;
  return e instanceof Error && /connection|timeout/i.test(e.message);
}

function wordsOf(e: unknown): string {
  return e instanceof Error ? (e.stack ?? e.message) : String(e);
}
