// Offers tasks until they are acknowledged, whatever becomes of the replies on the way.
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { isSluiceError, type EnqueueOptions } from "../../src/index.js";
import type { Client } from "../../src/client.js";
import type { LogWriter } from "../log.js";
import { claimsOf } from "./handler.js";
import type { Batch } from "./plan.js";
import { contracts, type Work, type WorkContract } from "./terms.js";

const ASK_MS_MAX = 120_000;
const ASK_AGAIN_MS = 100;
const CONNECT_MS_MAX = 5_000;
export const LATE_MS_MAX = 600;

export class Offers {
  readonly #client: Client;
  readonly #log: LogWriter;
  readonly #url: string;
  /** Each order key has a line of its own here: a place is offered when the last is acknowledged. */
  readonly #lines = new Map<string, { last: Promise<unknown>; place: number }>();

  constructor(client: Client, log: LogWriter, url: string) {
    this.#client = client;
    this.#log = log;
    this.#url = url;
  }

  /** Resolves with how many were acknowledged. */
  async make({ type, works, by }: Batch): Promise<number> {
    const contract = contracts[type];
    if (by === "rollback") return this.#withdraw(contract, works);
    if (by === "commit") await this.#commit(contract, works);
    else if (by === "all") await this.#all(contract, works);
    else await Promise.all(works.map((work) => this.#each(contract, work)));
    return works.length;
  }

  #each(contract: WorkContract, work: Work): Promise<void> {
    const key = work.orderKey;
    if (key === null) return this.#one(contract, work);
    const line = this.#lines.get(key) ?? { last: Promise.resolve(), place: 0 };
    this.#lines.set(key, line);
    const next = line.last.then(() => this.#one(contract, { ...work, place: ++line.place }));
    line.last = next;
    return next;
  }

  async #one(contract: WorkContract, work: Work): Promise<void> {
    await this.#offered([work]);
    await this.#ask(contract, work);
  }

  async #ask(contract: WorkContract, work: Work): Promise<void> {
    const { id } = await untilAcknowledged(() =>
      this.#client.enqueue(contract, work, { ...optionsOf(work), idempotencyKey: work.tag }),
    );
    await this.#log.write([{ kind: "acknowledged", tag: work.tag, task: id }]);
  }

  async #all(contract: WorkContract, works: readonly Work[]): Promise<void> {
    await this.#offered(works);
    const options = { ...optionsOf(works[0]!), idempotencyKey: (work: Work) => work.tag };
    const many = await untilAcknowledged(() => this.#client.enqueueMany(contract, works, options));
    const lines = many.ids().map((task, i) => {
      return { kind: "acknowledged", tag: works[i]!.tag, task } as const;
    });
    await this.#log.write(lines);
  }

  /** If anybody's word is lost on the way, nobody knows whether it has committed: then we ask again. */
  async #commit(contract: WorkContract, works: readonly Work[]): Promise<void> {
    await this.#offered(works);
    await this.#in(contract, works, "commit").catch(() => {});
    await Promise.all(works.map((work) => this.#ask(contract, work)));
  }

  /** Whatever happens to the connection, nothing of it is ever committed. */
  async #withdraw(contract: WorkContract, works: readonly Work[]): Promise<number> {
    await this.#offered(works);
    await this.#in(contract, works, "rollback").catch(() => {});
    await this.#log.write(works.map(({ tag }) => ({ kind: "withdrawn", tag })));
    return 0;
  }

  #in(contract: WorkContract, works: readonly Work[], end: "commit" | "rollback"): Promise<void> {
    return inTransaction(this.#url, end, async (tx) => {
      for (const work of works) {
        const options = { ...optionsOf(work), idempotencyKey: work.tag, tx };
        await this.#client.enqueue(contract, work, options);
      }
      await delay(Math.random() * LATE_MS_MAX);
    });
  }

  #offered(works: readonly Work[]): Promise<void> {
    return this.#log.write(works.map((work) => ({ kind: "offered", ...claimsOf(work) }) as const));
  }
}

function optionsOf({ runAt }: Work): EnqueueOptions {
  return runAt === null ? {} : { runAt: new Date(runAt) };
}

/** Does it in a transaction of a connection of its own. */
export async function inTransaction(
  url: string,
  end: "commit" | "rollback",
  work: (tx: pg.Client) => Promise<void>,
): Promise<void> {
  const tx = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS_MAX });
  tx.on("error", () => {});
  await tx.connect();
  try {
    await tx.query("begin");
    await work(tx);
    await tx.query(end);
  } finally {
    // Not to be waited for: in a black hole nobody answers to a goodbye.
    void tx.end().catch(() => {});
  }
}

/** The key of each task makes asking again harmless. */
export async function untilAcknowledged<T>(ask: () => Promise<T>): Promise<T> {
  const end = performance.now() + ASK_MS_MAX;
  for (;;) {
    try {
      return await ask();
    } catch (e) {
      const passes = isSluiceError(e, "database_unavailable") || isSluiceError(e, "database_busy");
      if (!passes || performance.now() > end) throw e;
      await delay(ASK_AGAIN_MS);
    }
  }
}
