import type { EnqueueArgs, EnqueueOptions } from "../core/enqueue.js";
import { SluiceError } from "../core/error.js";
import { isLimit, type Limit } from "../core/limit.js";
import { checkName } from "../core/name.js";
import type { TaskState } from "../core/state.js";
import type { TaskTerms } from "../core/terms.js";
import { Limits } from "../limits/limits.js";
import { cancel, retry, unblock } from "../postgres/cancel.js";
import { counts, inspect } from "../postgres/inspect.js";
import { pauseQueue } from "../postgres/pause.js";
import { open, type Connection } from "./connect.js";
import { Declarations } from "./declarations.js";
import { ended } from "./ended.js";
import { enqueueOne, type Desk } from "./enqueue.js";
import { TaskHandle, type TaskDesk } from "./handle.js";
import { enqueueMany, type EnqueuedMany, type EnqueueManyOptions } from "./many.js";
import type { ConnectOptions } from "./settings.js";

/** Enqueues tasks and looks after them. Has no worker in it, so a producer need not load one. */
export class Client {
  readonly limits: Limits;
  protected readonly connection: Connection;
  protected readonly desk: Desk;
  protected readonly declarations: Declarations;

  /** Use `connect`. */
  constructor(connection: Connection) {
    const { db, settings } = connection;
    this.connection = connection;
    this.declarations = new Declarations(db);
    this.limits = new Limits(db, (limit) => this.declarations.limit(limit));
    const { payloadBytesMax, idempotencyMs } = settings;
    this.desk = { db, declarations: this.declarations, payloadBytesMax, idempotencyMs };
  }

  static async connect(options: ConnectOptions = {}): Promise<Client> {
    return new Client(await open(options));
  }

  /**
   * Enqueues one task. With `tx` it exists if and only if the caller's transaction commits, and that
   * transaction may stay open for minutes without blocking a worker.
   */
  async enqueue<Input, Output>(
    task: TaskTerms<Input, unknown, Output>,
    ...args: EnqueueArgs<Input>
  ): Promise<TaskHandle<Output>> {
    const [input, options = {}] = args as [unknown, EnqueueOptions?];
    const { id, existed } = await enqueueOne(
      this.desk,
      checkTerms(task) as TaskTerms<never>,
      input,
      options,
    );
    return new TaskHandle<Output>(this.#taskDesk, id, existed);
  }

  /** Enqueues a list or stream of any length in bounded memory: atomic within `tx`, else per chunk of 1,000. */
  async enqueueMany<Input>(
    task: TaskTerms<Input>,
    inputs: Iterable<NoInfer<Input>> | AsyncIterable<NoInfer<Input>>,
    options: EnqueueManyOptions<NoInfer<Input>> = {},
  ): Promise<EnqueuedMany> {
    return enqueueMany(this.desk, checkTerms(task) as TaskTerms<never>, inputs, options);
  }

  /** A handle on a task that was enqueued elsewhere. */
  task<Output = unknown>(id: string): TaskHandle<Output> {
    return new TaskHandle<Output>(this.#taskDesk, checkId(id));
  }

  /** Runs a failed or cancelled task again, from its first attempt and in its old place. False if it is neither. */
  async retry(id: string): Promise<boolean> {
    return retry(this.connection.db, checkId(id));
  }

  /** Lets an order key that a failed task blocks go on without it. */
  async unblock(id: string): Promise<boolean> {
    return unblock(this.connection.db, checkId(id));
  }

  /** Nothing is claimed from the queue any more, by any worker; what runs may finish. */
  async pause(queue: string): Promise<void> {
    return pauseQueue(this.connection.db, checkName("queue", queue), true);
  }

  async resume(queue: string): Promise<void> {
    return pauseQueue(this.connection.db, checkName("queue", queue), false);
  }

  /** Makes the numbers in these limits and tasks the declared ones, at a deploy. Overrides by limits.set stay. */
  async sync(declared: readonly (Limit | TaskTerms)[]): Promise<void> {
    if (!Array.isArray(declared))
      throw new SluiceError("invalid_option", "sync takes a list of limits and tasks");
    return this.declarations.sync(declared.map((one) => (isLimit(one) ? one : checkTerms(one))));
  }

  /** How many tasks are in each state. */
  counts(): Promise<Record<TaskState, number>> {
    return counts(this.connection.db);
  }

  /** Closes every connection. Calling it again waits for the first call. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }
  #closing: Promise<void> | null = null;

  async #close(): Promise<void> {
    const { listener, db, stopEmbedded } = this.connection;
    await listener?.close();
    await db.close();
    await stopEmbedded?.();
  }

  readonly #taskDesk: TaskDesk = {
    inspect: (id) => inspect(this.connection.db, id),
    cancel: async (id, reason, tx) => (await cancel(this.connection.db, [id], reason, tx))[0]!,
    ended: (id, timeoutMs) => ended(this.connection.db, this.connection.listener, id, timeoutMs),
  };
}

function checkTerms<T>(task: T): T {
  if (typeof (task as Partial<TaskTerms> | null)?.place === "function") return task;
  throw new SluiceError(
    "unknown_task",
    "the first argument must be a task made by task(name, options)",
  );
}

function checkId(id: unknown): string {
  if (typeof id === "string" && /^\d{1,18}$/.test(id)) return id;
  throw new SluiceError("task_not_found", "a task id is a string of digits");
}
