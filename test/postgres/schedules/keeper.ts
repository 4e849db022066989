import type { Session } from "../../support/sql.js";
import { schedule } from "./schedule.js";

interface Look {
  readonly leads: boolean;
  readonly next_ms: number;
}

/** One check of the keeper with this id, whose worker listens for notifications. */
export async function look(session: Session, keeper: number): Promise<Look> {
  const text = "select leads, next_ms from sluice.keeper_poll($1, 2500, 1000, 100)";
  return (await session.rows<{ leads: boolean; next_ms: number }>(text, [keeper]))[0]!;
}

const promised = (session: Session): Promise<number> =>
  session.value<number>("select extract(epoch from next_at)::float8 from sluice.keeper");

/** The leader checks again before its time. Sessions that have read its next check time rely on it. */
export const earlyLook = schedule({ leads: [true, true], kept: true }, async (scene) => {
  const [a] = await scene.sessions(1);
  await scene.stopClock();
  const first = await look(a, 1);
  const before = await promised(a);
  await scene.stopClock(100);
  const second = await look(a, 1);
  return { leads: [first.leads, second.leads], kept: (await promised(a)) === before };
});

/** A leader that sleeps; tasks that are due before it looks, and after. */
export const dueBeforeTheLook = schedule(
  { soon: ["keep:7"], again: [] as string[], later: [] as string[] },
  async (scene) => {
    const [a, b] = await scene.sessions(2);
    await scene.stopClock();
    const stream = await a.type("t");
    const heard = await b.ear();
    const enqueue = (delayMs: number): Promise<unknown> =>
      a.rows("select from sluice.enqueue_many($1, 0, 1, '1', p_delay_ms => $2)", [stream, delayMs]);
    await look(a, 7);
    await enqueue(2_000);
    const soon = await heard();
    // It checks, and checks again when that task is due.
    await look(a, 7);
    await enqueue(2_300);
    const again = await heard();
    await enqueue(60_000);
    return { soon, again, later: await heard() };
  },
);
