/** What Node is told when it runs one of our processes. Deprecations are their authors' to read. */
export function flagsOf(profile: string | null): string[] {
  const profiling = profile === null ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
  return ["--no-deprecation", ...profiling];
}
