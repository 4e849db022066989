import { checkInteger } from "../core/number.js";
import { checkOneOf, checkOptions } from "../core/option.js";
import { TASK_STATES, type TaskState } from "../core/state.js";
import type { Database } from "../postgres/database.js";
import { listItems } from "../postgres/workflow/items.js";
import { errorOf, type RunError } from "./status.js";

/** Which items of an `each` to list, in the order of its list. */
export interface ItemSearch {
  readonly state?: TaskState;
  /** The index after which the page begins: `after` of the previous page. */
  readonly after?: number;
  /** The page size, at most 1,000. Default 100. */
  readonly limit?: number;
}

/** One item of an `each`. */
export interface RunItem {
  /** The item's index in the list, from 0. */
  readonly index: number;
  /** The id of its task. */
  readonly task: string;
  readonly state: TaskState;
  /** Why it failed or was cancelled. */
  readonly error: RunError | null;
}

/** A page of items. */
export interface ItemPage {
  readonly items: readonly RunItem[];
  /** Pass as `after` for the next page; null if this was the last one. */
  readonly after: number | null;
}

const INDEX_RANGE = { min: -1, max: 2_147_483_647 };

export async function itemsOf(db: Database, run: string, node: string, search: ItemSearch): Promise<ItemPage> {
  checkOptions("items", search, ["state", "after", "limit"]);
  const { state, after = -1, limit = 100 } = search;
  const { items, next } = await listItems(db, run, node, {
    state: state === undefined ? undefined : checkOneOf("state", state, TASK_STATES),
    after: checkInteger("after", after, INDEX_RANGE),
    max: checkInteger("limit", limit, { min: 1, max: 1_000 }),
  });
  return {
    items: items.map((item) => ({ ...item, error: errorOf(item.state, item.error) })),
    after: next,
  };
}
