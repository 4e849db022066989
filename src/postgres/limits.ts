import type { Slots } from "../core/limit.js";
import type { Database } from "./database.js";
import { UNLIMITED } from "./declare.js";
import { statement } from "./statement.js";

/** For set_limit: drop the override, so that the declared number counts again. */
const DECLARED = -1;

const setLimitStatement = statement<{ set_limit: string }>({
  name: "set_limit",
  text: "select sluice.set_limit($1, $2, $3)",
  params: ["text", "int4", "int4"],
  columns: ["set_limit"],
});

// Reads at most 10,000 keys of a limit per key. The last Unicode character ends the range of a prefix.
const limitStatement = statement<LimitRow>({
  name: "limits",
  text: `select l.name, l.total_declared, l.total_override, l.per_key_declared, l.per_key_override,
      (select g.used - coalesce((select sum(c.n) from sluice.credit c where c.gate = g.id), 0) from sluice.gate g where g.id = l.id)::int as used,
      k.keys, k.used_max, k.used_in_all
    from (
      (select x.* from sluice.limits x where x.name = $1)
      union all
      (select x.* from sluice.limits x where $1::text is null and x.name > $2 and x.name >= $3
        and x.name <= $3 || chr(1114111) order by x.name limit $4)
    ) l cross join lateral (
      select count(*)::int as keys, coalesce(max(n.used), 0) as used_max, coalesce(sum(n.used), 0)::int as used_in_all
      from (select x.used from sluice.lane x where l.per_key_declared is not null and x.limit_id = l.id
        and x.limit_id > 0 and x.used > 0 limit 10000) n) k
    order by l.name`,
  params: ["text", "text", "text", "int8"],
  columns: [
    "name",
    "total_declared",
    "total_override",
    "per_key_declared",
    "per_key_override",
    "used",
    "keys",
    "used_max",
    "used_in_all",
  ],
});

interface LimitRow {
  readonly name: string;
  readonly total_declared: number | null;
  readonly total_override: number | null;
  readonly per_key_declared: number | null;
  readonly per_key_override: number | null;
  /** Slots in use of the total; null without a total. */
  readonly used: number | null;
  readonly keys: number;
  readonly used_max: number;
  readonly used_in_all: number;
}

/** Changes to a limit: a number, null for no limit, "declared" to drop the override. */
export interface LimitChange {
  readonly total?: Slots | "declared" | undefined;
  readonly perKey?: Slots | "declared" | undefined;
}

/** A limit in force. undefined: it has no such part; null: no limit. */
export interface LimitStatus {
  readonly name: string;
  readonly total: Slots | undefined;
  readonly perKey: Slots | undefined;
  readonly overridden: boolean;
  /** The numbers in code, which count where no operator has set another. */
  readonly declared: { readonly total: Slots | undefined; readonly perKey: Slots | undefined };
  /** Slots in use: of the total, or of all keys together if there is no total. At most 10,000 keys are counted. */
  readonly used: number;
  /**
   * Number of keys with slots in use, counted up to 10,000; undefined without a perKey. A key's slots are taken before
   * the task starts.
   */
  readonly keysInUse: number | undefined;
  /** The most slots that a single key uses, to compare with perKey; undefined without a perKey. */
  readonly usedMax: number | undefined;
}

const shedStatement = statement<{ shed: number }>({
  name: "shed",
  text: "select shed from sluice.shed()",
  params: [],
  columns: ["shed"],
});

/** Stores the operator's number. It is in force after the first statement: nothing is admitted above it any more. */
export async function setLimit(db: Database, name: string, change: LimitChange): Promise<void> {
  await db.run(setLimitStatement, [name, changed(change.total), changed(change.perKey)]);
  // Tasks that hold slots above a lowered number without running make room for tasks that may run. The number is in
  // force even if this fails: the keeper sheds every second.
  await db.run(shedStatement, []).catch(() => {});
}

/** Which limits to list: the first `max` by name after `after` whose name begins with `prefix`. */
interface LimitPage {
  readonly after: string;
  readonly prefix: string;
  readonly max: number;
}

/** The limit with this name, if it exists. */
export async function readLimit(db: Database, name: string): Promise<LimitStatus | undefined> {
  return (await db.run(limitStatement, [name, "", "", 1])).map(statusOf)[0];
}

export async function listLimits(db: Database, page: LimitPage): Promise<LimitStatus[]> {
  return (await db.run(limitStatement, [null, page.after, page.prefix, page.max])).map(statusOf);
}

function statusOf(row: LimitRow): LimitStatus {
  return {
    name: row.name,
    total: effective(row.total_override, row.total_declared),
    perKey: effective(row.per_key_override, row.per_key_declared),
    overridden: row.total_override !== null || row.per_key_override !== null,
    declared: {
      total: effective(null, row.total_declared),
      perKey: effective(null, row.per_key_declared),
    },
    used: row.used ?? row.used_in_all,
    keysInUse: row.per_key_declared === null ? undefined : row.keys,
    usedMax: row.per_key_declared === null ? undefined : row.used_max,
  };
}

function changed(n: Slots | "declared" | undefined): number | null {
  if (n === undefined) return null;
  return n === "declared" ? DECLARED : (n ?? UNLIMITED);
}

function effective(override: number | null, declared: number | null): Slots | undefined {
  if (declared === null) return undefined;
  const n = override ?? declared;
  return n === UNLIMITED ? null : n;
}

const removeLimitStatement = statement<{ removed: boolean }>({
  name: "remove_limit",
  text: "select sluice.remove_limit($1) as removed",
  params: ["text"],
  columns: ["removed"],
});

/** Removes a limit and all its data. False if there is no limit with this name. */
export async function removeLimit(db: Database, name: string): Promise<boolean> {
  return (await db.one(removeLimitStatement, [name])).removed;
}
