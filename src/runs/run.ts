import { SluiceError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import { reasonText } from "../core/outcome.js";
import type { Queryable } from "../core/ports.js";
import { quote } from "../core/quote.js";
import { type } from "../core/schema.js";
import type { RunCancelAnswer, SentEvent } from "../postgres/workflow/control.js";
import type { NodeFailure } from "../postgres/workflow/failures.js";
import type { RunStatus as RunRow } from "../postgres/workflow/inspect.js";
import { checkTx } from "../tasks/tx.js";
import { checkSignal, waitBoundsOf, type WaitBounds } from "../tasks/wait.js";
import type { Graph } from "../workflow/graph.js";
import { encodePayload } from "../workflow/input.js";
import type { Workflow } from "../workflow/workflow.js";
import type { ItemPage, ItemSearch } from "./items.js";
import type { RunStatus } from "./status.js";

/** The operations behind a run handle. */
export interface RunServices {
  readonly payloadBytesMax: number;
  status(id: string): Promise<RunStatus | null>;
  watch(id: string, signal: AbortSignal | null): AsyncGenerator<RunStatus, void, undefined>;
  items(id: string, node: string, search: ItemSearch): Promise<ItemPage>;
  graph(id: string): Promise<Graph | null>;
  /** Resolves when the run has ended. */
  over(id: string, bounds: WaitBounds): Promise<RunRow>;
  /** JSON text. */
  result(id: string, bounds: WaitBounds): Promise<string>;
  failures(id: string, bounds: WaitBounds): Promise<NodeFailure[]>;
  cancel(id: string, reason: string | null): Promise<RunCancelAnswer>;
  retry(id: string): Promise<number>;
  pause(id: string, paused: boolean): Promise<boolean>;
  window(id: string, node: string, window: number): Promise<boolean>;
  send(event: SentEvent, tx?: Queryable): Promise<boolean>;
}

/** Facts that are known when the handle is created. */
interface RunFacts {
  readonly existed?: boolean;
  readonly workflow?: Pick<Workflow, "name" | "events"> | undefined;
}

const WINDOW_RANGE = { min: 1, max: 1_000_000 };

/** A handle on one run of a workflow. */
export class Run<Output = unknown> {
  readonly id: string;
  /** Whether the run was found under its idempotency key instead of started. */
  readonly existed: boolean;
  readonly #services: RunServices;
  readonly #workflow: RunFacts["workflow"];

  /** @internal */
  constructor(services: RunServices, id: string, { existed = false, workflow }: RunFacts = {}) {
    this.#services = services;
    this.id = id;
    this.existed = existed;
    this.#workflow = workflow;
  }

  /**
   * Returns the current status of the run and its nodes; null if it does not exist. The cost does not depend on the
   * number of items.
   */
  status(): Promise<RunStatus | null> {
    return this.#services.status(this.id);
  }

  /**
   * Returns a page of the items of an `each`, by index. The cost is proportional to the page. With `state`, a page
   * covers the next 10,000 items, so it may be empty although `after` indicates that there are more. Throws
   * `unknown_node`, `invalid_option` if the node is not an `each`, or `run_not_found`.
   */
  async items(node: string, search: ItemSearch = {}): Promise<ItemPage> {
    return this.#services.items(this.id, checkName("node", node), search);
  }

  /** Returns the graph that the run was started with; null if the run does not exist. */
  graph(): Promise<Graph | null> {
    return this.#services.graph(this.id);
  }

  /**
   * Waits for the run to end and returns its result. Throws `workflow_failed` or `workflow_cancelled` with the nodes
   * and their errors in `details`, `wait_timeout`, `run_not_found`, or the signal's reason. Keeps waiting while the
   * database is unavailable.
   */
  async result(options: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {}): Promise<Output> {
    checkOptions("result", options, ["timeoutMs", "signal"]);
    const bounds = waitBoundsOf(options);
    const run = await this.#services.over(this.id, bounds);
    this.#checkDefinition(run);
    if (run.state === "succeeded") return JSON.parse(await this.#services.result(this.id, bounds)) as Output;
    const failures = await this.#services.failures(this.id, bounds);
    throw run.state === "failed" ? failed(run, failures) : cancelled(run, failures);
  }

  /**
   * Yields the current status, then each new status after a change, until the run has ended:
   * `for await (const status of run.watch())`. A slow consumer misses intermediate states.
   */
  watch(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<RunStatus, void> {
    checkOptions("watch", options, ["signal"]);
    return this.#services.watch(this.id, checkSignal(options.signal));
  }

  /**
   * Cancels all unfinished nodes: waiting tasks never start, and running tasks get their signal aborted (the answer is
   * then `asked`).
   */
  async cancel(reason?: string): Promise<RunCancelAnswer> {
    return this.#services.cancel(this.id, reason === undefined ? null : reasonText(reason));
  }

  /**
   * Resumes the run from the nodes that failed or were cancelled; for an `each`, only the failed or cancelled items run
   * again. Successful results are kept. Returns the number of nodes, 0 if none had failed. Throws `workflow_stopping`
   * while a cancellation is in progress, `workflow_paused` while the run is paused, and `workflow_running` while a
   * branch started by the failure is running.
   */
  async retry(): Promise<number> {
    return this.#services.retry(this.id);
  }

  /**
   * Pauses the run: no node starts and no item passes a window; running tasks may finish. Returns false if the run has
   * ended or does not exist.
   */
  async pause(): Promise<boolean> {
    return this.#services.pause(this.id, true);
  }

  async resume(): Promise<boolean> {
    return this.#services.pause(this.id, false);
  }

  /**
   * Changes the window of a running `each`. If lowered, running items still finish. Returns false if there is no such
   * node.
   */
  async window(node: string, window: number): Promise<boolean> {
    checkName("node", node);
    return this.#services.window(this.id, node, checkInteger("window", window, WINDOW_RANGE));
  }

  /**
   * Sends an event to a node that waits for it, now or later; each event is received by one node. With `tx`, the event
   * is sent if and only if the transaction commits. Returns false if the run has ended or does not exist. Throws
   * `unknown_event` if no node of the run's graph waits for it.
   */
  async send(event: string, payload?: unknown, options: { readonly tx?: Queryable } = {}): Promise<boolean> {
    checkOptions("send", options, ["tx"]);
    const tx = checkTx(options.tx);
    checkName("event", event);
    const schema = this.#workflow?.events.get(event) ?? type<unknown>();
    const text = await encodePayload(event, schema, payload, this.#services.payloadBytesMax);
    const workflow = this.#workflow?.name;
    return this.#services.send({ run: this.id, name: event, payload: text, workflow }, tx);
  }
  /** Checks that the run belongs to the given definition, because that definition types the result. */
  #checkDefinition({ name, parent }: RunRow): void {
    if (this.#workflow === undefined || (parent === null && name === this.#workflow.name)) return;
    const whose = parent === null ? `workflow ${quote(name)}` : "a handler's map";
    const message = `run ${this.id} belongs to ${whose}, not to workflow ${quote(this.#workflow.name)}`;
    throw new SluiceError("invalid_option", message, { details: { option: "workflow" } });
  }
}

function failed({ id, name }: RunRow, failures: readonly NodeFailure[]): SluiceError {
  const [first] = failures;
  const why = first === undefined ? "" : `: ${whyOf(first)}`;
  return new SluiceError("workflow_failed", `run ${id} of ${name} failed${why}`, {
    details: { id, workflow: name, nodes: failures },
  });
}

function cancelled(run: RunRow, failures: readonly NodeFailure[]): SluiceError {
  const { id, name, outcome } = run;
  const reason = (outcome as { reason?: string | null } | null)?.reason ?? null;
  return new SluiceError(
    "workflow_cancelled",
    `run ${id} of ${name} was cancelled${reason === null ? "" : `: ${reason}`}`,
    { details: { id, workflow: name, reason, nodes: failures } },
  );
}

function whyOf({ node, item, error }: NodeFailure): string {
  const { message, reason } = (error ?? {}) as { message?: string; reason?: string | null };
  const where = item === null ? quote(node) : `${quote(node)}, item ${item}`;
  return `node ${where}: ${message ?? reason ?? "no reason given"}`;
}
