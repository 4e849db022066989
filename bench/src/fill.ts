import { makeWorkerUtils, Logger } from "graphile-worker";
import { Sluice, type TaskContract } from "../../src/index.js";
import { inputs, type Input } from "./tasks.js";

/** Does something with a client on a database that gets its schema first. */
export async function withSluice(
  url: string,
  work: (sluice: Sluice) => Promise<void>,
): Promise<void> {
  const sluice = await Sluice.connect({ url, listen: false });
  try {
    await work(sluice);
  } finally {
    await sluice.close();
  }
}

export async function fillTask(
  sluice: Sluice,
  contract: TaskContract<Input, Input>,
  count: number,
): Promise<void> {
  await sluice.enqueueMany(contract, inputs(count));
}

/** Fills graphile-worker's table with jobs of the one type that its process serves. */
export async function fillGraphile(url: string, count: number): Promise<void> {
  const utils = await makeWorkerUtils({ connectionString: url, logger: quiet });
  try {
    await utils.migrate();
    for (let from = 0; from < count; from += BATCH) {
      const size = Math.min(BATCH, count - from);
      await utils.addJobs(
        Array.from({ length: size }, (_, i) => ({ identifier: "plain", payload: { n: from + i } })),
      );
    }
  } finally {
    await utils.release();
  }
}

const BATCH = 1_000;
/** Ours says nothing either. */
export const quiet = new Logger(() => () => {});
