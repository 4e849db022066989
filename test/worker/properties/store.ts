/**
 * The store in memory, for properties of the worker alone: what a worker can see of it behaves like the
 * real one. A claim belongs to (id, token) and to a session with a lease; without either nothing is
 * recorded; tasks of a dead session come back.
 */
interface Task {
  readonly id: string;
  state: "ready" | "scheduled" | "suspect" | "running" | "over";
  dueMs: number;
  attempt: number;
  crashes: number;
  /** The workers that were counted. */
  blamed: string[];
  stopped: boolean;
  reservedBy: string | null;
}

interface Held {
  readonly token: string;
  readonly worker: string;
}

interface Lease {
  readonly leaseMs: number;
  untilMs: number;
  /** The test ended the lease and not the clock, so the worker could not foresee it. */
  taken: boolean;
}

/** One row of an answer, by the names of its columns. */
export type Row = Record<string, unknown>;

const ATTEMPTS_MAX = 3;
const CRASHES_MAX = 3;
const LOOK_MS = 50;
const STREAM = 1;

/** A refusal of the database: its message, with our code in the field that the driver reads. */
function refusal(code: string): Error {
  return Object.assign(new Error(`refused: ${code}`), { code: "SLUIC", constraint: code });
}

export class Store {
  readonly tasks = new Map<string, Task>();
  readonly running = new Map<string, Held>();
  readonly leases = new Map<string, Lease>();
  /** Claims that were released because the worker did not know them. */
  readonly handedBack: string[] = [];
  /** How often a task came back because its worker was dead. */
  crashes = 0;
  #workers = 0;

  constructor(tasks: number, suspects: number) {
    for (let i = 0; i < tasks + suspects; i++) {
      const suspect = i >= tasks;
      const state = suspect ? "suspect" : "ready";
      const crashes = suspect ? CRASHES_MAX : 0;
      const blank = {
        dueMs: 0,
        attempt: 0,
        blamed: [] as string[],
        stopped: false,
        reservedBy: null,
      };
      this.tasks.set(String(i + 1), { id: String(i + 1), state, crashes, ...blank });
    }
  }

  get unfinished(): number {
    return [...this.tasks.values()].filter((t) => t.state !== "over").length;
  }

  alive(worker: string): boolean {
    return (this.leases.get(worker)?.untilMs ?? 0) > performance.now();
  }

  /** Ends a lease before its time. */
  expire(worker: string): void {
    const lease = this.leases.get(worker);
    if (lease === undefined) return;
    lease.untilMs = performance.now();
    lease.taken = true;
  }

  register(leaseMs: number): Row[] {
    const id = String(++this.#workers);
    this.leases.set(id, { leaseMs, untilMs: performance.now() + leaseMs, taken: false });
    return [{ id, on_call: true }];
  }

  beat(worker: string, draining: boolean): Row[] {
    const lease = this.leases.get(worker);
    if (lease === undefined || !this.alive(worker)) return [{ alive: false }];
    lease.untilMs = performance.now() + lease.leaseMs;
    const stops = this.heldBy(worker).filter((id) => this.tasks.get(id)!.stopped);
    const stop_reasons = stops.map(() => "asked");
    return [{ alive: true, stops, stop_reasons, suspect: draining ? null : this.#reserve(worker) }];
  }

  /** The successes are recorded, and at most n tasks are claimed under the token. */
  step(worker: string, token: string, n: number, claims: readonly [string, string][]): unknown[][] {
    this.#requireLease(worker);
    const ours = claims.filter(([id, claim]) => this.#take(id, claim));
    for (const [id] of ours) this.#end(id);
    const ready = [...this.tasks.values()].filter((t) => t.state === "ready").slice(0, n);
    const rows: unknown[][] = ready.map((t) => [...this.#claim(t, worker, token), 0, null]);
    const refused = claims.length - ours.length;
    return refused === 0 ? rows : [[...Array<null>(8).fill(null), JSON.stringify({ refused })], ...rows];
  }

  settle(worker: string, outcomes: readonly (readonly [string, string, string, number])[]): Row[] {
    this.#requireLease(worker);
    const ours = outcomes.filter(([id, claim]) => this.#take(id, claim));
    for (const [id, , kind, delayMs] of ours) this.#fate(this.tasks.get(id)!, kind, delayMs);
    const settled = ours.map(([id]) => id).join(",");
    return [{ settled: settled === "" ? null : `{${settled}}` }];
  }

  /** A user's transaction: the returned function is applied at its commit. Transactions do not overlap here. */
  settleInTransaction(worker: string, id: string, token: string): () => void {
    this.#requireLease(worker);
    if (this.running.get(id)?.token !== token) throw refusal("lease_lost");
    return () => {
      if (this.#take(id, token)) this.#end(id);
    };
  }

  releaseUnknown(worker: string, known: readonly string[]): number {
    const unknown = this.heldBy(worker).filter((id) => !known.includes(this.running.get(id)!.token));
    if (unknown.length > 0) this.#requireLease(worker);
    for (const id of unknown) {
      this.handedBack.push(`${id},${this.running.get(id)!.token}`);
      this.running.delete(id);
      this.#fate(this.tasks.get(id)!, "b", 0);
    }
    return unknown.length;
  }

  retire(worker: string): Row[] {
    const before = this.handedBack.length;
    const released = this.releaseUnknown(worker, []);
    // A session that leaves knows its claims.
    this.handedBack.length = before;
    this.releaseSuspect(worker);
    this.leases.delete(worker);
    return [{ released }];
  }

  /** Returns the sessions that must report again, because their lease lasts. */
  survived(workers: readonly string[]): string[] {
    const gone = workers.filter((worker) => !this.alive(worker));
    for (const worker of gone) this.leases.delete(worker);
    for (const [id, held] of this.running) {
      if (!gone.includes(held.worker)) continue;
      this.running.delete(id);
      this.#fate(this.tasks.get(id)!, "b", 0);
    }
    for (const task of this.tasks.values()) {
      const blamed = task.blamed.filter((worker) => !gone.includes(worker));
      task.crashes -= task.blamed.length - blamed.length;
      task.blamed = blamed;
    }
    return workers.filter((worker) => !gone.includes(worker));
  }

  claimSuspect(worker: string, token: string, id: string): Row[] {
    this.#requireLease(worker);
    if (this.heldBy(worker).length > 0) throw refusal("not_claimed");
    const task = this.tasks.get(id);
    if (task?.state !== "suspect" || task.reservedBy !== worker) return [];
    const [, stream, attempt, input] = this.#claim(task, worker, token);
    return [{ id, stream, attempt, input, trace: null, passed: "-1", nonce: "1" }];
  }

  releaseSuspect(worker: string): void {
    for (const t of this.tasks.values()) if (t.reservedBy === worker) t.reservedBy = null;
  }

  /** What there is to do for the keeper, which is alone here and leads. */
  look(): Row[] {
    const due = [...this.tasks.values()].some((t) => t.state === "scheduled" && t.dueMs <= performance.now());
    const dead = [...this.leases.keys()].some((worker) => !this.alive(worker));
    const found = { leads: true, live: true, dead, due, ticks: true, runs: true };
    return [{ ...found, maps: true, ended: true, next_ms: LOOK_MS, due_ms: null }];
  }

  /** What the keeper does: those whose time has come, and those whose worker is dead. */
  due(): Row[] {
    const due = [...this.tasks.values()].filter((t) => t.state === "scheduled" && t.dueMs <= performance.now());
    for (const t of due) t.state = "ready";
    return [{ moved: due.length, next_ms: null }];
  }

  reap(): Row[] {
    const dead = [...this.leases.keys()].filter((worker) => !this.alive(worker));
    for (const worker of dead) this.leases.delete(worker);
    const gone = [...this.running].filter(([, held]) => !this.leases.has(held.worker));
    for (const [id, { worker }] of gone) this.#crash(this.tasks.get(id)!, worker);
    return [{ workers: dead.length, tasks: gone.length, poisoned: 0 }];
  }

  heldBy(worker: string): string[] {
    return [...this.running].filter(([, held]) => held.worker === worker).map(([id]) => id);
  }

  #requireLease(worker: string): void {
    if (!this.alive(worker)) throw refusal("lease_lost");
  }

  #take(id: string, token: string): boolean {
    return this.running.get(id)?.token === token && this.running.delete(id);
  }

  #claim(task: Task, worker: string, token: string): [string, number, number, unknown] {
    task.state = "running";
    task.reservedBy = null;
    task.attempt++;
    this.running.set(task.id, { token, worker });
    return [task.id, STREAM, task.attempt, task.id];
  }

  #reserve(worker: string): string | null {
    const suspects = [...this.tasks.values()].filter((t) => t.state === "suspect");
    const free = suspects.find((t) => t.reservedBy === null || !this.alive(t.reservedBy));
    const task = suspects.find((t) => t.reservedBy === worker) ?? free;
    if (task !== undefined) task.reservedBy = worker;
    return task?.id ?? null;
  }

  #fate(task: Task, kind: string, delayMs: number): void {
    const again = ["r", "z", "b"].includes(kind) && !task.stopped;
    if (!again || (kind === "r" && task.attempt >= ATTEMPTS_MAX)) return this.#end(task.id);
    if (kind !== "r") task.attempt--;
    const suspect = task.crashes >= CRASHES_MAX;
    if (kind === "b") task.state = suspect ? "suspect" : "ready";
    else {
      task.state = "scheduled";
      task.dueMs = performance.now() + delayMs;
      if (suspect) task.crashes = CRASHES_MAX - 1;
    }
  }

  #crash(task: Task, worker: string): void {
    task.blamed = [...task.blamed, worker];
    this.running.delete(task.id);
    this.crashes++;
    task.attempt--;
    task.crashes++;
    if (task.stopped || task.crashes > CRASHES_MAX) this.#end(task.id);
    else task.state = task.crashes === CRASHES_MAX ? "suspect" : "ready";
  }

  #end(id: string): void {
    this.tasks.get(id)!.state = "over";
  }
}
