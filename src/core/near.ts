const DISTANCE_MAX = 3;
const LETTERS_MAX = 100;

/** Returns `; did you mean lease_ms?` if one of the words is similar, else an empty text. */
export function didYouMean(word: string, words: readonly string[]): string {
  const [best] = words
    .map((known) => ({ known, far: distance(word.toLowerCase(), known.toLowerCase()) }))
    .filter(({ known, far }) => far <= Math.min(DISTANCE_MAX, known.length / 2))
    .toSorted((a, b) => a.far - b.far);
  return best === undefined ? "" : `; did you mean ${best.known}?`;
}

/** Returns how many letters must be added, dropped or changed. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 0; i < Math.min(a.length, LETTERS_MAX); i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const change = row[j]! + (a[i] === b[j] ? 0 : 1);
      next.push(Math.min(change, row[j + 1]! + 1, next[j]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
