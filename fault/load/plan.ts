// Which tasks a producer makes. Everything comes from its seed.
import type { Random } from "../random.js";
import { contracts, groups, groupTypes, keysOf, limitsOf, type TypeName, type Work } from "./terms.js";

/** Tasks of one type that are offered together. */
export interface Batch {
  readonly type: TypeName;
  readonly works: readonly Work[];
  /** all: by enqueueMany. each: one by one. commit, rollback: in a transaction that ends like that. */
  readonly by: "all" | "each" | "commit" | "rollback";
}

interface Share {
  readonly weight: number;
  readonly most: number;
}

/** How much of each type. Bursts are larger than the limits, so that these are reached. */
const SHARES: Readonly<Record<TypeName, Share>> = {
  plain: { weight: 3, most: 10 },
  bulk: { weight: 3, most: 40 },
  ordered: { weight: 4, most: 12 },
  keyed: { weight: 4, most: 16 },
  left: { weight: 3, most: 12 },
  right: { weight: 3, most: 12 },
  own: { weight: 3, most: 12 },
  gates: { weight: 4, most: 12 },
  sold: { weight: 3, most: 14 },
  retried: { weight: 2, most: 8 },
  snoozed: { weight: 1, most: 6 },
  timed: { weight: 1, most: 4 },
  later: { weight: 2, most: 8 },
  posted: { weight: 2, most: 10 },
  booked: { weight: 4, most: 12 },
  crossed: { weight: 4, most: 16 },
  metered: { weight: 3, most: 10 },
  local: { weight: 3, most: 14 },
  paired: { weight: 3, most: 10 },
  docked: { weight: 3, most: 12 },
  lifted: { weight: 3, most: 12 },
  grouped: { weight: 1, most: 9 },
  herded: { weight: 1, most: 9 },
};
// Many, because a death stops those in hand for a lease; few in a burst, so that tasks wait in line.
const ORDER_KEYS = 60;
const ORDER_KEYS_OF_BATCH = 4;
const LIMIT_KEYS = 5;
const HANDLER_MS_MAX = 50;
const LATER_MS_MAX = 4_000;
const TRANSACTION_SHARE = 0.06;
// A flood fills many groups at once, more than a claim looks at. Every so many tasks of a producer there is one.
const FLOOD_EVERY = 500;
const FLOOD_GROUPS = 60;
const FLOOD_TASKS_EACH = 3;

export class Plan {
  readonly #producer: string;
  readonly #random: Random;
  readonly #bag: readonly TypeName[];
  readonly #now: () => number;
  readonly #floods: readonly TypeName[];
  #made = 0;
  #flooded = 0;
  #nextGroup: number;

  /** `now`: the time by the database's clock. */
  constructor(producer: string, random: Random, types: readonly TypeName[], now: () => number = Date.now) {
    this.#now = now;
    this.#producer = producer;
    this.#random = random;
    this.#bag = types.flatMap((type) => Array<TypeName>(SHARES[type].weight).fill(type));
    this.#floods = types.filter((type) => groupTypes.includes(type));
    this.#nextGroup = random.between(0, groups.length);
  }

  /** Some tasks for each of many groups, if it is time for that after so many tasks. */
  flood(tasks: number): Batch | null {
    const due = tasks >= (this.#flooded + 0.5) * FLOOD_EVERY;
    if (this.#floods.length === 0 || !due) return null;
    const type = this.#floods[this.#flooded++ % this.#floods.length]!;
    // Group after group, so that all of them are seen soon.
    const names = Array.from({ length: FLOOD_GROUPS }, () => groups[this.#nextGroup++ % groups.length]!.name);
    const about = { orderKey: null, runAt: null };
    const works = Array.from({ length: FLOOD_TASKS_EACH }, () =>
      names.map((name) => this.#work(type, name, about)),
    ).flat();
    return { type, works, by: "all" };
  }

  /** The next batch, of at most so many. */
  next(most: number): Batch {
    const random = this.#random;
    const type = random.pick(this.#bag);
    const size = Math.min(most, random.between(1, SHARES[type].most));
    // Few keys in a burst, so that several tasks meet at one of them.
    const keys = [random.between(1, LIMIT_KEYS), random.between(1, LIMIT_KEYS)];
    const runAt = type === "later" ? this.#now() + random.between(500, LATER_MS_MAX) : null;
    const ordered = contracts[type].ordered && (type !== "booked" || random.next() < 0.5);
    const lines = Array.from({ length: ORDER_KEYS_OF_BATCH }, () => random.between(1, ORDER_KEYS));
    const works = Array.from({ length: size }, () => {
      const orderKey = ordered ? `${this.#producer}-${random.pick(lines)}` : null;
      return this.#work(type, this.#keyOf(type, random.pick(keys)), { orderKey, runAt });
    });
    return { type, works, by: this.#way(ordered) };
  }

  #keyOf(type: TypeName, n: number): string {
    return groupTypes.includes(type) ? groups[n]!.name : `k${n}`;
  }

  #way(ordered: boolean): Batch["by"] {
    if (ordered) return "each";
    const chance = this.#random.next();
    if (chance < TRANSACTION_SHARE) return chance < TRANSACTION_SHARE / 2 ? "commit" : "rollback";
    return chance < 0.5 ? "each" : "all";
  }

  #work(type: TypeName, someKey: string, about: Pick<Work, "orderKey" | "runAt">): Work {
    const random = this.#random;
    const { attempts, timeoutMs } = contracts[type];
    const key = keysOf(contracts[type]) > 0 || groupTypes.includes(type) ? someKey : null;
    const otherKey = keysOf(contracts[type]) > 1 ? `k${random.between(1, LIMIT_KEYS)}` : null;
    return {
      tag: `${this.#producer}/${++this.#made}`,
      type,
      ...about,
      place: null,
      limits: limitsOf(type, key, otherKey),
      attempts,
      timeoutMs,
      key,
      otherKey,
      ms: random.between(1, HANDLER_MS_MAX),
      deeds: this.#deeds(type),
    };
  }

  #deeds(type: TypeName): Work["deeds"] {
    const chance = this.#random.next();
    const often = (deed: "throw" | "hang", times: number) => Array<typeof deed>(times).fill(deed);
    if (type === "snoozed") return ["snooze"];
    // One in eight fails until all its attempts are used up.
    if (type === "retried") return often("throw", chance < 0.125 ? 3 : chance < 0.6 ? 1 : 2);
    if (type === "timed") return often("hang", chance < 0.125 ? 3 : 1);
    return type === "ordered" && chance < 0.05 ? ["throw"] : [];
  }
}
