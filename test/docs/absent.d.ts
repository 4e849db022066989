// Types of packages that are not installed here: only the parts that the pages use.
declare module "pino" {
  type LogFunction = (fields: object, message?: string) => void;
  export interface Logger {
    readonly debug: LogFunction;
    readonly info: LogFunction;
    readonly warn: LogFunction;
    readonly error: LogFunction;
    child(bindings: object): Logger;
  }
  export function pino(options?: { level?: string; name?: string }): Logger;
}

declare module "@sentry/node" {
  interface Context {
    readonly tags?: Record<string, string | number>;
    readonly extra?: Record<string, unknown>;
    readonly fingerprint?: string[];
  }
  export function init(options: { dsn?: string | undefined }): void;
  export function captureException(error: unknown, context?: Context): string;
  export function captureMessage(message: string, context?: Context & { level?: string }): string;
  export function flush(timeoutMs?: number): Promise<boolean>;
}
