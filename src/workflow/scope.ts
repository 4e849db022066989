import type { Schema } from "../core/schema.js";
import type { TaskTerms } from "../core/terms.js";
import type { OnError } from "./graph.js";
import type { Ref, Reference, Steps } from "./ref.js";
import type { Present, Stored } from "./stored.js";
import type { Template } from "./template.js";

declare const node: unique symbol;
declare const single: unique symbol;

/** A part of a workflow that others can come after. */
export interface Node {
  /** Only a type; nothing can be read here. */
  readonly [node]: true;
}

/** One node, whose failure can be watched. */
interface SingleNode extends Node {
  /** Only a type; nothing can be read here. */
  readonly [single]: true;
}

/** A dependency besides those that references make: a node whose success is waited for, or what of it. */
type After = Node | { readonly node: Node; readonly on: "success" | "failure" | "end" };

/** What can be said about every node. */
interface NodeOptions {
  /** Comes after these, also if it refers to none of them. */
  readonly after?: readonly After[];
}

/** What can be said about a task of a workflow, instead of what its type says. */
interface TaskNodeOptions extends NodeOptions {
  readonly priority?: number;
  /** Attempts in all, the first included. */
  readonly attempts?: number;
}

/** What can be said about an each. */
export interface EachOptions<E extends OnError = OnError> extends TaskNodeOptions {
  /** How many items run at once. */
  readonly window: number;
  /**
   * When an item has failed for good. failFast, the default: the others are cancelled and the node fails.
   * finish: the others run, then it fails. collect: it succeeds, with results and errors.
   */
  readonly onError?: E;
}

/** An item that did not succeed. */
interface ItemError {
  readonly index: number;
  readonly state: "failed" | "cancelled";
  readonly error: Failure;
}

/** What is kept of a failure, which has a message, or of a cancellation, which may have a reason. */
export interface Failure {
  readonly name?: string;
  readonly message?: string;
  readonly code?: string;
  readonly reason?: string;
}

/** What there is of a node that failed or was cancelled. */
interface Failed {
  readonly error: Failure;
}

/** How the items of an each ended. */
interface ItemCounts {
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
}

/** A task, or an event that is waited for: itself a reference to its output. */
type OutputNode<T> = Ref<T> & SingleNode;

/** A fan-out. */
interface EachNode<Result> extends SingleNode {
  /** By the order of the items; with collect null for an item that failed. */
  readonly results: Ref<Result[]>;
  readonly errors: Ref<ItemError[]>;
  readonly counts: Ref<ItemCounts>;
}

/**
 * A task or an event once it is over: null if it was skipped, only `error` if it failed. A field is null then;
 * `error` is null if it succeeded, unless its output has a field of that name.
 */
type Ended<T> = Reference<T | Failed | null> &
  Omit<Steps<T | null>, "error"> & { readonly error: Ref<Failure | OwnError<T> | null> };
type OwnError<T> = T extends { readonly error: infer E } ? Present<E> : never;

/** Of a sleep there is only why it failed. */
interface EndedNode {
  readonly error: Ref<Failure | null>;
}

/** A fan-out once it is over: null for what never began. */
interface EndedEach<Result> extends EndedNode {
  /** With null for every item that did not succeed. */
  readonly results: Ref<(Result | null)[] | null>;
  readonly errors: Ref<ItemError[] | null>;
  readonly counts: Ref<ItemCounts | null>;
}

/** Nodes that were written in a callback: coming after it means after all that it ends with. */
interface Group<R> extends Node {
  /** What the callback returned. */
  readonly out: R;
}

/** Two branches. What they returned is null at a run if the other branch was taken. */
interface When<Yes, No> extends Node {
  readonly yes: Outside<Yes>;
  readonly no: Outside<No>;
}

/** References seen from outside the branch that they were made in. */
type Outside<R> =
  R extends Reference<infer T> ? Ref<T | null> : R extends object ? { readonly [K in keyof R]: Outside<R[K]> } : R;

/** What a when asks of a value, if not whether it is truthy as in JavaScript. */
type Condition<T> =
  | "truthy"
  | "exists"
  | { readonly equals: T }
  | { readonly differs: T }
  | { readonly above: number }
  | { readonly below: number };

/** The input of a task may be left out where its contract takes none. */
type TaskArgs<Input> = undefined extends Input
  ? [input?: Template<NoInfer<Input>>, options?: TaskNodeOptions]
  : [input: Template<NoInfer<Input>>, options?: TaskNodeOptions];

/** Makes the input of one item. Runs once, on references. */
type ItemInput<Item, Input> = (item: Ref<Item>, index: Ref<number>) => Template<NoInfer<Input>>;

/** What an each has for one item. */
type ItemResult<Output, E extends OnError> = E extends "collect" ? Output | null : Output;

/** Writes nodes. Callbacks are called once, at once, and what they are given writes into their part. */
export interface Scope {
  /** One task. The node is a reference to its output. */
  task<Input, Output>(
    name: string,
    contract: TaskTerms<Input, unknown, Output>,
    ...args: TaskArgs<Input>
  ): OutputNode<Stored<Output>>;

  /** One task per item of a list, so many at once, in the order of the list. */
  each<Input, Output, Item, E extends OnError = "failFast">(
    name: string,
    contract: TaskTerms<Input, unknown, Output>,
    items: Reference<readonly Item[]> | readonly Item[],
    input: ItemInput<Item, Input>,
    options: EachOptions<E>,
  ): EachNode<ItemResult<Stored<Output>, E>>;

  /** Each node after the one before has succeeded. */
  sequence<R>(name: string, write: (s: Scope) => R): Group<R>;

  /** Nodes that run only if a condition holds, and nodes that run only if it does not. */
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

  /** Nodes that run only if a node fails. With recover the run does not fail for it. */
  onFailure<R>(
    failed: SingleNode,
    write: (f: Scope, failure: Ref<Failure>) => R,
    options?: { readonly recover?: boolean },
  ): Group<Outside<R>>;

  /**
   * A node as it is read by what needs only its end: in a branch for its failure, and beside `on: "end"`. Whoever
   * reads it comes after its end, whatever it came to.
   */
  ended<T>(node: Reference<T> & SingleNode): Ended<T>;
  ended<Result>(node: EachNode<Result>): EndedEach<Result>;
  ended(node: SingleNode): EndedNode;

  /** Waits so many ms, or until a time: ISO text, which means UTC unless it names an offset, or ms since 1970. */
  sleep(name: string, time: number | { readonly until: Reference<string | number> }, options?: NodeOptions): SingleNode;

  /** Waits for an event that is sent to the run, and refers to its payload. Fails when the time is over. */
  waitFor<Payload = unknown>(name: string, event: string, options?: WaitOptions<Payload>): OutputNode<Stored<Payload>>;
}

/** What can be said about waiting for an event. */
interface WaitOptions<Payload> extends NodeOptions {
  /** Without it there is no end to the waiting. */
  readonly timeoutMs?: number;
  /** What the payload must be. */
  readonly schema?: Schema<unknown, Payload>;
}
