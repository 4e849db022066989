import type { Schema } from "../core/schema.js";
import type { TaskTerms } from "../core/terms.js";
import type { OnError } from "./graph.js";
import type { Ref, Reference, Steps } from "./ref.js";
import type { Present, Stored } from "./stored.js";
import type { Template } from "./template.js";

declare const node: unique symbol;
declare const single: unique symbol;

/** A part of a workflow that others can depend on. */
export interface Node {
  /** Exists only as a type; there is nothing to read. */
  readonly [node]: true;
}

/** A single node, whose failure can be handled. */
interface SingleNode extends Node {
  /** Exists only as a type; there is nothing to read. */
  readonly [single]: true;
}

/** An explicit dependency, in addition to those from references: on the success of a node, or on the given event. */
type After = Node | { readonly node: Node; readonly on: "success" | "failure" | "end" };

/** Options of every node. */
interface NodeOptions {
  /** Starts after these nodes, even without a reference to them. */
  readonly after?: readonly After[];
}

/** Options of a task in a workflow; they override those of its type. */
interface TaskNodeOptions extends NodeOptions {
  readonly priority?: number;
  /** The total number of attempts, including the first. */
  readonly attempts?: number;
}

/** Options of an `each`. */
export interface EachOptions<E extends OnError = OnError> extends TaskNodeOptions {
  /** The maximum number of items that run at once. */
  readonly window: number;
  /**
   * What happens when an item has finally failed. failFast (default): the other items are cancelled and the node fails.
   * finish: the other items run, then the node fails. collect: the node succeeds, with results and errors.
   */
  readonly onError?: E;
}

/** An item that did not succeed. */
interface ItemError {
  readonly index: number;
  readonly state: "failed" | "cancelled";
  readonly error: Failure;
}

/** The stored description of a failure, which has a message, or of a cancellation, which may have a reason. */
export interface Failure {
  readonly name?: string;
  readonly message?: string;
  readonly code?: string;
  readonly reason?: string;
}

/** The outcome of a node that failed or was cancelled. */
interface Failed {
  readonly error: Failure;
}

/** How many items of an `each` ended in each state. */
interface ItemCounts {
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
}

/** A task, or a waitFor: the node is itself a reference to its output. */
type OutputNode<T> = Ref<T> & SingleNode;

/** A fan-out. */
interface EachNode<Result> extends SingleNode {
  /** In the order of the items; with collect, null for an item that failed. */
  readonly results: Ref<Result[]>;
  readonly errors: Ref<ItemError[]>;
  readonly counts: Ref<ItemCounts>;
}

/**
 * A task or a waitFor that has ended: null if it was skipped, only `error` if it failed. In both cases every other
 * field is null. `error` is null if the node succeeded, unless its output has a field of that name.
 */
type Ended<T> = Reference<T | Failed | null> &
  Omit<Steps<T | null>, "error"> & { readonly error: Ref<Failure | OwnError<T> | null> };
type OwnError<T> = T extends { readonly error: infer E } ? Present<E> : never;

/** A sleep that has ended has only `error`. */
interface EndedNode {
  readonly error: Ref<Failure | null>;
}

/** A fan-out that has ended: its fields are null if it never started. */
interface EndedEach<Result> extends EndedNode {
  /** null for every item that did not succeed. */
  readonly results: Ref<(Result | null)[] | null>;
  readonly errors: Ref<ItemError[] | null>;
  readonly counts: Ref<ItemCounts | null>;
}

/** Nodes written in a callback: a dependency on the group means a dependency on all of its last nodes. */
interface Group<R> extends Node {
  /** The return value of the callback. */
  readonly out: R;
}

/** Two branches. The values that a branch returned are null in a run that takes the other branch. */
interface When<Yes, No> extends Node {
  readonly yes: Outside<Yes>;
  readonly no: Outside<No>;
}

/** References as seen from outside the branch that created them. */
type Outside<R> =
  R extends Reference<infer T> ? Ref<T | null> : R extends object ? { readonly [K in keyof R]: Outside<R[K]> } : R;

/** The test that a `when` applies to a value. Default: truthy, as in JavaScript. */
type Condition<T> =
  | "truthy"
  | "exists"
  | { readonly equals: T }
  | { readonly differs: T }
  | { readonly above: number }
  | { readonly below: number };

/** The input of a task can be omitted if its contract takes none. */
type TaskArgs<Input> = undefined extends Input
  ? [input?: Template<NoInfer<Input>>, options?: TaskNodeOptions]
  : [input: Template<NoInfer<Input>>, options?: TaskNodeOptions];

/** Returns the input of one item. Called once, with references. */
type ItemInput<Item, Input> = (item: Ref<Item>, index: Ref<number>) => Template<NoInfer<Input>>;

/** The type of one item's result in an `each`. */
type ItemResult<Output, E extends OnError> = E extends "collect" ? Output | null : Output;

/** Writes nodes. Callbacks are called once, immediately; the scope that they receive writes into their part. */
export interface Scope {
  /** Adds one task. The node is a reference to its output. */
  task<Input, Output>(
    name: string,
    contract: TaskTerms<Input, unknown, Output>,
    ...args: TaskArgs<Input>
  ): OutputNode<Stored<Output>>;

  /** Adds one task per item of a list. At most `window` of them run at once, in the order of the list. */
  each<Input, Output, Item, E extends OnError = "failFast">(
    name: string,
    contract: TaskTerms<Input, unknown, Output>,
    items: Reference<readonly Item[]> | readonly Item[],
    input: ItemInput<Item, Input>,
    options: EachOptions<E>,
  ): EachNode<ItemResult<Stored<Output>, E>>;

  /** Adds nodes that run one after the other, each once the previous one has succeeded. */
  sequence<R>(name: string, write: (s: Scope) => R): Group<R>;

  /** Adds nodes that run only if a condition holds, and nodes that run only if it does not. */
  when<T, Yes, No = undefined>(
    name: string,
    ref: Reference<T>,
    yes: (b: Scope) => Yes,
    no?: (b: Scope) => No,
  ): When<Yes, No>;
  when<T, Yes, No = undefined>(
    name: string,
    ref: Reference<T>,
    condition: Condition<NoInfer<T>>,
    yes: (b: Scope) => Yes,
    no?: (b: Scope) => No,
  ): When<Yes, No>;

  /** Adds nodes that run only if a node fails. With `recover`, that failure does not fail the run. */
  onFailure<R>(
    failed: SingleNode,
    write: (f: Scope, failure: Ref<Failure>) => R,
    options?: { readonly recover?: boolean },
  ): Group<Outside<R>>;

  /**
   * Returns a node for readers that need only its end: in a branch for its failure, and with `on: "end"`. A node that
   * reads it starts after that end, in any state.
   */
  ended<T>(node: Reference<T> & SingleNode): Ended<T>;
  ended<Result>(node: EachNode<Result>): EndedEach<Result>;
  ended(node: SingleNode): EndedNode;

  /** Waits for a duration in ms, or until a time: ISO text, in UTC unless it has an offset, or ms since 1970. */
  sleep(name: string, time: number | { readonly until: Reference<string | number> }, options?: NodeOptions): SingleNode;

  /** Waits for an event sent to the run. The node is a reference to the event's payload, and fails on timeout. */
  waitFor<Payload = unknown>(name: string, event: string, options?: WaitOptions<Payload>): OutputNode<Stored<Payload>>;
}

/** Options of a waitFor. */
interface WaitOptions<Payload> extends NodeOptions {
  /** By default there is no timeout. */
  readonly timeoutMs?: number;
  /** The schema of the payload. */
  readonly schema?: Schema<unknown, Payload>;
}
