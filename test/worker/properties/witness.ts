import type { TaskContext } from "../../../src/index.js";
import { silentLogger, type Logger } from "../../../src/core/ports.js";
import type { Sent, Witness } from "./network.js";
import type { Store } from "./store.js";

/** What must never be, with the words for it if it is. */
export class Watcher implements Witness {
  readonly violations = new Set<string>();
  /** The peak of tasks in flight: by handlers that were not aborted, and by claims in the store. */
  handlersMax = 0;
  heldMax = 0;
  /** Tasks that a lost reply left with the store, unknown to the worker. */
  unseen = 0;
  unseenMsMax = 0;
  /** Tasks that were still held when stop() had resolved. */
  leftBehind = 0;
  readonly lostSessions = new Set<string>();
  #stopped = false;
  readonly #store: Store;
  readonly #working = new Map<string, TaskContext>();
  readonly #begun = new Map<string, TaskContext>();
  readonly #sessions = new Map<string, string>();
  readonly #suspects = new Set<string>();
  readonly #unknown = new Set<string>();
  readonly #unseenMs = new Map<string, number>();
  readonly #kinds = new Map<string, string>();
  readonly #underWay = new Set<string>();
  readonly #answered = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The worker's log, which reports when a session is lost. */
  get log(): Logger {
    const error: Logger["error"] = (message, fields) => {
      if (message.startsWith("the lease was lost")) this.lostSessions.add(fields?.["worker"] as string);
    };
    return { ...silentLogger, error };
  }

  /** Handlers that run and were not aborted. */
  get inFlight(): number {
    return [...this.#working.values()].filter(({ signal }) => !signal.aborted).length;
  }

  begins(ctx: TaskContext): void {
    const claim = claimOf(ctx);
    if (this.#begun.has(claim)) this.#tell("a task ran twice under one claim");
    if (this.#stopped) this.#tell("a task began after stop() had resolved");
    this.#working.set(claim, ctx);
    this.#begun.set(claim, ctx);
    this.handlersMax = Math.max(this.handlersMax, this.inFlight);
    this.#alone(ctx);
  }

  ends(ctx: TaskContext): void {
    this.#working.delete(claimOf(ctx));
  }

  /** stop() has resolved. A lease that has run out takes back by itself what it covered. */
  stopped(): void {
    this.#stopped = true;
    const { running, leases } = this.#store;
    const over = (worker: string): boolean => leases.has(worker) && !this.#store.alive(worker);
    this.leftBehind = [...running.values()].filter(
      ({ worker }) => !this.lostSessions.has(worker) && !over(worker),
    ).length;
    if (this.inFlight > 0) this.#tell("a task still runs after stop() has resolved");
  }

  sent({ name, worker, outcomes }: Sent): void {
    if (outcomes.length > 0 && this.lostSessions.has(worker))
      this.#tell("an outcome was sent for a session that was lost");
    if (this.#stopped) this.#tell(`${name} was sent after stop() had resolved`);
    for (const { claim, kind } of outcomes) {
      if (this.#answered.has(claim)) this.#tell("an outcome was sent again after it was answered");
      if (this.#underWay.has(claim)) this.#tell("an outcome was sent twice at once");
      if ((this.#kinds.get(claim) ?? kind) !== kind) this.#tell("a claim had two outcomes");
      const reason: unknown = this.#begun.get(claim)?.signal.reason;
      if ((reason as { code?: string } | undefined)?.code === "lease_lost")
        this.#tell("a run that was aborted for a lost lease was recorded");
      this.#kinds.set(claim, kind);
      this.#underWay.add(claim);
    }
  }

  done({ name, token, worker }: Sent): void {
    if (token === null) return;
    this.#sessions.set(token, worker);
    if (name === "claim_suspect") this.#suspects.add(token);
    const held = [...this.#store.running.values()];
    this.unseen += held.filter((h) => h.token === token && this.#unknown.has(token)).length;
    const known = held.filter((h) => !this.#unknown.has(h.token) && !this.lostSessions.has(h.worker));
    this.heldMax = Math.max(this.heldMax, known.length);
  }

  answered(s: Sent): void {
    for (const { claim } of s.outcomes) this.#answered.add(claim);
    this.#over(s);
  }

  failed(s: Sent, lost: boolean): void {
    this.#over(s);
    if (!lost || s.token === null) return;
    this.#unknown.add(s.token);
    this.unseen += [...this.#store.running.values()].filter((h) => h.token === s.token).length;
  }

  /** After every turn. calmMs: how much time has passed in it with nothing on its way and nothing lost. */
  look(calmMs: number): void {
    this.#countUnseen(calmMs);
    for (const claim of this.#store.handedBack.splice(0))
      if (this.#begun.get(claim)?.signal.aborted === false) this.#tell("a task in hand was handed back as unknown");
    // A running task has a lease, unless the test took it away.
    for (const ctx of this.#working.values()) {
      const worker = this.#sessions.get(tokenOf(ctx))!;
      const lease = this.#store.leases.get(worker);
      if (ctx.signal.aborted || lease === undefined || lease.taken) continue;
      if (!this.#store.alive(worker)) this.#tell("a task ran on after its lease had run out");
    }
  }

  /** How long tasks of lost replies stay claimed by a live session without running. */
  #countUnseen(calmMs: number): void {
    // Tasks of one reply lie there together: its time is counted once.
    const claims = new Map([...this.#store.running.values()].map((h) => [h.token, h.worker]));
    for (const [token, worker] of claims) {
      if (!this.#unknown.has(token) || this.lostSessions.has(worker)) continue;
      const ms = (this.#unseenMs.get(token) ?? 0) + calmMs;
      this.#unseenMs.set(token, ms);
      this.unseenMsMax = Math.max(this.unseenMsMax, ms);
    }
  }

  #over({ outcomes }: Sent): void {
    for (const { claim } of outcomes) this.#underWay.delete(claim);
  }

  #alone(ctx: TaskContext): void {
    if (!this.#mayRun(ctx)) return;
    const others = [...this.#working.values()].filter((c) => c !== ctx && this.#mayRun(c));
    if (others.length > 0 && [ctx, ...others].some((c) => this.#suspects.has(tokenOf(c))))
      this.#tell("a suspect was not alone");
    if (others.some((c) => c.id === ctx.id)) this.#tell("a task ran twice at once");
  }

  /** Not aborted, and not about to be: its lease was not taken without the worker's knowledge. */
  #mayRun(ctx: TaskContext): boolean {
    return !ctx.signal.aborted && this.#store.alive(this.#sessions.get(tokenOf(ctx))!);
  }

  #tell(violation: string): void {
    this.violations.add(violation);
  }
}

/** As the store names it. */
function claimOf(ctx: TaskContext): string {
  return `${ctx.id},${tokenOf(ctx)}`;
}

/** What fences it, which all tasks of one claim share. */
function tokenOf(ctx: TaskContext): string {
  return ctx.claim.slice(ctx.id.length + 1);
}
