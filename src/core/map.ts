import type { TaskTerms } from "./terms.js";

/** Decides what happens to the other items when an item of a map has finally failed. */
export type MapPolicy = "failFast" | "finish" | "collect";

/** Options of `ctx.map`. */
export interface MapOptions {
  /** The maximum number of items that run at once; by default only the items' own limits apply. */
  readonly window?: number;
  /**
   * failFast (default): the other items are cancelled and the call throws `task_failed`. finish: the other items run,
   * then the call throws. collect: all items run, and the call returns results and errors.
   */
  readonly onError?: MapPolicy;
  /** Wait in place: the handler keeps its slots, its permit in this worker and its timeout. Default false. */
  readonly hold?: boolean;
}

/**
 * The inputs of the items: a list, or a function that returns them. A function is called once: when the handler runs
 * again, its first result is used. A list must be the same in every execution; otherwise the call throws `map_changed`.
 */
export type MapItems<Input> = readonly Input[] | (() => readonly Input[] | Promise<readonly Input[]>);

/** One item that did not succeed. */
export interface MapError {
  /** The item's index, from 0. */
  readonly index: number;
  readonly state: "failed" | "cancelled";
  /** The stored error, or the reason of the cancellation. */
  readonly error: unknown;
}

/**
 * The reason of an item that was cancelled because another item of its fail-fast fan-out failed or was cancelled. The
 * database writes it, by the function workflow_sibling_reason.
 */
export const CANCELLED_FOR_ANOTHER_ITEM = "another item failed or was cancelled";

/** The outcome of a map with `onError: "collect"`. */
export interface MapCollected<Output> {
  /** In the order of the items; null for an item that did not succeed. */
  readonly results: readonly (Output | null)[];
  readonly errors: readonly MapError[];
  readonly counts: {
    readonly total: number;
    readonly succeeded: number;
    readonly failed: number;
    readonly cancelled: number;
  };
}

/** The type of `ctx.map`. The name distinguishes the maps of one task. */
export interface MapFunction {
  <Input, Output>(
    this: void,
    name: string,
    items: MapItems<NoInfer<Input>>,
    task: TaskTerms<Input, unknown, Output>,
    options: MapOptions & { readonly onError: "collect" },
  ): Promise<MapCollected<Output>>;
  <Input, Output>(
    this: void,
    name: string,
    items: MapItems<NoInfer<Input>>,
    task: TaskTerms<Input, unknown, Output>,
    options?: MapOptions,
  ): Promise<readonly Output[]>;
}
