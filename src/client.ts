// The entry point for producers: nothing behind it loads a worker, a keeper or an embedded server.
export { Client } from "./client/client.js";
export type { ClientOptions, HistoryOptions, PoolLike } from "./client/settings.js";
export type { PinoLogger } from "./client/logger.js";
export type { Declared } from "./client/declared.js";
export type { TaskDetails, TaskHandle } from "./tasks/handle.js";
export type { Redaction } from "./core/redact.js";
export type { EnqueuedMany, EnqueueManyOptions } from "./tasks/many.js";
export type { Limits } from "./limits/limits.js";
export type { LimitHoldersOptions, LimitListOptions } from "./limits/limits.js";
export type { LimitHolder } from "./postgres/limit-holders.js";
export type { LimitChange, LimitStatus } from "./postgres/limits.js";
export type { QueueListOptions, Queues } from "./operate/queues.js";
export type { QueueSummary, TaskCount } from "./postgres/queues.js";
export type { WorkerListOptions, Workers } from "./operate/workers.js";
export type { WorkerSummary } from "./postgres/workers.js";
export type { PressureReason, PressureState } from "./core/pressure.js";
export type { ScheduleListOptions, ScheduleOptions, Schedules, ScheduleTiming } from "./schedules/schedules.js";
export type { ScheduleStatus } from "./postgres/schedule.js";
export { tickTime } from "./core/schedule.js";
export type {
  ExecutionExplained,
  Explanation,
  Holder,
  QueueExplanation,
  QueueReason,
  Reason,
  ReasonKind,
} from "./core/explanation.js";
export type { FailedAttempt, TaskProgress, TaskStatus } from "./postgres/inspect.js";
export type { CancelAnswer } from "./postgres/cancel.js";

export { task } from "./core/task.js";
export type { HandlerFunction, OrderOptions, TaskContract, TaskHandler, TaskOptions } from "./core/task.js";
export { limit } from "./core/limit.js";
export type { KeyedLimit, Limit, LimitUse, TotalLimit } from "./core/limit.js";
export { type } from "./core/schema.js";
export { exponential, fixed } from "./core/retry.js";
export type { Backoff, ExponentialOptions, RetryPolicy } from "./core/retry.js";
export { isSluiceError, SluiceError } from "./core/error.js";
export type { ErrorCode } from "./core/error.js";
export type { ContextEnqueued, TaskContext } from "./core/context.js";
export type { MapCollected, MapError, MapFunction, MapItems, MapOptions, MapPolicy } from "./core/map.js";
export type { EnqueueOptions } from "./core/enqueue.js";
export type { Logger, Queryable } from "./core/ports.js";
export type { TaskState } from "./core/state.js";

export type { Run } from "./runs/run.js";
export type { RunError, RunNode, RunStatus, RunSummary } from "./runs/status.js";
export type { ItemPage, ItemSearch, RunItem } from "./runs/items.js";
export type { RunPage, RunSearch } from "./runs/list.js";
export type { WorkflowSummary } from "./postgres/workflow/graph.js";
export type { StartOptions } from "./runs/start.js";
export type { RunCancelAnswer } from "./postgres/workflow/control.js";
export type { NodeFailure } from "./postgres/workflow/failures.js";
export type { RunState } from "./postgres/workflow/inspect.js";
export { workflow } from "./workflow/workflow.js";
export type { Workflow, WorkflowOptions } from "./workflow/workflow.js";
export type { EachOptions, Node as WorkflowNode, Scope as WorkflowScope } from "./workflow/scope.js";
export type { Ref, Reference } from "./workflow/ref.js";
export type { Template } from "./workflow/template.js";
export { readGraph } from "./workflow/read.js";
export { graphToMermaid } from "./workflow/mermaid.js";
export { graphToSvg } from "./workflow/svg.js";
export type { Graph, GraphNode } from "./workflow/graph.js";
export type { GraphStatus, NodeState, NodeStatus } from "./workflow/picture.js";
