import { makeWorkerUtils } from "graphile-worker";
import { quiet } from "../fill.js";
import { nowMs } from "../numbers.js";
import { inputs, type Input } from "../tasks.js";
import { argument } from "./serve.js";

const WARM_UP = 2_000;
const BATCH = 1_000;

const { url, count } = argument() as { url: string; count: number };
const utils = await makeWorkerUtils({ connectionString: url, logger: quiet });
await add(inputs(WARM_UP));

const beganMs = nowMs();
await add(inputs(count));
const ms = nowMs() - beganMs;

await utils.release();
process.send?.({ ms }, () => process.disconnect());

async function add(all: Iterable<Input>): Promise<void> {
  let batch: { identifier: string; payload: Input }[] = [];
  for (const payload of all) {
    batch.push({ identifier: "plain", payload });
    if (batch.length < BATCH) continue;
    await utils.addJobs(batch);
    batch = [];
  }
  if (batch.length > 0) await utils.addJobs(batch);
}
