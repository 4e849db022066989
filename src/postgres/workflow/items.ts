import type { TaskState } from "../../core/state.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** One item of an each, and the stored part of why it did not succeed. */
interface ItemStatus {
  readonly index: number;
  readonly task: string;
  readonly state: TaskState;
  readonly error: unknown;
}

/** Items in the order of the list. */
interface ItemsFound {
  readonly items: readonly ItemStatus[];
  /** The index after which to continue; null: there is nothing more. */
  readonly next: number | null;
}

const itemsStatement = statement<ItemsFound>({
  name: "workflow_items",
  text: "select items, next from sluice.workflow_item_page($1, $2, $3, $4, $5, $6)",
  params: ["int8", "text", "text", "int4", "int4", "int4"],
  columns: ["items", "next"],
});

// Maximum number of items searched for one page of items in a given state.
const LOOK_MAX = 10_000;

/**
 * A page of the items of an each, after an index. With a state, it searches only the next 10,000 items, so the page may
 * be empty although there are more.
 */
export function listItems(
  db: Database,
  run: string,
  node: string,
  page: { readonly state?: TaskState | undefined; readonly after: number; readonly max: number },
): Promise<ItemsFound> {
  const { state, after, max } = page;
  return db.one(itemsStatement, [run, node, state ?? null, after, max, LOOK_MAX]);
}
