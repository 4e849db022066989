/**
 * What the store must do, in as few words as we could find: tasks, lanes with a count each, and notes
 * to whoever claims next. No locks, no tables, no batches: the test compares it with the real thing
 * after every command.
 */
export interface Place {
  readonly stream: "bounded" | "free";
  readonly priority: number;
  readonly order: string | null;
  readonly blocks: boolean;
  readonly tenant: string | null;
  /** Passes the total `mail`, taken at the claim. Only in the free stream. */
  readonly mail: boolean;
  readonly attempts: number;
  readonly later: boolean;
}

export type State = "scheduled" | "waiting" | "ready" | "running" | "suspect" | "over";

export interface Task extends Place {
  readonly id: number;
  readonly lanes: readonly string[];
  state: State;
  /** How many of its lanes it holds a slot of, from the first. */
  held: number;
  attempt: number;
  crashes: number;
  stopped: boolean;
  blocking: boolean;
  failed: boolean;
  due: boolean;
}

export interface Numbers {
  /** Per key. */
  tenant: number;
  /** Totals, taken at the claim. */
  mail: number;
  bounded: number;
}

const CRASHES_MAX = 3;

export class Model {
  readonly tasks: Task[] = [];
  readonly numbers: Numbers = { tenant: 2, mail: 2, bounded: 3 };
  paused = false;
  readonly #used = new Map<string, number>();
  readonly #joined = new Set<string>();
  readonly #freed: string[] = [];

  running(): Task[] {
    return this.tasks.filter((t) => t.state === "running");
  }

  enqueue(place: Place): void {
    const lanes: string[] = [];
    if (place.order !== null) lanes.push(`1 ${place.order}`);
    if (place.tenant !== null) lanes.push(`2 ${place.tenant}`);
    const task: Task = {
      ...place,
      id: this.tasks.length + 1,
      lanes,
      state: "scheduled",
      held: 0,
      attempt: 0,
      crashes: 0,
      stopped: false,
      blocking: false,
      failed: false,
      due: false,
    };
    this.tasks.push(task);
    if (!place.later) this.#stand(task);
  }

  /** The ids it claims. */
  step(done: readonly Task[], n: number): number[] {
    const freed = done.flatMap((t) => this.#end(t, false));
    if (n > 0) this.#admitAll(freed);
    else this.#admit(freed, []);
    return n > 0 && !this.paused ? this.#claim(n) : [];
  }

  settle(t: Task, kind: "retry" | "fail" | "cancel" | "snooze" | "release", later: boolean): void {
    this.#admit(this.#fate(t, kind, later), []);
  }

  cancel(t: Task): void {
    if (t.state === "running") t.stopped = true;
    else if (t.state !== "over") this.#freed.push(...this.#leave(t, 0, "over"));
  }

  retry(t: Task): void {
    if (t.state !== "over" || !t.failed) return;
    t.attempt = t.crashes = 0;
    t.failed = t.blocking = false;
    this.#stand(t);
  }

  unblock(t: Task): void {
    if (!t.blocking) return;
    t.blocking = false;
    this.#freed.push(...this.#leave(t, 0, "over"));
  }

  /** Those whose time has come; with an hour gone, that is all of them. */
  due(hour: boolean): void {
    for (const t of this.tasks) if (t.state === "scheduled" && (t.due || hour)) this.#stand(t);
  }

  /** The worker dies with everything in hand. */
  crash(): void {
    for (const t of this.running()) {
      t.crashes++;
      t.attempt--;
      if (t.stopped) this.#freed.push(...this.#end(t, true));
      else t.state = t.crashes === CRASHES_MAX ? "suspect" : "ready";
    }
    this.keep();
  }

  set(name: keyof Numbers, number: number): void {
    const raised = name === "tenant" && number > this.numbers.tenant;
    this.numbers[name] = number;
    if (raised) for (const lane of this.#used.keys()) this.#joined.add(lane);
    this.keep();
  }

  /** What the keeper does for lanes: above a lowered number nobody holds a slot who does not run. */
  keep(): void {
    for (const [lane, used] of this.#used) {
      const excess = used - this.#cap(lane);
      if (excess <= 0) continue;
      const idle = this.tasks.filter((t) => t.state === "ready" && t.lanes.indexOf(lane) >= 0);
      for (const t of idle.toSorted((a, b) => compare(b, a)).slice(0, excess)) {
        this.#freed.push(...this.#leave(t, t.lanes.indexOf(lane), "waiting"));
      }
    }
    this.#admitAll([]);
  }

  /** Slots that come free. */
  #fate(t: Task, kind: string, later: boolean): string[] {
    if (t.stopped && ["retry", "snooze", "release"].includes(kind)) return this.#end(t, true);
    if (kind === "release") {
      t.state = "ready";
      t.attempt--;
      return [];
    }
    if (kind === "cancel") return this.#end(t, true);
    if (kind === "fail" || (kind === "retry" && t.attempt >= t.attempts)) return this.#fail(t);
    if (kind === "snooze") t.attempt--;
    t.due = !later;
    return this.#leave(t, t.order === null ? 0 : 1, "scheduled");
  }

  #fail(t: Task): string[] {
    t.blocking = t.blocks && t.order !== null;
    const freed = this.#leave(t, t.blocking ? 1 : 0, "over");
    t.failed = true;
    t.stopped = false;
    t.crashes = 0;
    return freed;
  }

  #end(t: Task, failed: boolean): string[] {
    const freed = this.#leave(t, 0, "over");
    t.failed = failed;
    t.stopped = false;
    t.crashes = 0;
    return freed;
  }

  /** Goes where it holds its first `keep` lanes only. */
  #leave(t: Task, keep: number, state: State): string[] {
    const freed = t.lanes.slice(keep, t.held);
    if (state === "over") t.failed = true;
    t.held = keep;
    t.state = state;
    return freed;
  }

  #stand(t: Task): void {
    const lane = t.lanes[t.held];
    t.state = lane === undefined ? "ready" : "waiting";
    if (lane !== undefined) this.#joined.add(lane);
  }

  #cap(lane: string): number {
    return lane.startsWith("1") ? 1 : this.numbers.tenant;
  }

  #admitAll(freed: readonly string[]): void {
    const joined = [...this.#joined];
    this.#joined.clear();
    this.#admit([...freed, ...this.#freed.splice(0)], joined);
  }

  #admit(freed: readonly string[], joined: readonly string[]): void {
    for (const lane of freed) this.#used.set(lane, this.#used.get(lane)! - 1);
    const touched = new Set([...freed, ...joined]);
    for (const level of ["1", "2"])
      for (const lane of [...touched].filter((l) => l.startsWith(level)))
        for (const t of this.#handOver(lane)) touched.add(t.lanes[t.held] ?? lane);
  }

  /** Gives the free slots of a lane to who stands first. */
  #handOver(lane: string): Task[] {
    const used = this.#used.get(lane) ?? 0;
    const room = Math.max(0, this.#cap(lane) - used);
    const line = this.tasks.filter((t) => t.state === "waiting" && t.lanes[t.held] === lane);
    const byAge = lane.startsWith("1");
    const next = line.toSorted((a, b) => (byAge ? a.id - b.id : compare(a, b))).slice(0, room);
    for (const t of next) {
      t.held++;
      if (t.held === t.lanes.length) t.state = "ready";
    }
    this.#used.set(lane, used + next.length);
    return next;
  }

  /** The best of all that is ready, as many as the totals allow. */
  #claim(n: number): number[] {
    const running = this.running();
    let mail = this.numbers.mail - running.filter((t) => t.mail).length;
    let bounded = this.numbers.bounded - running.filter((t) => t.stream === "bounded").length;
    const claimed: number[] = [];
    for (const t of this.tasks.filter((x) => x.state === "ready").toSorted(compare)) {
      if (claimed.length === n) break;
      if ((t.mail && mail <= 0) || (t.stream === "bounded" && bounded <= 0)) continue;
      if (t.mail) mail--;
      if (t.stream === "bounded") bounded--;
      t.state = "running";
      t.attempt++;
      claimed.push(t.id);
    }
    return claimed.toSorted((a, b) => a - b);
  }
}

/** Higher priority first, then age. */
function compare(a: Task, b: Task): number {
  return b.priority - a.priority || a.id - b.id;
}
