// What the handlers of parts of flows do.
import type { TaskContext } from "../../src/index.js";
import type { LogWriter } from "../log.js";
import { WINDOWS } from "./flows.js";
import { begin, Ear, end, handle, leave } from "./handler.js";
import { partNames, parts, type Part } from "./parts.js";

/** `during`: whoever counts what is in hand. */
export function partHandlers(log: LogWriter, during: <T>(work: () => Promise<T>) => Promise<T>) {
  return partNames.map((name) =>
    parts[name].handle((part, ctx) =>
      during(() => (name === "parent" ? fanOut(log, part, ctx) : handle(log, part.work, ctx, part.heard))),
    ),
  );
}

/** Ends its run while its children run, and tells what they came to when it runs again. */
async function fanOut(log: LogWriter, part: Part, ctx: TaskContext): Promise<string> {
  const ear = new Ear(ctx.signal);
  await begin(log, part.work, ctx);
  const options = { window: WINDOWS.map, onError: "collect" } as const;
  try {
    const { results } = await ctx.map("map", part.children ?? [], parts.child, options);
    const ended = { how: "completed", reason: null, heard: { map: results } } as const;
    return await end(log, ctx, ear, ended, null);
  } catch (e) {
    if (ear.reason !== null) return leave(log, ctx, ear);
    const waits = e instanceof Error && e.name === "WaitOutcome";
    const slept = { how: "snoozed", reason: null, snoozeMs: 0 } as const;
    return end(log, ctx, ear, waits ? slept : { how: "thrown", reason: null }, e);
  }
}
