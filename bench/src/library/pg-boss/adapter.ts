import { PgBoss, type ConstructorOptions, type JobInsert } from "pg-boss";
import type { Adapter, Consumer, Consumption, Input, Producer, Shape } from "../../adapter.js";
import { askNumber } from "../ask.js";
import { Caller, makeCallersTable } from "../callers-own.js";
import { timeOrderedIds } from "../time-ordered-ids.js";
import type { Crew, Settings } from "./settings.js";

type Options = Pick<JobInsert, "id" | "singletonKey" | "group">;

const QUEUE = "plain";
const EVERYONE = "everyone";
// Of a process that only sends, its docs advise to leave the upkeep to others.
const SENDER: ConstructorOptions = { supervise: false, schedule: false, migrate: false };
const UNFINISHED = `select count(*)::int as n from (
  select from pgboss.job where name = '${QUEUE}' and state < 'completed' limit 1) x`;
const COMPLETED = `select count(*)::int as n from pgboss.job
  where name = '${QUEUE}' and state = 'completed'`;

export function adapterOf(settings: Settings): Adapter {
  return {
    install: (url, shape) => install(settings, url, shape),
    produce: (url, shape) => produce(settings, url, shape),
    consume: (url, consumption) => consume(settings, url, consumption),
    unfinished: (url) => askNumber(url, UNFINISHED),
    verify: async (url, _shape, total) => {
      const completed = await askNumber(url, COMPLETED);
      if (completed !== total) throw new Error(`${completed} of ${total} jobs are completed`);
    },
  };
}

async function install({ queue }: Settings, url: string, { ordered }: Shape): Promise<void> {
  const boss = await started({ connectionString: url, supervise: false, schedule: false });
  const policy = ordered === true ? { policy: "key_strict_fifo" } : {};
  await boss.createQueue(QUEUE, { ...queue, ...policy });
  await boss.stop();
  await makeCallersTable(url);
}

async function produce(settings: Settings, url: string, shape: Shape): Promise<Producer> {
  const boss = await started({ connectionString: url, ...SENDER });
  const caller = new Caller(url);
  const nextId = settings.ownIds ? timeOrderedIds() : null;
  const optionsOf = (input: Input): Options => ({
    ...(nextId === null ? {} : { id: nextId() }),
    ...keysOf(shape, input),
  });
  return {
    enqueueMany: (inputs) => insertAll(boss, settings.bulkSize, inputs, optionsOf),
    enqueueOne: async (input) => {
      await boss.send(QUEUE, input, optionsOf(input));
    },
    enqueueWith: (input) =>
      caller.with(input.n, (tx) => {
        const db = { executeSql: (text: string, values?: unknown[]) => tx.query(text, values) };
        return boss.send(QUEUE, input, { ...optionsOf(input), db });
      }),
    close: async () => {
      await caller.close();
      await boss.stop();
    },
  };
}

/** Order goes by singleton key, a limit by group: one of each key, or one of all. */
function keysOf({ ordered, limit, limitPerKey }: Shape, { key }: Input): Options {
  const group = limitPerKey !== undefined ? key! : limit !== undefined ? EVERYONE : null;
  return {
    ...(ordered === true ? { singletonKey: key! } : {}),
    ...(group === null ? {} : { group: { id: group } }),
  };
}

async function insertAll(
  boss: PgBoss,
  bulkSize: number,
  inputs: readonly Input[],
  optionsOf: (input: Input) => Options,
): Promise<void> {
  for (let from = 0; from < inputs.length; from += bulkSize) {
    const some = inputs.slice(from, from + bulkSize);
    await boss.insert(
      QUEUE,
      some.map((data) => ({ data, ...optionsOf(data) })),
    );
  }
}

async function consume({ worker, crew: crewOf }: Settings, url: string, consumption: Consumption): Promise<Consumer> {
  const crew = crewOf(consumption);
  const boss = await started({ connectionString: url, ...worker });
  await warm(boss, crew.workers);
  return {
    start: async () => {
      for (let i = 0; i < crew.workers; i++) await work(boss, crew, consumption);
    },
    stop: () => boss.stop(),
  };
}

async function work(boss: PgBoss, crew: Crew, { shape, work: run }: Consumption): Promise<void> {
  const { limit, limitPerKey } = shape;
  const groupConcurrency = limitPerKey ?? limit;
  const options = {
    ...crew.options,
    ...(groupConcurrency === undefined ? {} : { groupConcurrency }),
  };
  const id: string = await boss.work<Input>(QUEUE, options, async (jobs) => {
    const running: Promise<void>[] = [];
    for (const { data } of jobs) {
      const ran = run(data);
      if (ran !== undefined) running.push(ran);
    }
    if (running.length > 0) await Promise.all(running);
    if (crew.eager) boss.notifyWorker(id);
  });
}

/** So that the first batch does not wait for connections. */
async function warm(boss: PgBoss, connections: number): Promise<void> {
  const db = boss.getDb();
  await Promise.all(Array.from({ length: connections }, () => db.executeSql("select 1")));
}

async function started(options: ConstructorOptions): Promise<PgBoss> {
  const boss = new PgBoss(options);
  boss.on("error", ({ message }) => console.error(`pg-boss: ${message}`));
  await boss.start();
  return boss;
}
