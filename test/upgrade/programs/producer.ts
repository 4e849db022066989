// node producer.ts PACKAGE URL NAME ROUNDS: enqueues under limits and order keys, and starts runs.
import { setTimeout as sleep } from "node:timers/promises";
import { load, worldOf } from "./world.js";

const [address, url, name, rounds] = process.argv.slice(2) as [string, string, string, string];
const library = await load(address);
const { tasks, workflows } = worldOf(library);
const sluice = await library.Sluice.connect({ url });
for (let n = 0; n < Number(rounds); n++) {
  const input = { key: `${name}-${n % 3}`, n };
  await Promise.all([
    sluice.enqueue(tasks.plain, input),
    sluice.enqueue(tasks.ordered, input),
    sluice.enqueue(tasks.alone, input),
  ]);
  await sluice.enqueueMany(
    tasks.keyed,
    ["a", "b"].map((key) => ({ key, n })),
  );
  if (n % 5 === 0) await sluice.start(workflows.fan, input);
  if (n % 5 === 2) await sluice.enqueue(tasks.mapper, input);
  await sleep(20);
}
await sluice.close();
