// The full API: everything in client.js, plus workers.
export * from "./client.js";
export { Sluice } from "./sluice.js";
export type { ConnectOptions } from "./client/settings.js";
export type { MetricsOptions } from "./metrics/options.js";
export type { PressureOptions } from "./worker/pressure/options.js";
export type { Worker, WorkerOptions, WorkerStatus } from "./worker/worker.js";
export { cancel, fail, FatalError, snooze } from "./core/outcome.js";
