// Puts the lines together: who offered what, what ran where, who died when. Judges nothing.
import { noteJump, type Jump } from "./database-clock.js";
import { noteFlow, type Flow } from "./flow.js";
import { inOrder } from "./in-order.js";
import type { Claims, Line } from "./line.js";
import { newPast, type Past } from "./past.js";
import { close, open, type Window } from "./windows.js";

export type Of<K extends Line["kind"]> = Extract<Line, { readonly kind: K }>;
export type Start = Of<"start">;

/** One run of a handler. */
export interface Run {
  /** The how many-th of all, by their starts. */
  readonly n: number;
  readonly line: Start;
  readonly task: Task;
  readonly past: Past;
  /** Its process had said nothing for a while before this, or before something shortly before this. */
  readonly awakeSince: number;
  end: Of<"end"> | null;
}

export interface Task {
  readonly id: string;
  /** What was said of it when it was acknowledged or started; null if it was neither. */
  claims: Claims | null;
  acknowledged: boolean;
  readonly runs: Run[];
  readonly accepted: Of<"accepted">[];
  readonly cancelling: number[];
  readonly retrying: number[];
}

export interface Offer {
  readonly lines: Of<"offered">[];
  withdrawn: number;
  readonly tasks: Set<string>;
}

export interface History {
  readonly first: number;
  readonly last: number;
  readonly lines: number;
  readonly runs: readonly Run[];
  readonly tasks: ReadonlyMap<string, Task>;
  readonly offers: ReadonlyMap<string, Offer>;
  readonly flows: ReadonlyMap<string, Flow>;
  readonly processes: ReadonlyMap<string, Past>;
  readonly changes: readonly Of<"changing" | "changed">[];
  readonly pauses: readonly Of<"pausing" | "paused" | "resuming" | "resumed">[];
  readonly samples: readonly Of<"explained">[];
  /** Turns of faults that may keep tasks waiting. */
  readonly turns: readonly Window[];
  readonly jumps: readonly Jump[];
  readonly held: readonly Of<"held">[];
  readonly wrong: readonly Of<"wrong">[];
}

/** Who stands for all processes. */
export const EVERYBODY = "*";

/** `silenceMs`: a process that says nothing for so long may have been asleep. */
export function historyOf(lines: readonly Line[], silenceMs: number): History {
  return new Book(inOrder(lines), silenceMs);
}

class Book implements History {
  readonly first: number;
  readonly last: number;
  readonly lines: number;
  readonly runs: Run[] = [];
  readonly tasks = new Map<string, Task>();
  readonly offers = new Map<string, Offer>();
  readonly flows = new Map<string, Flow>();
  readonly processes = new Map<string, Past>();
  readonly changes: Of<"changing" | "changed">[] = [];
  readonly pauses: Of<"pausing" | "paused" | "resuming" | "resumed">[] = [];
  readonly samples: Of<"explained">[] = [];
  readonly turns: Window[] = [];
  readonly jumps: Jump[] = [];
  readonly held: Of<"held">[] = [];
  readonly wrong: Of<"wrong">[] = [];
  readonly #silenceMs: number;
  /** Of handlers that were told to stop while they wrote their first line. */
  readonly #endsBefore = new Map<string, Of<"end">>();

  constructor(sorted: readonly Line[], silenceMs: number) {
    this.first = sorted[0]?.at ?? 0;
    this.last = sorted.at(-1)?.at ?? 0;
    this.lines = sorted.length;
    this.#silenceMs = silenceMs;
    for (const line of sorted) this.#note(line);
  }

  #note(line: Line): void {
    if ("flow" in line) return noteFlow(this.flows, line);
    switch (line.kind) {
      case "offered":
        return void this.#offer(line.tag).lines.push(line);
      case "withdrawn":
        return void this.#offer(line.tag).withdrawn++;
      case "acknowledged":
        return this.#acknowledged(line);
      case "start":
        return this.#start(line);
      case "end":
        return this.#end(line);
      case "accepted":
        return this.#accepted(line);
      case "cancelling":
        return void this.#task(line.task).cancelling.push(line.at);
      case "retrying":
        return void this.#task(line.task).retrying.push(line.at);
      case "notRetried":
        // Of two who asked at once, one in vain: the earlier may be the one who had his way.
        return void this.#task(line.task).retrying.pop();
      case "changing":
      case "changed":
        return void this.changes.push(line);
      case "pausing":
      case "paused":
      case "resuming":
      case "resumed":
        return void this.pauses.push(line);
      case "clockMoving":
      case "clockMoved":
        return noteJump(this.jumps, line);
      case "explained":
        return void this.samples.push(line);
      case "faultBegun":
      case "faultOver":
        return (line.kind === "faultBegun" ? open : close)(this.turns, line);
      case "held":
        return void this.held.push(line);
      case "wrong":
        return void this.wrong.push(line);
      case "serves":
        return void this.#past(line.process).serves.push(line);
      case "scraped":
        return void this.#past(line.process).scrapes.push(line);
      default:
        return this.#fate(line);
    }
  }

  #fate(line: Of<"dead" | "terminating" | "disturbed" | "restored">): void {
    const { deaths, terminating, windows } = this.#past(line.process);
    if (line.kind === "dead") deaths.push(line.at);
    else if (line.kind === "terminating") terminating.push(line.at);
    else if (line.kind === "disturbed") open(windows, line);
    else close(windows, line);
  }

  #acknowledged(line: Of<"acknowledged">): void {
    const [task, offer] = [this.#task(line.task), this.#offer(line.tag)];
    task.acknowledged = true;
    task.claims ??= offer.lines.at(-1) ?? null;
    offer.tasks.add(line.task);
  }

  #accepted(line: Of<"accepted">): void {
    const { tag } = line;
    const task = this.#task(line.task);
    task.accepted.push(line);
    if (typeof tag !== "string") return;
    const offer = this.#offer(tag);
    offer.tasks.add(line.task);
    task.claims ??= offer.lines.at(-1) ?? null;
  }

  #start(line: Start): void {
    const [task, past] = [this.#task(line.task), this.#past(line.process)];
    this.#said(past, line.at);
    task.claims ??= line;
    this.#offer(line.tag).tasks.add(line.task);
    const [name, { awakeSince }] = [`${line.task} ${line.claim}`, past];
    const end = this.#endsBefore.get(name) ?? null;
    const run = { n: this.runs.length, line, task, past, awakeSince, end };
    this.#endsBefore.delete(name);
    task.runs.push(run);
    this.runs.push(run);
  }

  #end(line: Of<"end">): void {
    const past = this.#past(line.process);
    this.#said(past, line.at);
    const run = this.#task(line.task).runs.findLast((r) => r.line.claim === line.claim);
    if (run === undefined) this.#endsBefore.set(`${line.task} ${line.claim}`, line);
    else run.end ??= line;
    if (line.how === "left" && line.reason === "lease_lost") past.leasesLost.push(line.at);
  }

  #said(past: Past, at: number): void {
    if (at - past.lastSaid >= this.#silenceMs) past.awakeSince = at;
    past.lastSaid = at;
  }

  #task(id: string): Task {
    const known = this.tasks.get(id);
    if (known !== undefined) return known;
    const task: Task = {
      id,
      claims: null,
      acknowledged: false,
      runs: [],
      accepted: [],
      cancelling: [],
      retrying: [],
    };
    this.tasks.set(id, task);
    return task;
  }

  #offer(tag: string): Offer {
    const known = this.offers.get(tag);
    if (known !== undefined) return known;
    const offer: Offer = { lines: [], withdrawn: 0, tasks: new Set() };
    this.offers.set(tag, offer);
    return offer;
  }

  #past(name: string): Past {
    const known = this.processes.get(name);
    if (known !== undefined) return known;
    const past = newPast(name);
    this.processes.set(name, past);
    return past;
  }
}
