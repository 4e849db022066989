import { Sluice } from "../../../src/index.js";
import { nowMs } from "../numbers.js";
import { inputs, kits } from "../tasks.js";
import { argument } from "./serve.js";

const WARM_UP = 2_000;

const { url, count } = argument() as { url: string; count: number };
const { contract } = kits.plain()[0]!;
const sluice = await Sluice.connect({ url, migrate: false, listen: false });
await sluice.enqueueMany(contract, inputs(WARM_UP));

const beganMs = nowMs();
await sluice.enqueueMany(contract, inputs(count));
const ms = nowMs() - beganMs;

await sluice.close();
process.send?.({ ms }, () => process.disconnect());
