import { isIP } from "node:net";
import { resolveWithin, type Layers } from "../config/resolve.js";
import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";
import type { RegistryLike } from "./expose.js";

/** Which metrics a worker collects, and where it serves them. */
export interface MetricsOptions {
  /** Default true. If false, nothing is counted; /health, /live and /ready still respond if a port is set. */
  readonly enabled?: boolean | undefined;
  /** Serves /metrics, /health, /live and /ready on this port, 0 to 65,535; 0 picks any free port. Default: none. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1. Any address that is not a loopback needs a token. */
  readonly host?: string | undefined;
  /**
   * A token of 16 to 1,000 characters that requests for /metrics and /health must carry: `authorization: Bearer
   * <token>`. The probes /live and /ready need none. Default: none.
   */
  readonly token?: string | undefined;
  /** A prom-client registry that also receives the metrics, until the worker has stopped. */
  readonly registry?: RegistryLike | undefined;
}

/** Validated MetricsOptions. */
export interface MetricsSettings {
  readonly enabled: boolean;
  /** null: no server. */
  readonly serve: {
    readonly port: number;
    readonly host: string;
    readonly token: string | null;
  } | null;
  readonly registry: RegistryLike | null;
}

/** Resolves and validates all options; throws `invalid_option`. Only code can supply a registry. */
export function checkMetrics(options: MetricsOptions = {}, layers: Layers = { env: {}, file: null }): MetricsSettings {
  const { enabled, port, host, token } = resolveWithin("metrics", options, layers, ["registry"]);
  const { registry } = options;
  if (registry !== undefined && typeof registry?.registerMetric !== "function")
    throw refusal("registry", `must be a Registry of prom-client, not ${quote(registry)}`);
  const serve = port === undefined ? null : { port, host, token: token ?? null };
  // guard: nothing listens beyond loopback without a token -> test/metrics/serve.test.ts: "the metrics server requires a token beyond loopback"
  if (serve !== null && serve.token === null && /* guard:loopback */ !isLoopback(host) /* end */)
    throw refusal("token", `is required to listen on ${host}: only loopback needs none`);
  return { enabled, serve, registry: registry ?? null };
}

function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith("127.");
  return host === "::1" || host === "localhost";
}

function refusal(option: string, message: string): SluiceError {
  return new SluiceError("invalid_option", `metrics.${option} ${message}`, {
    details: { option: `metrics.${option}` },
  });
}
