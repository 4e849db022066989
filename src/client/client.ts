import type { EnqueueArgs, EnqueueOptions } from "../core/enqueue.js";
import { isSluiceError, SluiceError } from "../core/error.js";
import type { Explanation, QueueExplanation } from "../core/explanation.js";
import { checkName } from "../core/name.js";
import type { TaskState } from "../core/state.js";
import type { TaskTerms } from "../core/terms.js";
import { explainQueue, explainTask } from "../explain/explain.js";
import { Limits } from "../limits/limits.js";
import { Queues } from "../operate/queues.js";
import { Workers } from "../operate/workers.js";
import { cancel, retry, unblock } from "../postgres/cancel.js";
import { Database } from "../postgres/database.js";
import { counts, inspect, inspectAttempts, inspectInput } from "../postgres/inspect.js";
import { namingOthers } from "../postgres/known.js";
import { pauseQueue } from "../postgres/pause.js";
import { listWorkflows, newestGraph, type WorkflowSummary } from "../postgres/workflow/graph.js";
import { runServicesOf } from "../runs/services.js";
import { searchRuns, type RunPage, type RunSearch } from "../runs/list.js";
import { Run, type RunServices } from "../runs/run.js";
import { startNamed, startRun, type StartOptions } from "../runs/start.js";
import { Schedules } from "../schedules/schedules.js";
import type { Batcher } from "../tasks/batcher.js";
import { Declarations } from "../tasks/declarations.js";
import { ended } from "../tasks/ended.js";
import { batcherOf, enqueueOne, type EnqueueServices } from "../tasks/enqueue.js";
import { TaskHandle, type TaskDetails, type TaskServices } from "../tasks/handle.js";
import { enqueueMany, type EnqueuedMany, type EnqueueManyOptions } from "../tasks/many.js";
import { UnservedWarning } from "../tasks/unserved.js";
import { watchTask, watchThrough } from "../tasks/watch.js";
import type { Graph } from "../workflow/graph.js";
import type { Workflow } from "../workflow/workflow.js";
import { open, type Connection } from "./connect.js";
import { sortDeclared, type Declared } from "./declared.js";
import type { ClientOptions } from "./settings.js";

/** Enqueues tasks, inspects them and controls them. Contains no worker, so a producer does not load one. */
export class Client {
  readonly limits: Limits;
  readonly queues: Queues;
  readonly workers: Workers;
  readonly schedules: Schedules;
  /** @internal */
  protected readonly connection: Connection;
  /** @internal */
  protected readonly services: EnqueueServices;
  /** @internal */
  protected readonly declarations: Declarations;

  readonly #runServices: RunServices;
  readonly #batcher: Batcher;
  readonly #unserved: UnservedWarning;

  /** Call `connect` instead. */
  protected constructor(connection: unknown) {
    this.connection = checkConnection(connection);
    const { db, log, settings } = this.connection;
    this.#unserved = new UnservedWarning(db, log);
    this.declarations = new Declarations(db);
    this.limits = new Limits(
      (use) => this.#ask(() => use(db)),
      (limit) => this.declarations.limit(limit),
    );
    this.queues = new Queues((use) => this.#ask(() => use(db)));
    this.workers = new Workers((use) => this.#ask(() => use(db)));
    const { payloadBytesMax, idempotencyMs, tracing } = settings;
    this.services = { db, declarations: this.declarations, payloadBytesMax, idempotencyMs, tracing };
    this.#batcher = batcherOf(this.services);
    this.#runServices = runServicesOf((question) => this.#ask(question), payloadBytesMax);
    this.schedules = new Schedules(
      (use) => this.#ask(() => use(this.services)),
      (id) => this.task(id),
    );
  }

  static async connect(options: ClientOptions = {}): Promise<Client> {
    return new Client(await open(options));
  }

  /**
   * Enqueues one task. With `tx`, the task exists if and only if the caller's transaction commits; that transaction may
   * stay open for minutes without blocking a worker.
   */
  async enqueue<Input, Output>(
    task: TaskTerms<Input, unknown, Output>,
    ...args: EnqueueArgs<Input>
  ): Promise<TaskHandle<Output>> {
    const [input, options = {}] = args as [unknown, EnqueueOptions?];
    const terms = checkTerms(task) as TaskTerms<never>;
    const { id, existed } = await this.#ask(() => enqueueOne(this.services, this.#batcher, terms, input, options));
    return new TaskHandle<Output>(this.#taskServices, id, existed);
  }

  /** Enqueues a list or stream of any length in bounded memory: atomic with `tx`, otherwise per chunk of 1,000. */
  async enqueueMany<Input>(
    task: TaskTerms<Input>,
    inputs: Iterable<NoInfer<Input>> | AsyncIterable<NoInfer<Input>>,
    options: EnqueueManyOptions<NoInfer<Input>> = {},
  ): Promise<EnqueuedMany> {
    const terms = checkTerms(task) as TaskTerms<never>;
    return this.#ask(() => enqueueMany(this.services, terms, inputs, options));
  }

  /** Returns a handle on a task that was enqueued elsewhere. */
  task<Output = unknown>(id: string): TaskHandle<Output> {
    return new TaskHandle<Output>(this.#taskServices, checkId(id));
  }

  /**
   * Starts a run of a workflow, given as a definition or by name. A name stands for the latest graph declared under it.
   * With `tx`, the run exists if and only if the caller's transaction commits.
   */
  async start<Input = unknown, Output = unknown>(
    given: Workflow<Input, Output> | string,
    ...args: EnqueueArgs<Input, StartOptions>
  ): Promise<Run<Output>> {
    // No overloads: for a wrong input or option, the compiler would report that a workflow is not a name.
    const [input, options = {}] = args as [unknown, StartOptions?];
    if (typeof given === "string") {
      const { id, existed } = await this.#ask(() => startNamed(this.services, given, input, options));
      return new Run(this.#runServices, id, { existed });
    }
    const workflow = checkWorkflow(given);
    const { id, existed } = await this.#ask(() => startRun(this.services, workflow, input, options));
    return new Run(this.#runServices, id, { existed, workflow });
  }

  /**
   * Returns a handle on a run that was started elsewhere. With its definition, the result is typed and events are
   * checked.
   */
  run<Output = unknown>(id: string, workflow?: Workflow<unknown, Output>): Run<Output> {
    if (workflow !== undefined) checkWorkflow(workflow);
    return new Run<Output>(this.#runServices, checkRunId(id), { workflow });
  }

  /** Returns a page of runs, newest first. */
  async runs(search: RunSearch = {}): Promise<RunPage> {
    return this.#ask(({ db }) => searchRuns(db, search));
  }

  /** Returns every declared workflow, by name. */
  async workflows(): Promise<WorkflowSummary[]> {
    return this.#ask(({ db }) => listWorkflows(db));
  }

  /** Returns the latest graph declared under this name, or null. */
  async workflowGraph(name: string): Promise<Graph | null> {
    checkName("workflow", name);
    const stored = await this.#ask(({ db }) => newestGraph(db, name));
    return stored === null ? null : (stored.graph as Graph);
  }

  /**
   * Runs a failed or cancelled task again, from its first attempt. A task that blocks its order key runs before the
   * tasks behind it; otherwise its place in its order key is not promised. Returns false if it is neither.
   */
  async retry(id: string): Promise<boolean> {
    checkId(id);
    return this.#ask(({ db }) => retry(db, id));
  }

  /** Lets an order key that is blocked by a failed task continue without that task. */
  async unblock(id: string): Promise<boolean> {
    checkId(id);
    return this.#ask(({ db }) => unblock(db, id));
  }

  /** Stops all workers from claiming tasks of the queue; running tasks may finish. Throws `unknown_queue`. */
  async pause(queue: string): Promise<void> {
    checkName("queue", queue);
    return this.#ask(({ db }) => namingOthers(db, "queue", queue, pauseQueue(db, queue, true)));
  }

  async resume(queue: string): Promise<void> {
    checkName("queue", queue);
    return this.#ask(({ db }) => namingOthers(db, "queue", queue, pauseQueue(db, queue, false)));
  }

  /**
   * Declares limits, tasks and workflows at a deploy. The numbers in these limits and tasks become the declared ones
   * (overrides by limits.set stay). These workflows, or graphs as plain data, become the ones that a start by name
   * uses. A workflow's tasks are declared with it. The types that a graph names must also be in the list, or have been
   * declared before; otherwise this throws `unknown_task`.
   */
  async sync(declared: readonly Declared[]): Promise<void> {
    const { numbers, workflows } = sortDeclared(declared);
    return this.#ask(async () => {
      await this.declarations.sync(numbers);
      for (const { graph, contracts } of workflows) {
        for (const terms of contracts) await this.declarations.stream(terms as TaskTerms<never>);
        await this.declarations.graph(graph);
      }
    });
  }

  /** Explains why a task does not run; null if it does not exist or its history is not kept. */
  async explain(id: string): Promise<Explanation | null> {
    checkId(id);
    return this.#ask(({ db }) => explainTask(db, id));
  }

  /** Explains why the tasks of a queue do not run, by reason. Throws `unknown_queue`. */
  async explainQueue(queue: string): Promise<QueueExplanation> {
    checkName("queue", queue);
    return this.#ask(({ db }) => explainQueue(db, queue));
  }

  /** Returns the number of tasks in each state. */
  counts(): Promise<Record<TaskState, number>> {
    return this.#ask(({ db }) => counts(db));
  }

  /** Closes every connection; later calls are refused as `closed`. Calling it again waits for the first call. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }
  #closing: Promise<void> | null = null;

  async #close(): Promise<void> {
    const { listener, db, log, stopEmbedded } = this.connection;
    this.#batcher.close(closed());
    await listener?.close();
    await db.close();
    await stopEmbedded?.();
    log.flush();
  }

  /** @internal */
  protected checkOpen(): void {
    // guard: what was closed refuses -> test/client/refusals.test.ts: "a closed client refuses every call, even if its pool is still open"
    /* guard:closed */ if (this.#closing !== null) throw closed(); /* end */
  }

  /** Queries the database. Calls still in flight during close fail as `closed`, not with a lost connection. */
  async #ask<T>(question: (connection: Connection) => Promise<T>): Promise<T> {
    this.checkOpen();
    try {
      return await question(this.connection);
    } catch (e) {
      throw this.#closing !== null && isSluiceError(e, "database_unavailable") ? closed(e) : e;
    }
  }

  readonly #taskServices: TaskServices = {
    inspect: (id) => this.#ask(({ db }) => inspect(db, id)),
    attempts: (id) => this.#ask(({ db }) => inspectAttempts(db, id)),
    details: (id) => this.#ask((connection) => details(connection, id)),
    explain: (id) => this.explain(id),
    cancel: (id, reason, tx) => this.#ask(async ({ db }) => (await cancel(db, [id], reason, tx))[0]!),
    ended: (id, bounds) => this.#ask((connection) => ended({ ...connection, unserved: this.#unserved }, id, bounds)),
    watch: (id, signal) =>
      watchThrough(
        (question) => this.#ask(question),
        (services) => watchTask(services, id, signal),
      ),
  };
}

async function details({ db, settings }: Connection, id: string): Promise<TaskDetails | null> {
  const [status, inputs, attempts] = await Promise.all([
    inspect(db, id),
    inspectInput(db, id),
    inspectAttempts(db, id),
  ]);
  if (status === null || inputs.length === 0) return null;
  return { ...status, input: settings.redact(inputs[0]), attempts };
}

function closed(cause?: unknown): SluiceError {
  const options = cause === undefined ? {} : { cause };
  return new SluiceError("closed", "this client is closed: connect again", options);
}

/** Checks that `connect` opened this connection. `new Sluice({ url })` passes its options here instead. */
function checkConnection(connection: unknown): Connection {
  if ((connection as Partial<Connection> | undefined)?.db instanceof Database) return connection as Connection;
  throw new SluiceError("invalid_option", "use `await Sluice.connect(options)` (or Client.connect) instead of `new`");
}

function checkTerms<T>(task: T): T {
  if (typeof (task as Partial<TaskTerms> | null)?.place === "function") return task;
  throw new SluiceError("unknown_task", "the first argument must be a task made by task(name, options)");
}

function checkWorkflow<T>(given: T): T {
  const { graph, digest, contracts } = (given ?? {}) as Partial<Workflow>;
  if (typeof graph === "object" && typeof digest === "string" && Array.isArray(contracts)) return given;
  throw new SluiceError(
    "unknown_workflow",
    "a workflow must be made by workflow(name, options, definition), or be the name of a workflow",
  );
}

function checkRunId(id: unknown): string {
  if (typeof id === "string" && /^\d{1,18}$/.test(id)) return id;
  throw new SluiceError("run_not_found", "the id of a run must be a string of digits");
}

function checkId(id: unknown): string {
  if (typeof id === "string" && /^\d{1,18}$/.test(id)) return id;
  throw new SluiceError("task_not_found", "the id of a task must be a string of digits");
}
