import type * as openTelemetry from "@opentelemetry/api";

/** The OpenTelemetry API, if it is installed. Every process that traces has it, because every SDK needs it. */
export type Api = typeof openTelemetry;

let api: Api | null = null;

/** Loads the API once; without it nothing is traced. Several copies share their providers, so any copy will do. */
export async function loadApi(): Promise<void> {
  if (api !== null) return;
  try {
    api = await import("@opentelemetry/api");
  } catch {
    // Not installed: tracing is off.
  }
}

/** Null until the API is loaded, or if it is not installed. */
export function apiNow(): Api | null {
  return api;
}
