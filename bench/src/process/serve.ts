import { tellParent } from "./counter.js";
import type { Report, ToWorker } from "./messages.js";

/** What a worker process can do, whoever's worker it is. */
interface Service {
  report(): Report;
  go(): Promise<void>;
  stop(): Promise<void>;
}

/** Ready means: loaded and connected. Then the parent says when to begin and when to end. */
export function serve(service: Service): void {
  process.on("message", (message: ToWorker) => void obey(service, message));
  // Without a parent nobody would ever stop us; it may have gone while we were loading.
  process.on("disconnect", () => process.exit(1));
  if (!process.connected) process.exit(1);
  tellParent({ kind: "ready" });
}

async function obey(service: Service, { kind }: ToWorker): Promise<void> {
  if (kind === "go") return service.go();
  if (kind === "report") return tellParent({ kind, report: service.report() });
  await service.stop();
  process.exit(0);
}

/** The argument that the parent gave, as it was there. */
export function argument(): unknown {
  return JSON.parse(process.argv[2] ?? "null");
}
