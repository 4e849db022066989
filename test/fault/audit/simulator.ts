// A tiny queue that does everything right, in a time of its own, and writes its log.
import type { Claims, Line, Terms } from "../../../fault/audit/line.js";
import { randomOf, type Random } from "../../../fault/random.js";
import { line } from "./story.js";

export const simTerms: Terms = {
  leaseMs: 100,
  recoverMs: 200,
  limits: { pool: 3, "tenant/*": 1 },
};

interface Job {
  readonly task: string;
  readonly claims: Claims;
  state: "waiting" | "running" | "over";
  attempt: number;
  from: number;
  failed: boolean;
}

interface Run {
  readonly job: Job;
  readonly claim: string;
  readonly worker: string;
  readonly end: number;
  readonly how: "completed" | "thrown" | "snoozed";
  /** When the database gives it to another worker. Its handler may continue. */
  lostAt: number | null;
}

const KEYS = ["x", "y"];
const TURNS_MAX = 20_000;
const SNOOZE_MS = 7;

export interface Simulated {
  readonly lines: Line[];
  readonly finished: boolean;
}

/** `calm`: nothing happens but work, its errors and its snoozes. */
export function simulate(seed: number, tasks: number, calm: boolean): Simulated {
  const sim = new Simulator(randomOf(seed), calm);
  for (let n = 0; n < tasks; n++) sim.enqueue(n);
  let turns = 0;
  while (!sim.over && turns++ < TURNS_MAX) sim.turn();
  return { lines: sim.lines, finished: sim.over };
}

class Simulator {
  readonly lines: Line[] = [];
  readonly #random: Random;
  readonly #calm: boolean;
  readonly #jobs: Job[] = [];
  readonly #runs = new Set<Run>();
  readonly #places = new Map<string, number>();
  readonly #workers = ["w1", "w2", "w3"];
  readonly #frozen = new Map<string, number>();
  readonly #limits: Record<string, number> = { ...simTerms.limits };
  #paused: string | null = null;
  #named = 3;
  #now = 0;

  constructor(random: Random, calm: boolean) {
    this.#random = random;
    this.#calm = calm;
  }

  get over(): boolean {
    const settled = this.#jobs.every(({ state }) => state === "over");
    return settled && this.#runs.size === 0 && this.#frozen.size === 0;
  }

  enqueue(n: number): void {
    const random = this.#random;
    const orderKey = random.next() < 0.4 ? `k${random.between(1, 2)}` : null;
    const place = orderKey === null ? null : (this.#places.get(orderKey) ?? 0) + 1;
    if (orderKey !== null) this.#places.set(orderKey, place!);
    const limits = [["pool"], [`tenant/${random.pick(KEYS)}`], ["pool", "tenant/x"], []];
    const runAt = random.next() < 0.2 ? random.between(1, 200) : null;
    const tag = `p/${n}`;
    const type = random.pick(["mail", "bill"]);
    const claims = { tag, type, orderKey, place, limits: random.pick(limits), runAt, attempts: 2 };
    const task = `#${n}`;
    const job: Job = {
      task,
      claims,
      state: "waiting",
      attempt: 1,
      from: runAt ?? 0,
      failed: false,
    };
    this.#jobs.push(job);
    this.#say("producer", { kind: "offered", ...claims });
    this.#say("producer", { kind: "acknowledged", tag, task });
  }

  turn(): void {
    this.#now += this.#random.between(1, 4);
    this.#thaw();
    for (const run of this.#runs) this.#advance(run);
    if (!this.#calm) this.#mishap();
    for (const job of this.#jobs) if (this.#mayStart(job)) this.#start(job);
  }

  #say(process: string, body: Parameters<typeof line>[2]): void {
    this.#now += 0.01;
    this.lines.push(line(this.#now, process, body));
  }

  #mayStart({ state, from, claims }: Job): boolean {
    if (state !== "waiting" || from > this.#now || claims.type === this.#paused) return false;
    const before = (job: Job): boolean => job.claims.orderKey === claims.orderKey && job.claims.place! < claims.place!;
    if (claims.orderKey !== null) {
      if (this.#jobs.some((job) => job.state !== "over" && before(job))) return false;
      if (this.#used((other) => other.orderKey === claims.orderKey) > 0) return false;
    }
    return claims.limits.every((slot) => {
      const rule = slot.includes("/") ? "tenant/*" : slot;
      return this.#used((other) => other.limits.includes(slot)) < this.#limits[rule]!;
    });
  }

  /** How many hold a slot as the database sees it. */
  #used(fits: (claims: Claims) => boolean): number {
    return [...this.#runs].filter((run) => run.job.state === "running" && fits(run.job.claims)).length;
  }

  #start(job: Job): void {
    const awake = this.#workers.filter((worker) => !this.#frozen.has(worker));
    if (awake.length === 0) return;
    const [random, worker] = [this.#random, this.#random.pick(awake)];
    const how = random.next() < 0.7 ? "completed" : random.pick(["thrown", "snoozed"] as const);
    const claim = `c${this.lines.length}`;
    job.state = "running";
    this.#say(worker, {
      kind: "start",
      task: job.task,
      claim,
      attempt: job.attempt,
      ...job.claims,
    });
    const end = this.#now + random.between(1, 15);
    this.#runs.add({ job, claim, worker, end, how, lostAt: null });
  }

  #advance(run: Run): void {
    if (run.lostAt !== null && run.lostAt <= this.#now) this.#giveBack(run);
    else if (run.end <= this.#now && this.#alive(run.worker)) this.#end(run);
  }

  #alive(worker: string): boolean {
    return this.#workers.includes(worker) && !this.#frozen.has(worker);
  }

  #giveBack(run: Run): void {
    this.#runs.delete(run);
    run.job.state = "waiting";
    run.job.from = this.#now;
  }

  #end(run: Run): void {
    const { job, claim, worker, how } = run;
    const ended = how === "snoozed" ? { how, reason: null, snoozeMs: SNOOZE_MS } : ({ how, reason: null } as const);
    this.#say(worker, { kind: "end", task: job.task, claim, ...ended });
    // Killed between the handler's last word and the record of it.
    if (!this.#calm && this.#random.next() < 0.03) return this.#kill(worker);
    this.#runs.delete(run);
    if (how === "completed") return this.#settle(job, "succeeded", claim);
    if (how === "thrown" && job.attempt === job.claims.attempts) return this.#settle(job, "failed");
    if (how === "thrown") job.attempt++;
    job.state = "waiting";
    job.from = this.#now + (how === "snoozed" ? SNOOZE_MS : 3);
  }

  #settle(job: Job, state: "succeeded" | "failed" | "cancelled", claim: string | null = null): void {
    const { task, attempt } = job;
    this.#say("queue", { kind: "accepted", task, state, attempt, claim });
    job.state = "over";
    job.failed = state === "failed";
  }

  #mishap(): void {
    const chance = this.#random.next();
    if (chance < 0.02) this.#kill(this.#random.pick(this.#workers));
    else if (chance < 0.03) this.#freeze(this.#random.pick(this.#workers));
    else if (chance < 0.05) this.#change(this.#random.pick(["pool", "tenant/*"]));
    else if (chance < 0.07) this.#pauseOrResume();
    else if (chance < 0.09) this.#cancel();
    else if (chance < 0.11) this.#retry();
  }

  #kill(worker: string): void {
    if (this.#frozen.has(worker)) return;
    this.#say(worker, { kind: "dead" });
    this.#workers[this.#workers.indexOf(worker)] = `w${++this.#named}`;
    for (const run of this.#runs) if (run.worker === worker) run.lostAt = this.#now + 90;
  }

  #freeze(worker: string): void {
    if (this.#frozen.has(worker)) return;
    this.#say(worker, { kind: "disturbed", what: "freeze" });
    this.#frozen.set(worker, this.#now + this.#random.between(150, 300));
    for (const run of this.#runs) if (run.worker === worker) run.lostAt = this.#now + 80;
    this.#zombies.set(
      worker,
      [...this.#runs].filter((run) => run.worker === worker),
    );
  }

  readonly #zombies = new Map<string, Run[]>();

  /** Those that were running find that their lease is lost, or do not even notice. */
  #thaw(): void {
    for (const [worker, until] of this.#frozen) {
      if (until > this.#now) continue;
      this.#frozen.delete(worker);
      for (const { job, claim } of this.#zombies.get(worker) ?? []) {
        const lost = this.#random.next() < 0.5;
        const ending = lost
          ? ({ how: "left", reason: "lease_lost" } as const)
          : ({ how: "completed", reason: null } as const);
        this.#say(worker, { kind: "end", task: job.task, claim, ...ending });
      }
      this.#say(worker, { kind: "restored", what: "freeze" });
    }
  }

  #change(limit: string): void {
    const slots = this.#random.between(1, 4);
    this.#say("operator", { kind: "changing", limit, slots });
    this.#limits[limit] = slots;
    this.#say("operator", { kind: "changed", limit, slots });
  }

  #pauseOrResume(): void {
    const types = [this.#paused ?? this.#random.pick(["mail", "bill"])];
    const [before, after] =
      this.#paused === null ? (["pausing", "paused"] as const) : (["resuming", "resumed"] as const);
    this.#say("operator", { kind: before, types });
    this.#paused = this.#paused === null ? types[0]! : null;
    this.#say("operator", { kind: after, types });
  }

  #cancel(): void {
    const job = this.#random.pick(this.#jobs);
    this.#say("operator", { kind: "cancelling", task: job.task });
    if (job.state === "waiting") this.#settle(job, "cancelled");
  }

  #retry(): void {
    const job = this.#random.pick(this.#jobs);
    this.#say("operator", { kind: "retrying", task: job.task });
    if (!job.failed) return this.#say("operator", { kind: "notRetried", task: job.task });
    Object.assign(job, { state: "waiting", attempt: 1, from: this.#now, failed: false });
  }
}
