import { claimed, type Totals } from "./model-claims.js";
import {
  compare,
  compareTurns,
  DECLARED,
  ownTurn,
  TICK,
  type Kind,
  type Limit,
  type Place,
  type State,
  type Stream,
  type Task,
  type Total,
} from "./model-terms.js";

const CRASHES_MAX = 3;

const kindOf = (totals: readonly Total[]): string =>
  totals.length === 0 ? "0" : totals.toSorted((a, b) => (a < b ? 1 : -1)).join("+");

/**
 * The required behaviour of the store, as short as possible: tasks, lanes with a count each, and notes
 * for the next claim. No locks, no tables, no batches: the test compares it with the real thing
 * after every command.
 */
export class Model {
  readonly tasks: Task[] = [];
  paused = false;
  readonly #declared: Record<Limit, number> = { ...DECLARED };
  readonly #override = new Map<Limit, number>();
  #served: readonly Stream[] = ["bounded", "free"];
  readonly #unserved = new Set<Stream>();
  readonly #keys = new Set<string>();
  #ids = 0;
  #turns = 0;
  #reserved: Task | null = null;
  readonly #used = new Map<string, number>();
  readonly #joined = new Set<string>();
  /** Kinds of tasks that keys pass over: a stream and its totals, or 0 for all of it. */
  readonly #stuck = new Set<string>();
  /** Lanes with room that only such tasks wait for. */
  readonly #postponed = new Set<string>();
  /** Settled by the step that admits: the counters of their totals do not know it yet. */
  #settling: readonly Task[] = [];
  readonly #freed: string[] = [];

  running(): Task[] {
    return this.tasks.filter((t) => t.state === "running");
  }

  number(limit: Limit): number {
    return this.#override.get(limit) ?? this.#declared[limit];
  }

  enqueue(place: Place): void {
    const id = ++this.#ids;
    const key = `${place.stream} ${place.key}`;
    // Found under its key: the number that was drawn for it is lost.
    if (place.key !== null && this.#keys.has(key)) return;
    if (place.key !== null) this.#keys.add(key);
    const lanes: string[] = [];
    if (place.order !== null) lanes.push(`1 ${place.order}`);
    if (place.tenant !== null) lanes.push(`2 ${place.tenant}`);
    const task: Task = {
      ...place,
      id,
      lanes,
      state: "scheduled",
      held: 0,
      attempt: 0,
      crashes: 0,
      stopped: false,
      blocking: false,
      failed: false,
      due: false,
      turn: ownTurn(id),
      hadTurn: null,
    };
    this.tasks.push(task);
    if (place.later) return;
    // One with an order key stands in that line, or a later one of its key would overtake it.
    const atTheDoor = place.tenant !== null && place.order === null;
    if (atTheDoor && this.#unserved.has(place.stream)) task.state = "parked";
    else this.#stand(task);
  }

  /** Each tick is enqueued once, by a keeper that has seen the current schedule. */
  tick(how: "new" | "again" | "stale"): void {
    if (how === "new") this.enqueue(TICK);
  }

  /** The ids it claims. got: those that the store has claimed, which may be right too. */
  step(done: readonly Task[], n: number, got: readonly number[]): number[] {
    this.#settling = done;
    const freed = done.flatMap((t) => this.#end(t, false));
    if (n > 0) this.#admitAll(freed);
    else this.#admit(freed, []);
    this.#settling = [];
    if (n === 0 || this.paused) return [];
    const ready = this.#ready();
    const taken = claimed(this.#totals, ready, n, got);
    for (const t of ready.filter((x) => taken.includes(x.id))) this.#start(t);
    return taken.toSorted((a, b) => a - b);
  }

  settle(t: Task, kind: Kind, later: boolean): void {
    this.#admit(this.#fate(t, kind, later), []);
  }

  /** A completion in a user's transaction leaves a note of its slots for the next claim. */
  commit(t: Task): void {
    this.#freed.push(...this.#end(t, false));
  }

  /** Those of a claim whose reply was lost, or of a worker that leaves. */
  handBack(tasks: readonly Task[]): void {
    this.#admit(
      tasks.flatMap((t) => this.#fate(t, "release", false)),
      [],
    );
    this.keep();
  }

  /** The worker leaves, and another begins that serves these. */
  serve(streams: readonly Stream[]): void {
    this.#admit(
      this.running().flatMap((t) => this.#fate(t, "release", false)),
      [],
    );
    this.#begin(streams);
    this.keep();
  }

  /** A suspect is claimed by a worker that holds nothing else, if there is room for it. Its id, or none. */
  suspect(): number | null {
    const free = this.tasks.filter((t) => t.state === "suspect" && this.#isServed(t));
    if (this.paused || free.length === 0) return null;
    this.#reserved = free.find((t) => t === this.#reserved) ?? free[0]!;
    const t = this.#reserved;
    const closed = t.tenant !== null && this.number("tenant") === 0;
    if (closed || this.gates(t).some((gate) => this.number(gate) <= 0)) return null;
    this.#start(t);
    return t.id;
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

  /** Moves due tasks. An hour has passed, so all are due. */
  due(hour: boolean): void {
    for (const t of this.tasks) if (t.state === "scheduled" && (t.due || hour)) this.#stand(t);
  }

  /** The worker dies with all its tasks in flight. */
  crash(): void {
    for (const t of this.running()) {
      t.crashes++;
      if (t.stopped) this.#freed.push(...this.#end(t, true));
      else if (t.crashes > CRASHES_MAX) this.#freed.push(...this.#fail(t));
      else this.#back(t);
    }
    this.#begin(this.#served);
    this.keep();
  }

  /** The operator's number; null takes it away again. */
  set(limit: Limit, number: number | null): void {
    const before = this.number(limit);
    if (number === null) this.#override.delete(limit);
    else this.#override.set(limit, number);
    const raised = limit === "tenant" && this.number(limit) > before;
    if (raised) for (const lane of this.#used.keys()) this.#joined.add(lane);
    this.keep();
  }

  /** A deploy gives the type a number of its own, or takes it away. */
  declare(stream: Stream, number: number | null): void {
    this.#declared[stream] = number ?? Infinity;
  }

  /** A number given with a group counts only if none is set. */
  fill(number: number): void {
    if (this.#declared.bulk === Infinity && !this.#override.has("bulk")) this.#declared.bulk = number;
  }

  /** The queue is paused or resumed. */
  pause(paused: boolean): void {
    this.paused = paused;
    if (!paused) this.#unpark();
  }

  /** The keeper sheds tasks, parks those that no worker can run, and unparks those that can run again. */
  keep(): void {
    for (const lane of this.#postponed) this.#joined.add(lane);
    this.#postponed.clear();
    this.#shed();
    this.#park();
    this.#unpark();
    this.#admitAll([]);
  }

  /** Above a lowered number only running tasks hold slots. */
  #shed(): void {
    for (const [lane, used] of this.#used) {
      const excess = used - this.#cap(lane);
      if (excess <= 0) continue;
      const idle = this.tasks.filter((t) => t.state === "ready" && t.lanes.indexOf(lane) >= 0);
      for (const t of idle.toSorted((a, b) => compare(b, a)).slice(0, excess)) {
        this.#freed.push(...this.#leave(t, t.lanes.indexOf(lane), "waiting"));
      }
    }
  }

  /** Tasks that no worker can run keep only the slot of their order key, so they starve no others. */
  #park(): void {
    for (const stream of ["bounded", "free"] as const) {
      if (!this.#served.includes(stream)) this.#unserved.add(stream);
      if (this.#isClosed(stream, [])) this.#stuck.add(`${stream} 0`);
      for (const totals of [["mail"], ["bulk"], ["mail", "bulk"]] as const)
        if (totals.some((total) => this.number(total) === 0)) this.#stuck.add(`${stream} ${totals.join("+")}`);
    }
    for (const t of this.tasks)
      if (t.state === "ready" && t.tenant !== null && this.#isClosed(t.stream, t.totals))
        this.#freed.push(...this.#leave(t, t.order === null ? 0 : 1, "parked"));
  }

  #unpark(): void {
    for (const kind of this.#stuck) {
      const [stream, totals] = kind.split(" ") as [Stream, string];
      if (this.#isOpen(stream, totals === "0" ? [] : (totals.split("+") as Total[]))) this.#stuck.delete(kind);
    }
    for (const stream of this.#served) this.#unserved.delete(stream);
    for (const t of this.tasks) if (t.state === "parked" && this.#isServed(t) && !this.#isStuck(t)) this.#stand(t);
  }

  /** Not served, paused, or at a number of 0. */
  #isClosed(stream: Stream, totals: readonly Total[]): boolean {
    const shut = [stream, ...totals].some((limit) => this.number(limit) === 0);
    return this.paused || shut || !this.#served.includes(stream);
  }

  /** Whether a task of this kind could start now, as far as the counters know. */
  #isOpen(stream: Stream, totals: readonly Total[]): boolean {
    const { running, gatesOf, number } = this.#totals;
    const counted = [...running, ...this.#settling];
    const full = (gate: Limit): boolean => counted.filter((x) => gatesOf(x).includes(gate)).length >= number(gate);
    const gates = this.#declared[stream] === Infinity ? totals : [...totals, stream];
    return !this.paused && this.#served.includes(stream) && !gates.some(full);
  }

  #isStuck(t: Task): boolean {
    return this.#stuck.has(`${t.stream} 0`) || this.#stuck.has(`${t.stream} ${kindOf(t.totals)}`);
  }

  #begin(streams: readonly Stream[]): void {
    this.#served = streams;
    this.#reserved = null;
    for (const stream of streams) this.#unserved.delete(stream);
  }

  #isServed(t: Task): boolean {
    return this.#served.includes(t.stream);
  }

  /** Slots that come free. */
  #fate(t: Task, kind: string, later: boolean): string[] {
    if (t.stopped && ["retry", "snooze", "release"].includes(kind)) return this.#end(t, true);
    if (kind === "release") {
      this.#back(t);
      return [];
    }
    if (kind === "cancel") return this.#end(t, true);
    if (kind === "fail" || (kind === "retry" && t.attempt >= t.attempts)) return this.#fail(t);
    if (kind === "snooze") t.attempt--;
    // It ran alone without a crash.
    if (t.crashes === CRASHES_MAX) t.crashes--;
    t.due = !later;
    return this.#leave(t, t.order === null ? 0 : 1, "scheduled");
  }

  /** Unharmed, with all it holds. */
  #back(t: Task): void {
    t.state = t.crashes === CRASHES_MAX ? "suspect" : "ready";
    t.turn = ownTurn(t.id);
    t.attempt--;
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
    t.hadTurn = state === "parked" ? t.turn : null;
    t.held = keep;
    t.state = state;
    return freed;
  }

  #stand(t: Task): void {
    const lane = t.lanes[t.held];
    t.state = lane === undefined ? "ready" : "waiting";
    t.turn = ownTurn(t.id);
    if (lane !== undefined) this.#joined.add(lane);
  }

  #cap(lane: string): number {
    return lane.startsWith("1") ? 1 : this.number("tenant");
  }

  #admitAll(freed: readonly string[]): void {
    const joined = [...this.#joined];
    this.#joined.clear();
    this.#admit([...freed, ...this.#freed.splice(0)], joined);
  }

  #admit(freed: readonly string[], joined: readonly string[]): void {
    for (const lane of freed) this.#used.set(lane, this.#used.get(lane)! - 1);
    const touched = new Set([...freed, ...joined]);
    for (const level of ["1", "2"]) {
      const moved = [...touched].filter((l) => l.startsWith(level)).flatMap((lane) => this.#handOver(lane));
      for (const t of moved.toSorted((a, b) => a.id - b.id)) {
        const next = t.lanes[t.held];
        // Keys take turns: it comes after all that is there, before all that is enqueued later.
        if (next !== undefined) touched.add(next);
        else t.turn = t.hadTurn ?? ownTurn(this.#ids) + ++this.#turns;
      }
    }
  }

  /** Gives the free slots of a lane to its first waiters. */
  #handOver(lane: string): Task[] {
    const used = this.#used.get(lane) ?? 0;
    const room = Math.max(0, this.#cap(lane) - used);
    const line = this.tasks.filter((t) => t.state === "waiting" && t.lanes[t.held] === lane);
    const byAge = lane.startsWith("1");
    const open = byAge ? line : line.filter((t) => !this.#isStuck(t) || this.#isOpen(t.stream, t.totals));
    const next = open.toSorted((a, b) => (byAge ? a.id - b.id : compare(a, b))).slice(0, room);
    if (next.length < Math.min(room, line.length)) this.#postponed.add(lane);
    for (const t of next) {
      t.held++;
      if (t.held === t.lanes.length) t.state = "ready";
    }
    this.#used.set(lane, used + next.length);
    return next;
  }

  #start(t: Task): void {
    t.state = "running";
    t.attempt++;
  }

  #ready(): Task[] {
    return this.tasks.filter((t) => t.state === "ready" && this.#isServed(t)).toSorted(compareTurns);
  }

  /** The totals that it needs a slot of: its own, and its type's if that has a number. */
  /** Whether a total that it must pass is used up. */
  full(t: Task): boolean {
    const { running, gatesOf, number } = this.#totals;
    const used = (gate: Limit): number => running.filter((x) => gatesOf(x).includes(gate)).length;
    return gatesOf(t).some((gate) => used(gate) >= number(gate));
  }

  gates(t: Task): Limit[] {
    return this.#declared[t.stream] === Infinity ? [...t.totals] : [...t.totals, t.stream];
  }

  get #totals(): Totals {
    const running = this.running();
    return { running, gatesOf: (t) => this.gates(t), number: (limit) => this.number(limit) };
  }
}
