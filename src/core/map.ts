import type { TaskTerms } from "./terms.js";

/** What becomes of the others when an item of a map has failed for good. */
export type MapPolicy = "failFast" | "finish" | "collect";

/** How a map is done. */
export interface MapOptions {
  /** At most so many of its items run at once; without it as many as their own limits let through. */
  readonly window?: number;
  /**
   * failFast (default): the others are cancelled and the call throws `task_failed`. finish: the others run,
   * then it throws. collect: all run, and the call returns results and errors.
   */
  readonly onError?: MapPolicy;
  /** Wait in place: the handler keeps its slots, its place in this worker and its timeout. Default false. */
  readonly hold?: boolean;
}

/**
 * The inputs of the items: a list, or a function that finds them. A function is asked once: when the handler
 * runs again, what was found first counts. A list must be the same in every run, else the call throws
 * `map_changed`.
 */
export type MapItems<Input> = readonly Input[] | (() => readonly Input[] | Promise<readonly Input[]>);

/** One item that did not succeed. */
export interface MapError {
  /** From 0, in the order of the items. */
  readonly index: number;
  readonly state: "failed" | "cancelled";
  /** What is kept of its error, or the reason of its cancel. */
  readonly error: unknown;
}

/** What a map under `collect` came to. */
export interface MapCollected<Output> {
  /** In the order of the items; null for one that did not succeed. */
  readonly results: readonly (Output | null)[];
  readonly errors: readonly MapError[];
  readonly counts: {
    readonly total: number;
    readonly succeeded: number;
    readonly failed: number;
    readonly cancelled: number;
  };
}

/** ctx.map: the name tells the maps of one task from each other. */
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
