import { DBOS, type DBOSConfig } from "@dbos-inc/dbos-sdk";
import type { Adapter, Consumer, Consumption, Input, Shape } from "../../adapter.js";
import { askNumber } from "../ask.js";
import { makeCallersTable } from "../callers-own.js";
import { APPLICATION, clientOf, logger, QUEUE, WORKFLOW } from "./names.js";
import { produceByClient, produceBySql } from "./produce.js";
import type { Settings } from "./settings.js";

const UNFINISHED = `select count(*)::int as n from (select from dbos.workflow_status
  where queue_name = '${QUEUE}' and status in ('ENQUEUED', 'PENDING', 'DELAYED') limit 1) x`;
const SUCCEEDED = `select count(*)::int as n from dbos.workflow_status
  where queue_name = '${QUEUE}' and status = 'SUCCESS'`;

export function adapterOf(settings: Settings): Adapter {
  return {
    install: (url, shape) => install(settings, url, shape),
    produce: settings.enqueue === "client" ? produceByClient : produceBySql,
    consume: (url, consumption) => consume(settings, url, consumption),
    unfinished: (url) => askNumber(url, UNFINISHED),
    verify: async (url, _shape, total) => {
      const succeeded = await askNumber(url, SUCCEEDED);
      if (succeeded !== total) throw new Error(`${succeeded} of ${total} workflows succeeded`);
    },
  };
}

/** Launching makes its schema. */
async function install({ queue }: Settings, url: string, shape: Shape): Promise<void> {
  DBOS.setConfig(configOf(url));
  await DBOS.launch();
  await DBOS.registerQueue(QUEUE, queue({ shape, permits: null, latency: false }));
  await DBOS.shutdown();
  await makeCallersTable(url);
}

/** Where to launch is to begin: it polls from then on. */
async function consume({ queue }: Settings, url: string, consumption: Consumption): Promise<Consumer> {
  const client = await clientOf(url);
  await client.registerQueue(QUEUE, queue(consumption));
  await client.destroy();
  DBOS.registerWorkflow(async (input: Input) => consumption.work(input), { name: WORKFLOW });
  DBOS.setConfig(configOf(url));
  return { start: () => DBOS.launch(), stop: () => DBOS.shutdown() };
}

function configOf(systemDatabaseUrl: string): DBOSConfig {
  return {
    name: APPLICATION,
    systemDatabaseUrl,
    logger,
    // Else it is a hash of the code, and each process must have an identity of its own.
    applicationVersion: "1",
    executorID: `${APPLICATION}-${process.pid}`,
  };
}
