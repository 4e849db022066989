// For programs that a test starts. A thread of such a program loads this too, but has no loader for TypeScript.
import { isMainThread } from "node:worker_threads";

if (isMainThread) await import("./through.ts");
