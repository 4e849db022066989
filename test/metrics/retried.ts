import { task, type, type Worker } from "../../src/index.js";
import { ended, scene, until } from "../flow/scene.js";

/** A worker that has run one task of type "job", whose first attempt failed. */
export async function retriedOnce(terms: { readonly concurrency?: number }): Promise<Worker> {
  const s = await scene();
  const job = task("job", { input: type<number>(), ...terms, retry: { attempts: 2 } });
  let runs = 0;
  const handler = job.handle(() => {
    if (++runs === 1) throw new Error("again");
  });
  const worker = await s.worker({ handlers: [handler] });
  await s.sluice.enqueue(job, 1);
  await ended(s, 1);
  await until("both claims to be told", () => worker.status().acquired === 2);
  return worker;
}
