// Looks at the log and the limits again and again, shows them, and says when something is reached.
import { setTimeout as delay } from "node:timers/promises";
import type { Fleet } from "./fleet.js";
import type { Screen } from "./screen.js";
import type { Stage } from "./stage.js";
import { TENANTS, type Tasks } from "./terms.js";
import { doneOf, type LimitLook, type Look } from "./view.js";

const LOOK_EVERY_MS = 200;
// Far above a lease: a queue in which nothing ends for so long has lost something.
const STALL_MS = 30_000;
const BUSY_TASKS = 3;
// From here on a worker may stay idle.
const ENDING_SHARE = 0.9;
const ABOUT: Readonly<Record<string, string>> = {
  gateway: "shared by both types",
  mail: "at once",
  tenant: "per tenant",
};

/** Nothing has moved for too long. The audit tells what is missing. */
export class Stalled extends Error {
  override message = "no task has ended for a while: giving up";
}

interface Watched {
  readonly stage: Stage;
  readonly fleet: Fleet;
  readonly screen: Screen;
  readonly tasks: Tasks;
}

export class Watch {
  readonly #o: Watched;
  readonly #all: number;
  readonly #begunMs = performance.now();
  #done = 0;
  #movedMs = this.#begunMs;

  constructor(watched: Watched) {
    this.#o = watched;
    this.#all = Object.values(watched.tasks).reduce((sum, n) => sum + n, 0);
  }

  get seconds(): number {
    return (performance.now() - this.#begunMs) / 1_000;
  }

  tell(text: string): void {
    this.#movedMs = performance.now();
    this.#o.screen.tell(this.seconds, text);
  }

  /** Watches while something is under way. */
  async during<T>(work: Promise<T>): Promise<T> {
    let over = false;
    const end = work.finally(() => (over = true));
    end.catch(() => {});
    await this.#until(() => over);
    return end;
  }

  /** Watches until this share of all tasks has ended. */
  async reach(share: number): Promise<void> {
    await this.#until(() => this.#done >= this.#all * share);
  }

  /** Watches for so long, or until this share of all tasks has ended meanwhile. */
  async rest(ms: number, share: number): Promise<void> {
    const until = performance.now() + ms;
    const enough = this.#done + this.#all * share;
    await this.#until(() => performance.now() >= until || this.#done >= enough);
  }

  /** Watches until the queue has nothing left to do, and shows that too. */
  async finish(): Promise<void> {
    await this.#until(async () => {
      const { scheduled, waiting, ready, running } = await this.#o.stage.sluice.counts();
      return scheduled + waiting + ready + running === 0;
    });
    this.#o.screen.look(await this.#look());
  }

  /** Watches until a worker has several tasks in hand, as long as there are any. */
  async busy(worker: string): Promise<void> {
    await this.#until(async () => {
      // Not from the last look, which is older.
      const own = (await this.#o.stage.log.look()).filter((tally) => tally.worker === worker);
      const running = own.reduce((sum, tally) => sum + tally.running, 0);
      return running >= BUSY_TASKS || this.#done >= this.#all * ENDING_SHARE;
    });
  }

  async #until(reached: () => boolean | Promise<boolean>): Promise<void> {
    for (;;) {
      this.#o.screen.look(await this.#look());
      if (await reached()) return;
      await delay(LOOK_EVERY_MS);
    }
  }

  async #look(): Promise<Look> {
    const { stage, fleet, tasks } = this.#o;
    const tallies = await stage.log.look();
    const limits = await this.#limits(tallies);
    const look = { seconds: this.seconds, tasks, tallies, limits, members: fleet.members };
    this.#checkMoved(look);
    return look;
  }

  /** The queue knows how many slots of a total are out; who runs under a key is in the log. */
  async #limits(tallies: Look["tallies"]): Promise<LimitLook[]> {
    return (await this.#o.stage.sluice.limits.list()).map(({ name, total, perKey, used }) => {
      const about = ABOUT[name] ?? "";
      if (perKey == null) return { name, about, used, slots: total ?? 0 };
      const each = TENANTS.map((tenant) =>
        tallies.filter((t) => t.tenant === tenant).reduce((sum, t) => sum + t.running, 0),
      );
      return { name, about, used: Math.max(...each), slots: perKey, keys: each };
    });
  }

  #checkMoved(look: Look): void {
    const done = Object.keys(look.tasks).reduce((sum, type) => sum + doneOf(look, type), 0);
    if (done !== this.#done) this.#movedMs = performance.now();
    this.#done = done;
    if (performance.now() - this.#movedMs > STALL_MS) throw new Stalled();
  }
}
