import type { Library, Variant } from "../../adapter.js";
import { ownVersion } from "../version.js";
import { adapterOf, type Settings } from "./adapter.js";
import { TUNED } from "./numbers.js";

const TUNED_CONFIG =
  "1,000 permits (the default), claims of 500: for no-ops fewer commits matter more than even shares";

export const sluice: Library = {
  name: "sluice",
  version: ownVersion(),
  store: "postgres",
  variants: [
    variant("history on", TUNED_CONFIG, { keepHistory: true, numbers: TUNED }),
    variant("history off", `${TUNED_CONFIG}; no history of successes, like peers that delete finished jobs`, {
      keepHistory: false,
      numbers: TUNED,
    }),
    variant("default", "the defaults: 1,000 permits, claims that adapt from 50 to 500, history for a day", {
      keepHistory: true,
      numbers: {},
    }),
    ...(["high", "io", "throughput"] as const).map((preset) =>
      variant(`preset ${preset}`, `only the preset ${preset} is set`, {
        keepHistory: true,
        numbers: { preset },
      }),
    ),
    variant("metrics off", `${TUNED_CONFIG}; metrics are off`, {
      keepHistory: true,
      numbers: { ...TUNED, metrics: { enabled: false } },
    }),
    variant("metrics read", `${TUNED_CONFIG}; all metrics are read once a second`, {
      keepHistory: true,
      numbers: TUNED,
      readMetricsMs: 1_000,
    }),
  ],
};

function variant(name: string, config: string, settings: Settings): Variant {
  return { name, config, cannot: () => null, adapter: adapterOf(settings), fills: "sluice" };
}
