// A guard stands between markers in the source, SQL and TypeScript alike: /* guard:fence */ ... /* end */. A mutant names
// the marker and says what stands there instead, so a change of the guarded text breaks no mutant. Markers may be nested,
// and one name may be used at several places of a file: a mutant then replaces them all.

interface Marked {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

const MARKER = /\/\* (?:guard:([a-z-]+)|(end)) \*\//g;

/** The text with something else between the markers of this name. Throws if there are none. */
export function replaceMarked(text: string, name: string, instead: string): string {
  const found = markedIn(text).filter((marked) => marked.name === name);
  if (found.length === 0) throw new Error(`there is no marker /* guard:${name} */`);
  // From the end, so that what is found before keeps its place.
  return found
    .toSorted((a, b) => b.from - a.from)
    .reduce((all, { from, to }) => all.slice(0, from) + instead + all.slice(to), text);
}

/** Everything between markers, the markers included. Throws if one has no end. */
export function markedIn(text: string): Marked[] {
  const open: { name: string; from: number }[] = [];
  const found: Marked[] = [];
  for (const { 0: all, 1: name, index } of text.matchAll(MARKER)) {
    if (name !== undefined) {
      open.push({ name, from: index });
      continue;
    }
    const last = open.pop();
    if (last === undefined) throw new Error("a marker ends that has no beginning");
    found.push({ ...last, to: index + all.length });
  }
  if (open.length > 0) throw new Error(`/* guard:${open[0]!.name} */ has no end`);
  return found;
}
