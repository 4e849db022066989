import type { Scheduler } from "fast-check";
import { vi } from "vitest";
import { cancel, fixed, snooze, task, type, type TaskContext } from "../../../src/index.js";
import { silentLogger } from "../../../src/core/ports.js";
import { Hooks } from "../../../src/worker/hooks.js";
import { Worker } from "../../../src/worker/worker.js";
import { Network, type Fate } from "./network.js";
import { Store } from "./store.js";
import { Watcher } from "./witness.js";

/** How a handler ends. A deaf one ignores its abort signal and never ends. */
export type Ending =
  "returns" | "lingers" | "throws" | "snoozes" | "cancels" | "commits" | "waits for its signal" | "is deaf";

export interface Script {
  readonly scheduler: Scheduler;
  readonly tasks: number;
  readonly suspects: number;
  readonly permits: number;
  readonly batchMax: number;
  readonly loops: number;
  readonly fates: readonly Fate[];
  readonly endings: readonly Ending[];
  /** Turns at which time passes although something could arrive. */
  readonly slow: readonly boolean[];
  /** Turns at which a task is asked to stop. */
  readonly cancels: readonly number[];
  /** The turn at which stop() is called; from then on, or not, all statements arrive. */
  readonly stopAt: number;
  readonly calmStop: boolean;
  readonly graceMs: number;
  /** Handlers that hang end by their timeout. */
  readonly timeoutMs: number;
  readonly seed: number;
}

const TIMERS = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] as const;
export const LEASE_MS = 1_000;
const TURN_MS = 25;
// Faults end after the first number of turns, and everything must have ended after the second.
const CHAOS_TURNS_MAX = 1_500;
const TURNS_MAX = 6_000;
const AFTER_STOP_TURNS = 60;

/** A whole worker on a store in memory, with time, order and faults in the hand of the script. */
export class Stage {
  readonly store: Store;
  readonly watcher: Watcher;
  readonly worker: Worker;
  /** Tasks whose success was an event. */
  readonly reported = new Set<string>();
  readonly #script: Script;
  #statements = 0;
  #runs = 0;
  #turns = 0;
  // Until it has started, and after the last fault: everything arrives, and at once.
  #calm = true;

  constructor(script: Script) {
    this.#script = script;
    this.store = new Store(script.tasks, script.suspects);
    this.watcher = new Watcher(this.store);
    const network = new Network({
      store: this.store,
      scheduler: script.scheduler,
      witness: this.watcher,
      nextFate: () => this.#nextFate(),
    });
    this.worker = this.#worker(network);
  }

  /** Plays the script: chaos, then calm until all is over, then stop(); or stop() in the middle. */
  async play(): Promise<void> {
    vi.useFakeTimers({ toFake: [...TIMERS] });
    vi.spyOn(Math, "random").mockImplementation(chance(this.#script.seed));
    try {
      await this.#until(this.worker.start());
      this.#calm = false;
      this.#turns = 0;
      const stopping = (): boolean => this.#turns >= this.#script.stopAt;
      while (!stopping() && !this.#idle && this.#turns < TURNS_MAX) await this.#turn();
      if (this.#script.calmStop) this.#calm = true;
      await this.#until(this.worker.stop({ graceMs: this.#script.graceMs }));
      this.watcher.stopped();
      for (let i = 0; i < AFTER_STOP_TURNS; i++) await this.#turn();
    } finally {
      vi.useRealTimers();
      vi.restoreAllMocks();
    }
  }

  get #idle(): boolean {
    return this.store.unfinished === 0 && this.worker.status().permitsInUse === 0;
  }

  /** One thing arrives, or a little time passes. */
  async #turn(): Promise<void> {
    const { scheduler, slow, cancels } = this.#script;
    const turn = this.#turns++;
    if (turn > CHAOS_TURNS_MAX) this.#calm = true;
    if (cancels.includes(turn)) this.#cancelOne(turn);
    const wait = !this.#calm && slow.length > 0 && slow[turn % slow.length] === true;
    const passes = scheduler.count() === 0 || wait;
    if (passes) await vi.advanceTimersByTimeAsync(TURN_MS);
    else await scheduler.waitOne();
    await new Promise((resolve) => setImmediate(resolve));
    this.watcher.look(passes && this.#calm ? TURN_MS : 0);
  }

  async #until(work: Promise<void>): Promise<void> {
    const state = { over: false };
    const watched = work.finally(() => (state.over = true));
    watched.catch(() => {});
    while (!state.over && this.#turns < 2 * TURNS_MAX) await this.#turn();
    if (!state.over) throw new Error("start() or stop() did not come to its end");
    await watched;
  }

  #nextFate(): Fate {
    const { fates } = this.#script;
    if (this.#calm) return "arrives";
    const fate = fates[this.#statements++];
    if (fate === undefined) this.#calm = true;
    return fate ?? "arrives";
  }

  #cancelOne(turn: number): void {
    const running = [...this.store.running.keys()];
    const id = running[turn % (running.length || 1)];
    if (id !== undefined) this.store.tasks.get(id)!.stopped = true;
  }

  #worker(network: Network): Worker {
    const { permits, batchMax, loops, timeoutMs } = this.#script;
    const contract = task("t", {
      input: type<string>(),
      timeoutMs,
      retry: { attempts: 3, backoff: fixed(10) },
    });
    const hooks = new Hooks(silentLogger);
    hooks.events.on("succeeded", ({ id }) => this.#reported(id));
    const services = {
      db: network.database,
      hooks,
      declarations: { stream: () => Promise.resolve(1) },
      listener: null,
      logger: silentLogger,
      log: this.watcher.log,
      history: { succeededMs: 1, failedMs: 1, cancelledMs: 1 },
      resultBytesMax: 1_000,
      payloadBytesMax: 1_000,
      idempotencyMs: 1_000,
      layers: { env: {}, file: null },
      apiConnections: 7,
      first: true,
      onStopped: () => {},
    };
    return new Worker(services as never, {
      handlers: [contract.handle((_, ctx) => this.#handle(ctx))],
      maxConcurrentTasks: permits,
      claimBatchSize: batchMax,
      claimLoops: loops,
      dbConnections: 17,
      pollIntervalMs: 50,
      leaseMs: LEASE_MS,
      // What this machine's memory and CPU do is no part of the script.
      pressure: { memoryPercentMax: false, eventLoopDelayMsMax: false },
    });
  }

  /** A success is an event once, and only after the store has recorded it. */
  #reported(id: string): void {
    if (this.store.tasks.get(id)!.state !== "over") this.watcher.violations.add(`${id} was reported but not recorded`);
    if (this.reported.has(id)) this.watcher.violations.add(`${id} was reported twice`);
    this.reported.add(id);
  }

  async #handle(ctx: TaskContext): Promise<void> {
    const { endings, scheduler } = this.#script;
    const ending = endings[this.#runs++] ?? "returns";
    this.watcher.begins(ctx);
    try {
      if (ending === "is deaf") await new Promise(() => {});
      if (ending === "waits for its signal")
        await new Promise((_, reject) => ctx.signal.addEventListener("abort", reject));
      if (ending === "lingers") await new Promise((resolve) => setTimeout(resolve, 200));
      await scheduler.schedule(Promise.resolve(), "a handler works");
      if (ending === "throws") throw new Error("again");
      if (ending === "snoozes") throw snooze(20);
      if (ending === "cancels") throw cancel("no use");
      if (ending === "commits") await ctx.transaction(async () => {});
    } finally {
      this.watcher.ends(ctx);
    }
  }
}

/** The same chances for the same seed, so that a run can be played again. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
