import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import type { Database } from "../postgres/database.js";
import { listWorkers, type WorkerSummary } from "../postgres/workers.js";

/** Queries the database, or throws `closed`. */
type Ask = <T>(use: (db: Database) => Promise<T>) => Promise<T>;

/** Which workers to list. */
export interface WorkerListOptions {
  /** At most this many, up to 10,000. Default 1,000. */
  readonly limit?: number;
}

const LIST_DEFAULT = 1_000;
const LIST_RANGE = { min: 1, max: 10_000 };

/** Lists the workers of all processes. */
export class Workers {
  readonly #ask: Ask;

  /** @internal */
  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Returns the registered workers, by name. A worker that stops is no longer listed; one that dies is, for a while. */
  async list(options: WorkerListOptions = {}): Promise<WorkerSummary[]> {
    checkOptions("workers.list", options, ["limit"]);
    const max = checkInteger("limit", options.limit ?? LIST_DEFAULT, LIST_RANGE);
    return this.#ask((db) => listWorkers(db, max));
  }
}
