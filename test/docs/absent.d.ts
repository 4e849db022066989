// Types of packages that are not installed here: only the parts that the pages use.
declare module "pino" {
  interface LogFunction {
    <T>(obj: T, msg?: T extends string ? never : string, ...args: unknown[]): void;
    (msg: string, ...args: number[]): void;
  }
  export interface Logger {
    readonly debug: LogFunction;
    readonly info: LogFunction;
    readonly warn: LogFunction;
    readonly error: LogFunction;
    child(bindings: object): Logger;
    bindings(): object;
  }
  export function pino(options?: { level?: string; name?: string }): Logger;
}

declare module "@sentry/node" {
  interface Context {
    readonly tags?: Record<string, string | number>;
    readonly extra?: Record<string, unknown>;
    readonly fingerprint?: string[];
  }
  interface Scope {
    setTags(tags: Record<string, string | number>): Scope;
  }
  export function withIsolationScope<T>(callback: (scope: Scope) => T): T;
  export function init(options: { dsn?: string | undefined }): void;
  export function captureException(error: unknown, context?: Context): string;
  export function captureMessage(message: string, context?: Context & { level?: string }): string;
  export function flush(timeoutMs?: number): Promise<boolean>;
}
