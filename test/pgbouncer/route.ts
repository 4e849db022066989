import type { ConnectOptions } from "../../src/index.js";

/** The same options, routed through the pooler if they address the test server. */
export function routed(options: ConnectOptions, env: NodeJS.ProcessEnv): ConnectOptions {
  const { SLUICE_TEST_URL: server, SLUICE_TEST_POOLER_URL: pooler } = env;
  // A test may pass invalid options to see them refused.
  if (options?.constructor !== Object) return options;
  const direct = directUrl(options, env);
  if (typeof direct !== "string" || !URL.canParse(direct)) return options;
  const way = new URL(direct);
  if (way.host !== new URL(server!).host) return options;
  way.host = new URL(pooler!).host;
  const listens = env["SLUICE_TEST_POOLER"] === "listen" && options.listen !== false;
  const wakes = listens ? { listenUrl: options.listenUrl ?? direct } : { listen: false };
  return { ...options, url: way.href, prepare: false, ...wakes };
}

function directUrl({ url, pool, embedded }: ConnectOptions, env: NodeJS.ProcessEnv) {
  if (pool !== undefined || embedded === true) return undefined;
  return url ?? env["DATABASE_URL"];
}
