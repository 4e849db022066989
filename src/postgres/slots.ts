import type { Database } from "./database.js";
import { statement } from "./statement.js";

/** The slots of a limit at one moment. A limit per key is named `name/*` and shows its fullest key. */
export interface GroupSlots {
  readonly group: string;
  /** null while the limit is lifted. */
  readonly slots: number | null;
  readonly used: number;
  /** Tasks waiting at the limit, if it is full; counted up to 1,000. */
  readonly waiting: number;
}

const slotsStatement = statement<{
  name: string;
  slots: number | null;
  used: number;
  waiting: number;
}>({
  name: "limit_slots",
  text: "select name, slots, used, waiting from sluice.limit_slots($1::text[], $2)",
  params: ["_text", "int4"],
  columns: ["name", "slots", "used", "waiting"],
});

const countStatement = statement<{ limits: number }>({
  name: "limit_count",
  text: "select sluice.limit_count($1) as limits",
  params: ["int4"],
  columns: ["limits"],
});

const namesStatement = statement<{ id: number; name: string }>({
  name: "limit_names",
  text: "select id, name from sluice.limit_names($1::int[])",
  params: ["_int4"],
  columns: ["id", "name"],
});

/** The names of these limits; a removed limit has none. */
export async function readLimitNames(db: Database, limits: readonly number[]): Promise<Map<number, string>> {
  const rows = await db.run(namesStatement, [[...limits]], db.aside);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

// There may be as many groups as the user has customers.
const COUNTED_MAX = 10_000;

/** The slots of some limits, and the number of other limits, counted up to 10,000. */
export interface SlotsReading {
  readonly slots: readonly GroupSlots[];
  readonly omitted: number;
}

/**
 * At most max limits: the named ones, then those with the most running tasks. Does not use the callers' own
 * connections, because callers may wait for this.
 */
export async function readSlots(db: Database, names: readonly string[], max: number): Promise<SlotsReading> {
  const rows = await db.run(slotsStatement, [[...names], max], db.aside);
  const { limits } = await db.one(countStatement, [max + COUNTED_MAX], db.aside);
  return {
    slots: rows.map(({ name, slots, used, waiting }) => ({ group: name, slots, used, waiting })),
    omitted: Math.max(0, limits - max),
  };
}
