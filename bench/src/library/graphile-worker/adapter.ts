import { Logger, makeWorkerUtils, run, type Runner, type WorkerUtils } from "graphile-worker";
import type { Adapter, Consumer, Consumption, Input, Producer, Shape } from "../../adapter.js";
import { askNumber } from "../ask.js";
import { Caller, makeCallersTable } from "../callers-own.js";
import type { Settings } from "./settings.js";

const TASK = "plain";
// What its docs advise where there is no worker's helper at hand: its SQL function.
const ADD_JOB = "select graphile_worker.add_job($1, $2::json)";
const JOBS = "select count(*)::int as n from (select from graphile_worker._private_jobs limit 1) x";
// As ours: silent.
const logger = new Logger(() => () => {});
// Long before any job that has no time of its own.
const EPOCH_MS = Date.UTC(2020, 0, 1);

export function adapterOf(settings: Settings): Adapter {
  return {
    install,
    produce: (url, shape) => produce(settings, url, shape),
    consume: (url, consumption) => consume(settings, url, consumption),
    unfinished: (url) => askNumber(url, JOBS),
  };
}

async function install(url: string): Promise<void> {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  await utils.release();
  await makeCallersTable(url);
}

async function produce(settings: Settings, url: string, shape: Shape): Promise<Producer> {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  const caller = new Caller(url);
  return {
    enqueueMany: (inputs) => addAll(utils, settings, shape, inputs),
    enqueueOne: async (input) => {
      await utils.addJob(TASK, input, optionsOf(settings, shape, input));
    },
    enqueueWith: (input) => caller.with(input.n, (tx) => tx.query(ADD_JOB, [TASK, JSON.stringify(input)])),
    close: async () => {
      await caller.close();
      await utils.release();
    },
  };
}

async function addAll(utils: WorkerUtils, settings: Settings, shape: Shape, inputs: readonly Input[]): Promise<void> {
  for (let from = 0; from < inputs.length; from += settings.bulkSize) {
    const some = inputs.slice(from, from + settings.bulkSize);
    await utils.addJobs(
      some.map((payload) => ({
        identifier: TASK,
        payload,
        ...optionsOf(settings, shape, payload),
      })),
    );
  }
}

/** A named queue runs one job at a time. */
function optionsOf({ spaced }: Settings, { ordered }: Shape, input: Input) {
  if (ordered !== true) return {};
  const runAt = spaced ? { runAt: new Date(EPOCH_MS + input.n) } : {};
  return { queueName: input.key!, ...runAt };
}

async function consume(settings: Settings, url: string, { shape, permits, work }: Consumption): Promise<Consumer> {
  const preset = { ...settings.preset, ...(shape.ordered === true ? settings.ordered : {}) };
  const concurrency = permits === null ? {} : { concurrentJobs: permits };
  let runner: Runner | undefined;
  return {
    start: async () => {
      runner = await run({
        connectionString: url,
        noHandleSignals: true,
        taskList: { [TASK]: async (payload) => work(payload as Input) },
        parsedCronItems: [],
        preset: { worker: { ...preset, ...concurrency, connectionString: url, logger } },
      });
    },
    stop: async () => runner?.stop(),
  };
}
