import { idsOf } from "../../support/sql.js";
import { twoBusyTotals } from "./kept.js";
import { schedule } from "./schedule.js";

const AHEAD_MS = 600_000;

/** Tasks that wait at a full total keep a tenant's slots from others, and the clock has been set back by minutes. */
export const yieldAfterSetBack = schedule({ before: [] as number[], others: [6, 7] }, async (scene) => {
  const [a] = await scene.sessions(1);
  await scene.moveClock(AHEAD_MS);
  const tenant = await a.limit("tenant", { perKey: 2 });
  const pool = await a.limit("pool", { total: 1 });
  const x = await a.type("x", { limits: [tenant, pool] });
  const y = await a.type("y", { limits: [tenant] });
  const worker = await a.register([x, y]);
  await a.keep();
  await scene.moveClock(0);
  await a.enqueue(x, { limits: [tenant, pool], keys: ["other"] });
  await a.claim(worker, 10);
  await a.enqueue(x, { n: 4, limits: [tenant, pool], keys: ["t"] });
  await a.enqueue(y, { n: 2, limits: [tenant], keys: ["t"] });
  const before = idsOf(await a.claim(worker, 10));
  await a.keep();
  await scene.moveClock(600);
  await a.keep();
  return { before, others: idsOf(await a.claim(worker, 10)) };
});

/** A task needs slots of two totals that are never free at once, and the clock is set back while it waits. */
export const keptAfterSetBack = schedule({ first: [9] }, async (scene) => {
  const [a] = await scene.sessions(1);
  await scene.moveClock(AHEAD_MS);
  const { third, turn } = await twoBusyTotals(a);
  await turn();
  await a.keep();
  await scene.moveClock(0);
  await a.keep();
  await scene.moveClock(1_500);
  await a.keep();
  await turn();
  return { first: idsOf(await a.claim(third, 1)) };
});
