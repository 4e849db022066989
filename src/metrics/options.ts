import { isIP } from "node:net";
import { resolveWithin, type Layers } from "../config/resolve.js";
import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";
import type { RegistryLike } from "./expose.js";

/** What a worker counts, and where it tells. */
export interface MetricsOptions {
  /** Default true. false: nothing is counted; /health, /live and /ready still answer where a port is set. */
  readonly enabled?: boolean | undefined;
  /** Serves /metrics, /health, /live and /ready on this port, 0 to 65,535; 0 takes any that is free. Default: none. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1. Any address that is not a loopback needs a token. */
  readonly host?: string | undefined;
  /** 16 to 1,000 characters, which every request must carry: `authorization: Bearer <token>`. Default: none. */
  readonly token?: string | undefined;
  /** A registry of prom-client's to put the metrics into as well, until the worker has stopped. */
  readonly registry?: RegistryLike | undefined;
}

/** The same, checked. */
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

/** Decides every option at the door; throws `invalid_option`. A registry is what code alone can give. */
export function checkMetrics(options: MetricsOptions = {}, layers: Layers = { env: {}, file: null }): MetricsSettings {
  const { enabled, port, host, token } = resolveWithin("metrics", options, layers, ["registry"]);
  const { registry } = options;
  if (registry !== undefined && typeof registry?.registerMetric !== "function")
    throw refusal("registry", `must be a Registry of prom-client, not ${quote(registry)}`);
  const serve = port === undefined ? null : { port, host, token: token ?? null };
  // guard: nothing listens beyond loopback without a token -> test/metrics/serve.test.ts: "beyond loopback a token is wanted"
  if (serve !== null && serve.token === null && /* guard:loopback */ !isLoopback(host) /* end */)
    throw refusal("token", `is needed to listen on ${host}: only loopback goes without`);
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
