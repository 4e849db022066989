import type { Input, Producer, Shape } from "../../adapter.js";
import { Caller } from "../callers-own.js";
import { timeOrderedIds } from "../time-ordered-ids.js";
import { APPLICATION, clientOf, QUEUE, WORKFLOW } from "./names.js";
import { isPartitioned } from "./settings.js";

// As many as its pool has connections.
const IN_FLIGHT = 10;
const BULK_SIZE = 1_000;
const ENQUEUE = `select dbos.enqueue_workflow('${WORKFLOW}', '${QUEUE}', array[t->'input'],
    workflow_id => t->>'id', queue_partition_key => t->>'key', application_name => '${APPLICATION}')
  from json_array_elements($1::json) t`;

/** With its client, one call for each task. */
export async function produceByClient(url: string, shape: Shape): Promise<Producer> {
  const client = await clientOf(url);
  const caller = new Caller(url);
  const optionsOf = ({ key }: Input) => ({
    queueName: QUEUE,
    workflowName: WORKFLOW,
    ...(isPartitioned(shape) ? { queuePartitionKey: key! } : {}),
  });
  const one = async (input: Input): Promise<void> => {
    await client.enqueue(optionsOf(input), input);
  };
  return {
    // An order is the order of the calls, so one after the other.
    enqueueMany: (inputs) => inLanes(shape.ordered === true ? 1 : IN_FLIGHT, inputs, one),
    enqueueOne: one,
    enqueueWith: (input) => caller.with(input.n, (tx) => client.enqueueInTransaction(tx, optionsOf(input), input)),
    close: async () => {
      await caller.close();
      await client.destroy();
    },
  };
}

/** With the function that it installs in the database, many tasks in one statement. */
export async function produceBySql(url: string, shape: Shape): Promise<Producer> {
  const caller = new Caller(url);
  const nextId = timeOrderedIds();
  const keyed = isPartitioned(shape);
  const textOf = (inputs: readonly Input[]): string =>
    JSON.stringify(inputs.map((input) => ({ input, id: nextId(), key: keyed ? input.key! : null })));
  return {
    enqueueMany: async (inputs) => {
      for (let from = 0; from < inputs.length; from += BULK_SIZE)
        await caller.query(ENQUEUE, [textOf(inputs.slice(from, from + BULK_SIZE))]);
    },
    enqueueOne: async (input) => {
      await caller.query(ENQUEUE, [textOf([input])]);
    },
    enqueueWith: (input) => caller.with(input.n, (tx) => tx.query(ENQUEUE, [textOf([input])])),
    close: () => caller.close(),
  };
}

async function inLanes(lanes: number, inputs: readonly Input[], send: (input: Input) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < inputs.length) await send(inputs[next++]!);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
