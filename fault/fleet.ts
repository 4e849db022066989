// The workers: started, lent to faults, replaced when they have died.
import { setTimeout as delay } from "node:timers/promises";
import { Child } from "./child.js";
import type { WorkerOrders } from "./load/orders.js";
import { unservedBy, type TypeName } from "./load/terms.js";
import { WorkerMember } from "./member.js";
import { WireProxy } from "./proxy.js";
import type { Random } from "./random.js";
import type { Fleet, Log, Member } from "./stage.js";

const LOOK_EVERY_MS = 20;
const READY_MS_MAX = 60_000;
const TASKS_MAX = 40;

interface FleetOptions {
  readonly program: string;
  readonly url: string;
  readonly logUrl: string;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Hears how long each step of a worker took. */
  readonly onStep: (ms: number) => void;
  /** Something happened to a process that no fault did. */
  readonly onWrong: (what: string) => void;
}

/** One place for a worker, whoever fills it just now. */
interface Berth {
  readonly name: string;
  /** The types that its workers do not serve. */
  readonly unserved: readonly TypeName[];
  member: WorkerMember | undefined;
  borrowed: boolean;
  starts: number;
}

export class WorkerFleet implements Fleet {
  readonly #o: FleetOptions;
  readonly #berths: Berth[];
  readonly #guests = new Set<WorkerMember>();
  /** Of those that are gone. */
  #ended = 0;
  readonly #logLines = new Map<string, number>();
  #guestsSoFar = 0;
  #closing = false;

  constructor(size: number, options: FleetOptions) {
    this.#o = options;
    this.#berths = Array.from({ length: size }, (_, i) => {
      const unserved = unservedBy(i, size);
      return { name: `worker-${i + 1}`, unserved, member: undefined, borrowed: false, starts: 0 };
    });
  }

  async start(): Promise<void> {
    await Promise.all(this.#berths.map((berth) => this.#fill(berth)));
  }

  members(): readonly Member[] {
    return this.#berths.flatMap(({ member, borrowed }) =>
      member !== undefined && member.alive && !borrowed ? [member] : [],
    );
  }

  /** Everybody who lives, disturbed or not. */
  living(): WorkerMember[] {
    const berthed = this.#berths.flatMap(({ member }) => member ?? []);
    return [...berthed, ...this.#guests].filter(({ alive }) => alive);
  }

  /** Handlers that came to their end so far, in all processes. */
  get ended(): number {
    return this.#ended + this.living().reduce((sum, { ended }) => sum + ended, 0);
  }

  /** Lines that each process logged, living or dead. */
  get logLines(): ReadonlyMap<string, number> {
    for (const member of this.living()) this.#logLines.set(member.name, member.logLines());
    return this.#logLines;
  }

  async borrow<T>(random: Random, withMember: (member: Member) => Promise<T>): Promise<T> {
    const berth = await this.#free(random);
    berth.borrowed = true;
    try {
      return await withMember(berth.member!);
    } finally {
      if (berth.member!.alive) berth.borrowed = false;
      else void this.#replace(berth);
    }
  }

  async guest<T>(env: Readonly<Record<string, string>>, withMember: (member: Member) => Promise<T>): Promise<T> {
    const guest = await this.#launch(`guest-${++this.#guestsSoFar}`, env, []);
    this.#guests.add(guest);
    try {
      return await withMember(guest);
    } finally {
      this.#guests.delete(guest);
      if (guest.alive) await guest.terminate();
      this.#bury(guest);
    }
  }

  /** Whatever faults have left behind: nobody stays frozen or cut off. */
  restore(): void {
    for (const member of this.living()) {
      member.thaw();
      member.proxy.restore();
    }
  }

  /** Everybody leaves in good order. */
  async stop(): Promise<void> {
    this.#closing = true;
    const crew = this.living();
    await Promise.all(crew.map((member) => member.terminate()));
    for (const member of crew) this.#bury(member);
  }

  /** Nobody is asked. */
  async kill(): Promise<void> {
    this.#closing = true;
    await Promise.all(this.living().map((member) => member.kill().catch(() => {})));
  }

  /** At least one is never lent, if there are several: work goes on. */
  async #free(random: Random): Promise<Berth> {
    const lentMax = Math.max(1, this.#berths.length - 1);
    for (;;) {
      const free = this.#berths.filter(({ member, borrowed }) => member?.alive && !borrowed);
      const lent = this.#berths.filter(({ borrowed }) => borrowed).length;
      if (lent < lentMax && free.length > 0) return random.pick(free);
      if (this.#o.signal.aborted) throw new Error("the run is over");
      await delay(LOOK_EVERY_MS);
    }
  }

  async #replace(berth: Berth): Promise<void> {
    this.#bury(berth.member!);
    try {
      if (!this.#closing) await this.#fill(berth);
    } catch (e) {
      this.#o.onWrong(String(e));
    }
    berth.borrowed = false;
  }

  async #fill(berth: Berth): Promise<void> {
    const name = `${berth.name}.${++berth.starts}`;
    // One that is lost before it was ready is not in its berth yet.
    berth.member = await this.#launch(name, {}, berth.unserved, () => {
      if (!berth.borrowed && berth.member?.name === name && !this.#closing) {
        berth.borrowed = true;
        void this.#replace(berth);
      }
    });
  }

  async #launch(
    name: string,
    env: Readonly<Record<string, string>>,
    unserved: readonly TypeName[],
    onLost: () => void = () => {},
  ): Promise<WorkerMember> {
    const { url, logUrl, log, program } = this.#o;
    const proxy = await WireProxy.start(url, (statement, ms) => {
      if (statement.endsWith(".step")) this.#o.onStep(ms);
    });
    const orders: WorkerOrders = { name, url: proxy.url, logUrl, tasksMax: TASKS_MAX, unserved };
    const child = new Child(program, orders, env);
    const member = new WorkerMember(child, proxy, log, (why) => {
      this.#o.onWrong(why);
      onLost();
    });
    const late = setTimeout(() => child.signal("SIGKILL"), READY_MS_MAX);
    const ready = await child.told("ready");
    clearTimeout(late);
    if (!ready) throw new Error(`${name} did not become ready`);
    return member;
  }

  #bury(member: WorkerMember): void {
    this.#ended += member.ended;
    this.#logLines.set(member.name, member.logLines());
  }
}
