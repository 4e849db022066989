import { DBOSClient, type DLogger } from "@dbos-inc/dbos-sdk";

/** One application, with one queue and one workflow. */
export const APPLICATION = "bench";
export const QUEUE = "plain";
export const WORKFLOW = "plain";

/** As ours: silent, except for what goes wrong. */
export const logger: DLogger = {
  info: () => {},
  debug: () => {},
  warn: () => {},
  error: (entry: unknown) => console.error(entry),
};

export function clientOf(systemDatabaseUrl: string): Promise<DBOSClient> {
  return DBOSClient.create({ systemDatabaseUrl, applicationName: APPLICATION, logger });
}
