import { SluiceError } from "./error.js";
import { checkInteger, type Range } from "./number.js";
import { quote } from "./quote.js";

interface Setting extends Range {
  readonly env: string;
  readonly default: number;
}

/** Every number of a worker: its environment variable, its default and its range. */
export const workerSettings = {
  /** Tasks in flight in this process. */
  maxConcurrentTasks: { env: "MAX_CONCURRENT_TASKS", default: 1000, min: 1, max: 100_000 },
  /** Tasks per claim: 10 to 50 spreads them evenly, more gives throughput. */
  claimBatchSize: { env: "CLAIM_BATCH_SIZE", default: 50, min: 1, max: 1000 },
  pollIntervalMs: { env: "POLL_INTERVAL_MS", default: 100, min: 10, max: 60_000 },
  claimLoops: { env: "NUM_WORKERS", default: 1, min: 1, max: 64 },
  /** Two per claim loop, one to beat, one to keep; the rest is for transactions of handlers. */
  dbConnections: { env: "MAX_DB_CONNECTIONS", default: 10, min: 1, max: 10_000 },
  /** Inputs and results in this process, as JSON text: a worker claims no more than fit, as far as it can tell. */
  payloadBytesInFlightMax: {
    env: "MAX_PAYLOAD_BYTES_IN_FLIGHT",
    default: 64 * 1024 * 1024,
    min: 1024,
    max: 1024 ** 4,
  },
  leaseMs: { env: "LEASE_MS", default: 15_000, min: 500, max: 3_600_000 },
} as const satisfies Record<string, Setting>;

/** Connections for enqueue and queries. */
const apiConnections: Setting = { env: "API_BUFFER", default: 7, min: 1, max: 1000 };

/** The name of a worker's number, as in code and in the config file. */
export type WorkerSetting = keyof typeof workerSettings;
/** Where a number came from. */
type SettingSource = "code" | "env" | "file" | "default";
/** Some of a worker's numbers. */
export type WorkerNumbers = { readonly [name in WorkerSetting]?: number | undefined };

/** A worker's numbers, and where each came from. */
interface ResolvedWorkerOptions {
  readonly values: Readonly<Record<WorkerSetting, number>>;
  readonly sources: Readonly<Record<WorkerSetting, SettingSource>>;
}

const INTEGER = /^[+-]?\d{1,15}$/;

/** Decides every number: code before environment before config file before default. */
export function resolveWorkerOptions(
  code: WorkerNumbers,
  env: Readonly<Record<string, string | undefined>>,
  file: WorkerNumbers = {},
): ResolvedWorkerOptions {
  const values = {} as Record<WorkerSetting, number>;
  const sources = {} as Record<WorkerSetting, SettingSource>;
  for (const name of Object.keys(workerSettings) as WorkerSetting[]) {
    const [value, source] = resolve(name, code, env, file);
    values[name] = value;
    sources[name] = source;
  }
  return { values, sources };
}

function resolve(
  name: WorkerSetting,
  code: WorkerNumbers,
  env: Readonly<Record<string, string | undefined>>,
  file: WorkerNumbers,
): [number, SettingSource] {
  const setting = workerSettings[name];
  const inEnv = inEnvironment(setting, env);
  if (code[name] !== undefined) return [checkInteger(name, code[name], setting), "code"];
  if (inEnv !== undefined) return [fromEnv(setting, inEnv), "env"];
  if (file[name] !== undefined) {
    return [checkInteger(`${name} in the config file`, file[name], setting), "file"];
  }
  return [setting.default, "default"];
}

/** Decides how many connections there are for enqueue and queries: code before environment before default. */
export function resolveApiConnections(
  code: number | undefined,
  env: Readonly<Record<string, string | undefined>>,
): number {
  const inEnv = inEnvironment(apiConnections, env);
  if (code !== undefined) return checkInteger("apiConnections", code, apiConnections);
  return inEnv === undefined ? apiConnections.default : fromEnv(apiConnections, inEnv);
}

/** An empty variable is how many a shell and a deploy file say "not set". */
function inEnvironment(
  setting: Setting,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  return env[setting.env] === "" ? undefined : env[setting.env];
}

function fromEnv(setting: Setting, text: string): number {
  if (INTEGER.test(text)) return checkInteger(setting.env, Number(text), setting);
  throw new SluiceError(
    "invalid_option",
    `${setting.env} must be an integer from ${setting.min} to ${setting.max}, not ${quote(text)}`,
    { details: { option: setting.env } },
  );
}
