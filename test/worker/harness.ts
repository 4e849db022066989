import type { Scheduler } from "fast-check";
import { SluiceError, task, type, type TaskContext } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import type { Connection } from "../../src/postgres/connection.js";
import type { AnyStatement } from "../../src/postgres/statement.js";
import { Claimer } from "../../src/worker/claim.js";
import { noMeter, type Meter } from "../../src/worker/metrics/meter.js";
import { Executions } from "../../src/worker/executions.js";
import { Outbox } from "../../src/worker/outbox.js";
import { Payloads } from "../../src/worker/payloads.js";
import { Permits } from "../../src/worker/permits.js";
import type { AnyHandler } from "../../src/worker/execution.js";
import { Session } from "../../src/worker/session.js";

/** What happens to a statement on its way. */
export type Fate = "arrives" | "request lost" | "reply lost" | "lease expires";

const STREAM = 1;

interface Held {
  readonly claim: string;
  readonly worker: string;
}

/** The database in memory: it claims, settles, fences, and forgets dead workers. */
export class FakeDatabase {
  readonly ready: string[];
  readonly running = new Map<string, Held>();
  readonly accepted = new Map<string, number>();
  readonly dead = new Set<string>();

  constructor(tasks: number) {
    this.ready = Array.from({ length: tasks }, (_, i) => String(i + 1));
  }

  /** Takes the outcomes and hands out as many tasks as are asked for. */
  step(values: readonly unknown[]): unknown[][] {
    const [worker, token, , claim, ids, tokens] = values as [
      string,
      string,
      string,
      number,
      string | null,
      string | null,
    ];
    this.#requireLease(worker);
    const refused = this.#settle(listed(ids), listed(tokens), (id) => this.#accept(id));
    const claimed = this.ready.splice(0, claim);
    for (const id of claimed) this.running.set(id, { claim: token, worker });
    const rows: unknown[][] = claimed.map((id) => [id, STREAM, 1, "null"]);
    return refused === 0 ? rows : [[...Array<null>(8).fill(null), JSON.stringify({ refused })], ...rows];
  }

  /** A failure here means: again, at once. */
  settle(values: readonly unknown[]): object[] {
    const [worker, ids, tokens] = values as [string, string, string];
    this.#requireLease(worker);
    const before = listed(ids).length;
    const refused = this.#settle(listed(ids), listed(tokens), (id) => void this.ready.push(id));
    const settled = Array.from({ length: before - refused }, () => "1").join(",");
    return [{ settled: settled === "" ? null : `{${settled}}` }];
  }

  /** What a worker holds under other claims goes back, as with release_unknown. */
  release(worker: string, known: ReadonlySet<string>): void {
    for (const [id, held] of this.running) {
      if (held.worker !== worker || known.has(held.claim)) continue;
      this.running.delete(id);
      this.ready.push(id);
    }
  }

  expire(worker: string): void {
    this.dead.add(worker);
    this.release(worker, new Set());
  }

  #requireLease(worker: string): void {
    if (this.dead.has(worker)) throw new SluiceError("lease_lost", "expired");
  }

  #settle(ids: string[], tokens: string[], then: (id: string) => void): number {
    return ids.filter((id, i) => {
      if (this.running.get(id)?.claim !== tokens[i]) return true;
      this.running.delete(id);
      then(id);
      return false;
    }).length;
  }

  #accept(id: string): void {
    this.accepted.set(id, (this.accepted.get(id) ?? 0) + 1);
  }
}

function listed(array: string | null): string[] {
  return array === null || array === "{}" ? [] : array.slice(1, -1).split(",");
}

/** A connection over which the scheduler decides when something arrives, and the fates whether. */
class FakeLine {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  rows(_: AnyStatement, values: unknown[]): Promise<unknown[][]> {
    return this.#send(values, (db) => db.step(values));
  }

  run({ name }: AnyStatement, values: unknown[]): Promise<object[]> {
    // The log asks for the states of failed tasks, and makes do without.
    if (name === "recorded") return Promise.resolve([]);
    return this.#send(values, (db) => db.settle(values));
  }

  async #send<T>(values: unknown[], act: (db: FakeDatabase) => T): Promise<T> {
    const { db, scheduler } = this.#world;
    const fate = this.#world.nextFate();
    await scheduler.schedule(Promise.resolve(), "request");
    if (fate === "request lost") throw unavailable();
    if (fate === "lease expires") db.expire(values[0] as string);
    const reply = act(db);
    this.#world.look();
    await scheduler.schedule(Promise.resolve(), "reply");
    if (fate === "reply lost") throw unavailable();
    return reply;
  }
}

const unavailable = (): SluiceError =>
  new SluiceError("database_unavailable", "gone", { cause: new Error("connection terminated") });

export interface WorldOptions {
  readonly scheduler: Scheduler;
  readonly tasks: number;
  readonly permits: number;
  readonly batchMax: number;
  readonly lines: number;
  readonly fates: readonly Fate[];
  /** Which runs throw, by turns. */
  readonly throws: readonly boolean[];
  readonly meter?: Meter;
}

/** Permits, outbox, claimer and executions as a worker puts them together, on a database that is made up. */
export class World {
  readonly db: FakeDatabase;
  readonly scheduler: Scheduler;
  readonly permits: Permits;
  readonly outbox = new Outbox();
  readonly executions: Executions;
  readonly claimer: Claimer;
  /** The peak of tasks in flight, counted by handlers and by the database. */
  handlersMax = 0;
  heldMax = 0;
  readonly #options: WorldOptions;
  readonly #sessions: Session[] = [];
  #current: Session | null = null;
  #statements = 0;
  #runs = 0;
  readonly #working = new Set<TaskContext>();

  constructor(options: WorldOptions) {
    this.#options = options;
    this.scheduler = options.scheduler;
    this.db = new FakeDatabase(options.tasks);
    this.permits = new Permits(options.permits);
    const handler = task("t", { input: type<unknown>() }).handle((_, ctx) => this.#handle(ctx));
    this.executions = new Executions({
      handlers: new Map([[STREAM, handler as unknown as AnyHandler]]),
      outbox: this.outbox,
      services: { log: silentLogger, now: () => 0 } as never,
      clock: { now: () => 0 },
      log: silentLogger,
      resultBytesMax: 1_000,
      meter: options.meter ?? noMeter,
      onOutcome: () => this.claimer.schedule(),
      onRecorded: () => {},
    });
    this.claimer = new Claimer({
      connections: Array.from({ length: options.lines }, () => new FakeLine(this) as unknown as Connection),
      streams: [STREAM],
      permits: this.permits,
      payloads: new Payloads(1_000),
      outbox: this.outbox,
      executions: this.executions,
      claimBatchSize: options.batchMax,
      pollIntervalMs: 100,
      keepHistory: true,
      bell: false,
      clock: { now: () => 0 },
      log: silentLogger,
      meter: options.meter ?? noMeter,
      current: () => this.#current,
      holds: (session) => !session.lost,
      onDoubt: (session) => this.#doubt(session),
      onLost: (session) => this.#lose(session),
      onUnplaced: () => {},
    });
    this.#begin();
    this.claimer.start();
  }

  nextFate(): Fate {
    return this.#options.fates[this.#statements++] ?? "arrives";
  }

  /** Every heartbeat hands back what a doubtful session does not know of. */
  beat(): void {
    for (const session of this.#sessions.filter((s) => s.doubtful && !s.lost)) {
      this.db.release(session.id, new Set([...session.tokens(), ...this.outbox.tokens(session)]));
    }
  }

  /** Claims that the worker has received. Claims of lost replies are not among them. */
  look(): void {
    const known = new Set(this.#sessions.flatMap((s) => (s.lost ? [] : [...s.tokens(), ...this.outbox.tokens(s)])));
    const held = [...this.db.running.values()].filter(({ claim }) => known.has(claim)).length;
    this.heldMax = Math.max(this.heldMax, held);
  }

  get over(): boolean {
    return this.db.accepted.size === this.#options.tasks && this.permits.inUse === 0;
  }

  /** Handlers of a lost session were aborted, and no longer count. */
  async #handle(ctx: TaskContext): Promise<void> {
    const fails = this.#options.throws[this.#runs++] ?? false;
    this.#working.add(ctx);
    const working = [...this.#working].filter(({ signal }) => !signal.aborted).length;
    this.handlersMax = Math.max(this.handlersMax, working);
    await this.scheduler.schedule(Promise.resolve(), "work");
    this.#working.delete(ctx);
    if (fails) throw new Error("again");
  }

  #begin(): void {
    this.#current = new Session(String(this.#sessions.length + 1), Number.POSITIVE_INFINITY);
    this.#sessions.push(this.#current);
    this.claimer.sessionBegan();
  }

  #doubt(session: Session): void {
    if (session.lost || this.#current !== session) return;
    session.doubtful = true;
    this.#begin();
  }

  #lose(session: Session): void {
    if (session.lost) return;
    session.lost = true;
    const dropped = this.executions.drop(session, new SluiceError("lease_lost", "lost"));
    this.permits.give(dropped + this.outbox.forget(session));
    if (this.#current === session) this.#begin();
  }
}
