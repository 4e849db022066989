import { loadVariant } from "../library/all.js";
import { Counter } from "./counter.js";
import { handlerOf } from "./handler.js";
import type { WorkSpec } from "./messages.js";
import { argument, serve } from "./serve.js";
import { Watch } from "./watch.js";

// A process that runs tasks with one library in one of its variants.
const spec = argument() as WorkSpec;
const counter = new Counter(spec.total);
const watch = spec.watch ? new Watch(spec.total) : null;
const { adapter } = await loadVariant(spec.library, spec.variant);
const consumer = await adapter.consume(spec.url, {
  shape: spec.shape,
  permits: spec.permits,
  latency: spec.work === "latency",
  work: handlerOf(spec.work, counter, watch),
  numbers: spec.numbers,
});

serve({
  report: () => ({
    ...counter.report(),
    claims: consumer.claims?.() ?? 0,
    ledger: watch?.ledger() ?? null,
  }),
  go: () => {
    counter.go();
    return consumer.start();
  },
  stop: () => consumer.stop(),
});
