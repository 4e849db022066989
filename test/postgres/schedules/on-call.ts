import type { Session, TestWorker } from "../../support/sql.js";
import { schedule } from "./schedule.js";

const RINGS = 10;
const RESERVE = 20;

export const onCallMax = (session: Session): Promise<number> => session.value("select sluice.on_call_max()");

export const onCall = (session: Session): Promise<number> =>
  session.value("select count(*)::int from sluice.worker where on_call_since is not null");

const isOnCall = (session: Session, { id }: TestWorker): Promise<boolean> =>
  session.value("select sluice.is_on_call($1)", [id]);

const goOnCall = (session: Session, { id }: TestWorker): Promise<boolean> =>
  session.value("select on_call from sluice.go_on_call($1)", [id]);

/** Workers of one kind, all asleep, that registered one after the other. */
export async function sleepers(session: Session, stream: number, count: number): Promise<TestWorker[]> {
  const workers: TestWorker[] = [];
  for (let i = 0; i < count; i++) workers.push(await session.register([stream]));
  await session.rows("update sluice.worker set asleep = true where streams = $1", [[stream]]);
  return workers;
}

/** Many workers are idle, and only one of them is on call. */
export const ringBesideReserve = schedule({ reached: RINGS }, async (scene) => {
  const [a, b] = await scene.sessions(2);
  const stream = await a.type("t");
  const [first, ...others] = await sleepers(a, stream, (await onCallMax(a)) + RESERVE);
  const busy = others.slice(0, (await onCallMax(a)) - 1).map(({ id }) => id);
  await a.rows("update sluice.worker set asleep = false where id = any ($1)", [busy]);
  const heard = await b.ear();
  for (let i = 0; i < RINGS; i++) await a.enqueue(stream);
  const rings = await heard();
  return { reached: rings.filter((ring) => ring === `wake:${first!.id}:1`).length };
});

/** One more worker asks for a place on call: while all are idle, and when one of them has tasks in flight. */
export const reliefOfTheBusy = schedule(
  { whileIdle: false, whileBusy: true, relieved: true, onCallAsBefore: true },
  async (scene) => {
    const [a] = await scene.sessions(1);
    const stream = await a.type("t");
    const max = await onCallMax(a);
    const workers = await sleepers(a, stream, max + 1);
    await a.rows("update sluice.worker set on_call_since = on_call_since - interval '2 seconds'");
    const [busy, last] = [workers[1]!, workers[max]!];
    const whileIdle = await goOnCall(a, last);
    await a.rows("select from sluice.beat($1, 99, 0, false, p_busy => true)", [busy.id]);
    const whileBusy = await goOnCall(a, last);
    const relieved = !(await isOnCall(a, busy));
    return { whileIdle, whileBusy, relieved, onCallAsBefore: (await onCall(a)) === max };
  },
);
