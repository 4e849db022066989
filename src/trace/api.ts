import type * as openTelemetry from "@opentelemetry/api";

/** The OpenTelemetry API, as far as it is installed: who traces has it, because every SDK needs it. */
export type Api = typeof openTelemetry;

let api: Api | null = null;

/** Looks for it once; without it nothing is traced. Several copies share their providers, so any will do. */
export async function loadApi(): Promise<void> {
  if (api !== null) return;
  try {
    api = await import("@opentelemetry/api");
  } catch {
    // Not installed: nobody traces.
  }
}

/** Null until it is loaded, or where it is not installed. */
export function apiNow(): Api | null {
  return api;
}
