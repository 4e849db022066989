import { Logger, run, type Runner } from "graphile-worker";
import { nowMs } from "../numbers.js";
import { Counter } from "./counter.js";
import { serve, argument } from "./serve.js";

/** One process with one graphile-worker. */
export interface GraphileSpec {
  readonly url: string;
  readonly total: number;
  readonly preset: GraphileConfig.WorkerOptions;
  readonly latency: boolean;
}

const spec = argument() as GraphileSpec;
const counter = new Counter(spec.total);
// As ours: silent.
const logger = new Logger(() => () => {});
let runner: Runner | undefined;

serve({
  counter,
  go: async () => {
    runner = await run({
      connectionString: spec.url,
      noHandleSignals: true,
      taskList: { plain: spec.latency ? timed : nothing },
      parsedCronItems: [],
      preset: { worker: { ...spec.preset, connectionString: spec.url, logger } },
    });
  },
  stop: async () => runner?.stop(),
});

async function nothing(): Promise<void> {
  counter.begin();
  counter.end();
}

async function timed(payload: unknown): Promise<void> {
  counter.latency(nowMs() - (payload as { atMs: number }).atMs);
  counter.begin();
  counter.end();
}
