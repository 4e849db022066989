import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import type { Database } from "../postgres/database.js";
import { listQueues, type QueueSummary } from "../postgres/queues.js";

/** Queries the database, or throws `closed`. */
type Ask = <T>(use: (db: Database) => Promise<T>) => Promise<T>;

/** Which queues to list. */
export interface QueueListOptions {
  /** The page size, up to 1,000. Default 100. */
  readonly limit?: number;
  /** Only names after this one. */
  readonly after?: string;
}

const LIST_DEFAULT = 100;
const LIST_RANGE = { min: 1, max: 1_000 };

/** Lists the queues of all processes. */
export class Queues {
  readonly #ask: Ask;

  /** @internal */
  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /**
   * Returns a page of queues, by name, with the number of tasks in each state that have not ended. Counts are capped, so
   * a large backlog does not make it slow. For the next page, pass the last name of this one as `after`.
   */
  async list(options: QueueListOptions = {}): Promise<QueueSummary[]> {
    checkOptions("queues.list", options, ["limit", "after"]);
    const max = checkInteger("limit", options.limit ?? LIST_DEFAULT, LIST_RANGE);
    const after = options.after === undefined ? "" : checkName("queue", options.after);
    return this.#ask((db) => listQueues(db, after, max));
  }
}
