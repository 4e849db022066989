/** Where everything is measured. */
export interface Server {
  readonly url: string;
  readonly about: string;
  /** Of its first process; null: it is not ours. */
  readonly pid: number | null;
  stop(): Promise<void>;
}

// Durable, and large enough that neither a checkpoint nor reading from disk is what we measure.
export const SETTINGS = {
  fsync: "on",
  synchronous_commit: "on",
  shared_buffers: "256MB",
  max_wal_size: "4GB",
  max_connections: "200",
} as const;
