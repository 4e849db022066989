// The end of a run: everything is put back, all tasks come to their end, and what is left is told.
import { setTimeout as delay } from "node:timers/promises";
import type { Unstamped } from "./stage.js";
import { wrongEffects } from "./accepted.js";
import type { Deadlocks } from "./server/errors.js";
import { flowsAtRest, openFlows } from "./flows.js";
import { allTypesOf, parts } from "./load/parts.js";
import { contracts, groups, QUEUES, terms } from "./load/terms.js";
import type { Theatre } from "./theatre.js";

const LOOK_EVERY_MS = 100;
// Nothing has moved for so long: it never will.
const STUCK_MS = 30_000;
const REST_MS_MAX = 300_000;
const WRONG_MAX = 100;

/** Numbers and queues as they were at the beginning, whatever faults have left behind. */
export async function putBack({ sluice, sql, log, clock }: Theatre): Promise<void> {
  await clock.catchUp();
  await untilUnchanged(sql);
  const found = new Map((await sluice.limits.list()).map((limit) => [limit.name, limit]));
  for (const [limit, slots] of Object.entries(terms.limits)) {
    const [name, keyed] = limit.split("/") as [string, string?];
    if (found.get(name)?.overridden === false) continue;
    await log.write([{ kind: "changing", limit, slots }]);
    // One that was removed is declared again.
    if (!found.has(name)) await sluice.sync([...groups, ...Object.values(contracts), ...Object.values(parts)]);
    await sluice.limits.set(name, { [keyed === undefined ? "total" : "perKey"]: "declared" });
    await log.write([{ kind: "changed", limit, slots }]);
  }
  for (const queue of QUEUES) {
    await log.write([{ kind: "resuming", types: allTypesOf(queue) }]);
    await sluice.resume(queue);
    await log.write([{ kind: "resumed", types: allTypesOf(queue) }]);
  }
}

/**
 * Waits for changes whose sender was cut off: the server goes on with them, and one that waits for the barrier
 * would come after what is put back, and stay.
 */
export async function untilUnchanged(sql: Theatre["sql"]): Promise<void> {
  for (;;) {
    const { rows } = await sql.query<{ n: number }>(CHANGING);
    if (rows[0]!.n === 0) return;
    await delay(LOOK_EVERY_MS);
  }
}

const CHANGING = `select count(*)::int as n from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()
  and datname = current_database() and query ~ '[.](set_limit|remove_limit|pause_queue|workflow_pause|workflow_window)'`;

/** Waits until no task is left to run. False if they do not come to an end. */
export async function untilOver({ sluice, sql }: Theatre, told: (left: number) => void) {
  const end = performance.now() + REST_MS_MAX;
  let [last, movedMs] = ["", performance.now()];
  for (;;) {
    const counts = await sluice.counts();
    const left = counts.scheduled + counts.waiting + counts.ready + counts.running;
    const flows = await openFlows(sql);
    told(left + flows);
    if (left + flows === 0) return true;
    const state = JSON.stringify([counts, flows]);
    if (state !== last) [last, movedMs] = [state, performance.now()];
    const now = performance.now();
    if (now > end || now - movedMs > STUCK_MS) return false;
    await delay(LOOK_EVERY_MS);
  }
}

/** What the database holds when everybody has gone. */
export async function lookAtRest({ sluice, sql, log, server }: Theatre): Promise<void> {
  const limits = await sluice.limits.list();
  const held = limits.flatMap(({ name, total, perKey, used, usedMax }): Unstamped[] => [
    ...(total === undefined ? [] : [{ kind: "held", limit: name, slots: used } as const]),
    ...(perKey === undefined ? [] : [{ kind: "held", limit: `${name}/*`, slots: usedMax ?? 0 } as const]),
  ]);
  const wrong = [
    ...(await rowsOf(sql, "select v::text as what from sluice.violation v")),
    ...(await rowsOf(sql, NOT_OVER)),
    ...(await wrongEffects(sql)),
    ...unprovoked(await server.deadlocks()),
  ];
  await log.write([
    ...held,
    ...(await flowsAtRest(sql)),
    ...wrong.slice(0, WRONG_MAX).map((what) => ({ kind: "wrong", what }) as const),
  ]);
}

/** The engine's statements take their locks in one order: none of them waits for another in a circle. */
export function unprovoked({ others, first }: Deadlocks): string[] {
  return others === 0 ? [] : [`${others} deadlocks without a fault that provoked them, first ${first[0]}`];
}

const NOT_OVER = `select 'task ' || t.id || ' of ' || s.type || ' is in no final state' as what
  from sluice.task t join sluice.stream s on s.id = t.stream
  where not exists (select from sluice.done d where d.id = t.id)`;

async function rowsOf(sql: Theatre["sql"], text: string): Promise<string[]> {
  const { rows } = await sql.query<{ what: string }>(`${text} limit ${WRONG_MAX}`);
  return rows.map(({ what }) => what);
}
