// The work of a run: which types of task there are, under which limits, and what a task is told to do.
import { fixed, limit, task, type, type TaskContract, type TotalLimit } from "../../src/index.js";
import type { Claims, Terms } from "../audit/line.js";

export const LEASE_MS = 2_000;
export const RECOVER_MS = 2_000;

/** What a handler does at an attempt, instead of returning after `ms`. */
type Deed = "throw" | "snooze" | "hang";

/** The input of every task: what its producer claims about it, and what its handler is to do. */
export interface Work extends Claims {
  readonly ms: number;
  /** The key of its limit per key; for a type that uses groups, the name of its group. */
  readonly key: string | null;
  /** The key of its second limit per key. */
  readonly otherKey: string | null;
  /** For the first runs that are counted as attempts 1, 2, ...; a run beyond the list returns. */
  readonly deeds: readonly (Deed | null)[];
}

export type WorkContract = TaskContract<Work, Work, string>;

const input = type<Work>();
const output = type<string>();
const key = (work: Work): string => work.key ?? "";
const otherKey = (work: Work): string => work.otherKey ?? "";
const order = { key: (work: Work) => work.orderKey, onFailure: "continue" } as const;
const patient = { attempts: 100, backoff: fixed(50) };

// Numbers that a burst of one type reaches easily, so that every limit is seen at work.
export const tenant = limit("tenant", { perKey: 3 });
export const account = limit("account", { perKey: 2 });
const group = limit("group", { total: 6 });
const pool = limit("pool", { total: 5 });
const vendor = limit("vendor", { total: 7 });
const OWN_SLOTS = 4;
const region = limit("region", { perKey: 3 });
const dock = limit("dock", { total: 4 });
const crane = limit("crane", { total: 3 });

const GROUPS = 240;
/** Hundreds of totals of one or two slots. Each task of the types that use them needs a slot of one. */
export const groups: readonly TotalLimit[] = Array.from({ length: GROUPS }, (_, n) =>
  limit(`crowd-${String(n + 1).padStart(3, "0")}`, { total: n % 3 === 0 ? 2 : 1 }),
);
const groupOf = new Map(groups.map((one) => [one.name, one]));
const grouped = { limits: (work: Work) => [groupOf.get(key(work))!] };

/** Half of the types live in a queue of their own, which can be paused. */
export const QUEUES = ["default", "side"] as const;
const side = { queue: QUEUES[1] };
const common = { input, output, retry: patient };

export const contracts = {
  plain: task("plain", common),
  bulk: task("bulk", { ...common, ...side }),
  ordered: task("ordered", { ...common, order }),
  keyed: task("keyed", { ...common, limits: [{ limit: tenant, key }] }),
  left: task("left", { ...common, limits: [group] }),
  right: task("right", { ...common, ...side, limits: [group] }),
  own: task("own", { ...common, concurrency: OWN_SLOTS }),
  gates: task("gates", { ...common, order, limits: [{ limit: account, key }, pool, vendor] }),
  sold: task("sold", { ...common, ...side, limits: [vendor] }),
  retried: task("retried", { ...common, retry: { attempts: 3, backoff: fixed(30) } }),
  snoozed: task("snoozed", { ...common, ...side }),
  timed: task("timed", {
    ...common,
    ...side,
    timeoutMs: 150,
    retry: { attempts: 3, backoff: fixed(30) },
  }),
  later: task("later", { ...common, ...side }),
  posted: task("posted", common),
  booked: task("booked", { ...common, order, limits: [pool] }),
  crossed: task("crossed", {
    ...common,
    limits: [
      { limit: tenant, key },
      { limit: region, key: otherKey },
    ],
  }),
  metered: task("metered", { ...common, limits: [{ limit: tenant, key }, crane] }),
  local: task("local", { ...common, ...side, limits: [{ limit: region, key }] }),
  paired: task("paired", { ...common, limits: [dock, crane] }),
  docked: task("docked", { ...common, ...side, limits: [dock] }),
  lifted: task("lifted", { ...common, limits: [crane] }),
  grouped: task("grouped", { ...common, ...grouped }),
  herded: task("herded", { ...common, ...side, ...grouped }),
} satisfies Record<string, WorkContract>;

/** Each task of these uses one of the groups. */
export const groupTypes: readonly TypeName[] = ["grouped", "herded"];

/**
 * Every other worker serves no `paired` tasks, and the others none of those that share its limits: so slots of a total
 * pass between workers that do not serve the same types.
 */
const UNSERVED: readonly (readonly TypeName[])[] = [["paired"], ["docked", "lifted"]];

/** The types that the n-th of so many workers does not serve. A worker that is alone serves all. */
export function unservedBy(n: number, workers: number): readonly TypeName[] {
  return workers === 1 ? [] : UNSERVED[n % UNSERVED.length]!;
}

/** These complete in a transaction. */
export const transactional: readonly string[] = ["posted", "booked", "sealed"];

export type TypeName = keyof typeof contracts;
export const typeNames = Object.keys(contracts) as TypeName[];

/** Every limit that counts a task, as the log names them. A type's own limit goes by its name: a fault may give it one. */
export function limitsOf(name: TypeName, key: string | null, otherKey: string | null = null): string[] {
  if (groupTypes.includes(name)) return [...(key === null ? [] : [key]), name];
  return slotsOf(contracts[name], key, otherKey);
}

/** How many of its limits have keys. */
export function keysOf({ limitList }: Pick<WorkContract, "limitList">): number {
  return (limitList ?? []).filter(({ limit }) => limit.perKey !== undefined).length;
}

export function slotsOf(
  { type, limitList }: Pick<WorkContract, "type" | "limitList">,
  key: string | null,
  otherKey: string | null = null,
): string[] {
  const keys = [key, otherKey];
  const uses = (limitList ?? []).map(({ limit }) =>
    limit.perKey === undefined ? limit.name : `${limit.name}/${keys.shift()}`,
  );
  return [...new Set([...uses, type])];
}

/** The types of a queue. */
export function typesOf(queue: string): TypeName[] {
  return typeNames.filter((name) => contracts[name].queue === queue);
}

export const terms: Terms = {
  leaseMs: LEASE_MS,
  recoverMs: RECOVER_MS,
  limits: {
    "tenant/*": 3,
    "account/*": 2,
    group: 6,
    pool: 5,
    vendor: 7,
    own: OWN_SLOTS,
    "region/*": 3,
    dock: 4,
    crane: 3,
    ...Object.fromEntries(groups.map(({ name, total }) => [name, total!])),
  },
};
