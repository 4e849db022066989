// The full API: everything in client.js, plus workers.
export * from "./client.js";
export { Sluice } from "./sluice.js";
export type { ConnectOptions } from "./client/settings.js";
export type { MetricsOptions } from "./metrics/options.js";
export type { PressureOptions } from "./worker/pressure/options.js";
export type { Worker, WorkerOptions, WorkerStatus } from "./worker/worker.js";
export type {
  CancelledEvent,
  FailedEvent,
  LimitFullEvent,
  RetryingEvent,
  SluiceEventName,
  SluiceEvents,
  StalledEvent,
  SucceededEvent,
} from "./worker/events.js";
export type { Middleware } from "./worker/middleware.js";
export { cancel, fail, FatalError, isThrownOutcome as isOutcome, snooze } from "./core/outcome.js";
