import { SluiceError } from "../core/error.js";
import type { MapItems, MapOptions, MapPolicy } from "../core/map.js";
import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOneOf, checkOptions } from "../core/option.js";
import { quote } from "../core/quote.js";
import type { TaskTerms } from "../core/terms.js";

/** The checked arguments of a ctx.map call. */
export interface MapCall {
  readonly name: string;
  readonly items: MapItems<unknown>;
  readonly terms: TaskTerms<never>;
  readonly window: number | null;
  readonly onError: MapPolicy;
  readonly hold: boolean;
}

const POLICIES = ["failFast", "finish", "collect"] as const;
const WINDOW_RANGE = { min: 1, max: 2_000_000_000 };

/** Checks the arguments of ctx.map. */
export function mapCallOf(name: unknown, items: unknown, terms: unknown, options: MapOptions = {}): MapCall {
  checkOptions("map", options, ["window", "onError", "hold"]);
  const { window, onError = "failFast", hold = false } = options;
  if (!Array.isArray(items) && typeof items !== "function") throw noList(items);
  if (typeof (terms as Partial<TaskTerms> | null)?.place !== "function")
    throw new SluiceError("unknown_task", "ctx.map needs a task made by task(name, options)");
  if (typeof hold !== "boolean")
    throw new SluiceError("invalid_option", `hold must be true or false, not ${quote(hold)}`);
  return {
    name: checkName("map", name),
    items: items as MapItems<unknown>,
    terms: terms as TaskTerms<never>,
    window: window === undefined ? null : checkInteger("window", window, WINDOW_RANGE),
    onError: checkOneOf("onError", onError, POLICIES),
    hold,
  };
}

/** Creates the error for items that are not a list. */
export function noList(items: unknown): SluiceError {
  return new SluiceError(
    "invalid_option",
    `the items of a map must be a list, or a function that returns one, not ${quote(items)}`,
    { details: { option: "items" } },
  );
}
