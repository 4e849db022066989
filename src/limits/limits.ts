import { SluiceError } from "../core/error.js";
import { isLimit, type Limit } from "../core/limit.js";
import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import type { Database } from "../postgres/database.js";
import { limitHolders, type LimitHolder } from "../postgres/limit-holders.js";
import { namingOthers, unknownName } from "../postgres/known.js";
import {
  listLimits,
  readLimit,
  removeLimit,
  setLimit,
  type LimitChange,
  type LimitStatus,
} from "../postgres/limits.js";

/** Queries the database, or throws `closed`. */
type Ask = <T>(use: (db: Database) => Promise<T>) => Promise<T>;

/** Which limits to list. There may be as many groups as there are customers, so the list is paged. */
export interface LimitListOptions {
  /** The page size, up to 1,000. Default 100. */
  readonly limit?: number;
  /** Only names after this one, in byte order. */
  readonly after?: string;
  /** Only names with this prefix. */
  readonly prefix?: string;
}

/** How many holders of a limit to list. */
export interface LimitHoldersOptions {
  /** At most this many, up to 1,000. Default 10. */
  readonly limit?: number;
}

const LIST_DEFAULT = 100;
const HOLDERS_DEFAULT = 10;
const LIST_RANGE = { min: 1, max: 1_000 };

/** Reads the numbers in force and lets operators override them. */
export class Limits {
  readonly #ask: Ask;
  readonly #declare: (limit: Limit) => Promise<number>;

  /** @internal */
  constructor(ask: Ask, declare: (limit: Limit) => Promise<number>) {
    this.#ask = ask;
    this.#declare = declare;
  }

  /**
   * Overrides a limit's numbers: immediately, for all processes, and across deploys. Once this returns, no task is
   * admitted above the new number; running tasks may finish. 0 pauses, null lifts the limit, and "declared" restores
   * the number in the code.
   */
  async set(limit: string | Limit, change: LimitChange): Promise<void> {
    checkOptions("limits.set", change, ["total", "perKey"]);
    if (change.total === undefined && change.perKey === undefined) {
      throw new SluiceError("invalid_option", "limits.set needs total, perKey, or both");
    }
    checkChange("total", change.total);
    checkChange("perKey", change.perKey);
    const name = checkName("limit", nameOf(limit));
    await this.#ask(async (db) => {
      if (isLimit(limit)) await this.#declare(limit);
      await namingOthers(db, "limit", name, setLimit(db, name, change));
    });
  }

  /** Returns the limit as it is in force; throws `unknown_limit`. */
  async get(limit: string | Limit): Promise<LimitStatus> {
    const name = checkName("limit", nameOf(limit));
    return this.#ask(async (db) => {
      const found = await readLimit(db, name);
      if (found === undefined) throw await unknownName(db, "limit", name);
      return found;
    });
  }

  /**
   * Returns running tasks that hold a slot of the limit, longest-running first; throws `unknown_limit`. Tasks that hold
   * a slot of a key before they run are not listed: `explain` names them.
   */
  async holders(limit: string | Limit, options: LimitHoldersOptions = {}): Promise<LimitHolder[]> {
    checkOptions("limits.holders", options, ["limit"]);
    const max = checkInteger("limit", options.limit ?? HOLDERS_DEFAULT, LIST_RANGE);
    const { name } = await this.get(limit);
    return this.#ask((db) => limitHolders(db, name, max));
  }

  /**
   * Removes a limit that no code uses any more; tasks that still carry it pass freely. Code that still uses it declares
   * it again at its next start. Returns false if there is no limit with this name.
   */
  async remove(limit: string | Limit): Promise<boolean> {
    const name = checkName("limit", nameOf(limit));
    return this.#ask((db) => removeLimit(db, name));
  }

  /**
   * Returns a page of limits, by name: at most `limit`. For the next page, pass the last name of this one as `after`.
   */
  async list(options: LimitListOptions = {}): Promise<LimitStatus[]> {
    checkOptions("limits.list", options, ["limit", "after", "prefix"]);
    const page = {
      after: options.after === undefined ? "" : checkName("limit", options.after),
      prefix: options.prefix === undefined ? "" : checkName("limit", options.prefix),
      max: checkInteger("limit", options.limit ?? LIST_DEFAULT, LIST_RANGE),
    };
    return this.#ask((db) => listLimits(db, page));
  }
}

function nameOf(limit: string | Limit): unknown {
  return isLimit(limit) ? limit.name : limit;
}

function checkChange(option: string, n: LimitChange["total"]): void {
  if (n === undefined || n === null || n === "declared") return;
  checkInteger(option, n, { min: 0, max: 2_000_000_000 });
}
