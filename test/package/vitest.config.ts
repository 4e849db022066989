import { defineConfig } from "vitest/config";

// A separate run: these checks install from the registry, and `npm test` needs no network.
export default defineConfig({
  test: {
    include: ["test/package/*.{test,check}.ts"],
    globalSetup: ["test/support/global.ts"],
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 180_000,
    passWithNoTests: false,
  },
});
