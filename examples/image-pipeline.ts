import assert from "node:assert/strict";
import { Sluice, task, type, workflow } from "../src/index.js";

// An album is a list of images, and each image is made in several sizes: a fan-out in a fan-out. The outer
// one is drawn in the workflow; the inner one is found by the handler of an image, with ctx.map. While its
// sizes are made the image's task sleeps: it holds no place in a worker, nor in its window.
const WIDTHS = [1600, 800, 200];
const openAlbum = task("open-album", {
  input: type<{ album: string }>(),
  output: type<{ images: string[] }>(),
});
const resize = task("resize-image", {
  input: type<{ image: string; width: number }>(),
  output: type<string>(),
});
const makeImage = task("make-image", {
  input: type<{ image: string }>(),
  output: type<{ files: string[] }>(),
});
const publish = task("publish-album", {
  input: type<{ album: string; images: { files: string[] }[] }>(),
  output: type<{ files: number }>(),
});

const pipeline = workflow("image-pipeline", { input: type<{ album: string }>() }, (w, input) => {
  const opened = w.task("open", openAlbum, { album: input.album });
  const images = w.each("images", makeImage, opened.images, (image) => ({ image }), { window: 4 });
  const published = w.task("publish", publish, { album: input.album, images: images.results });
  return { files: published.files };
});

const IMAGES = 6;
const made = new Map<string, number>();
let [running, peak] = [0, 0];
const handlers = [
  openAlbum.handle(({ album }) => ({
    images: Array.from({ length: IMAGES }, (_, i) => `${album}-${i}`),
  })),
  makeImage.handle(async ({ image }, ctx) => {
    // This runs again when the sizes are made; then the map returns what they came to.
    const files = await ctx.map(
      "sizes",
      WIDTHS.map((width) => ({ image, width })),
      resize,
      {
        window: 2,
      },
    );
    return { files: [...files] };
  }),
  resize.handle(async ({ image, width }) => {
    peak = Math.max(peak, ++running);
    await new Promise((resolve) => setTimeout(resolve, 10));
    running--;
    const file = `${image}-${width}.avif`;
    made.set(file, (made.get(file) ?? 0) + 1);
    return file;
  }),
  publish.handle(({ images }) => ({ files: images.flatMap(({ files }) => files).length })),
];

const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
// Room for two tasks: all images and their sizes still come through it, for who waits takes no room. The window of
// four bounds how many images run at once, not how many wait for their sizes; how many sizes are made at once is
// bounded by the room here, or across many workers by a limit of resize-image, such as its concurrency.
await sluice.worker({ maxConcurrentTasks: 2, handlers }).start();

const run = await sluice.start(pipeline, { album: "summer" });
const { files } = await run.result();
await sluice.close();

console.log(`${IMAGES} images in ${WIDTHS.length} sizes: ${files} files published`);
console.log(`files created: ${[...made.values()].reduce((sum, times) => sum + times, 0)}`);
console.log(`more handlers at once than permits: ${peak > 2 ? "yes" : "never"}`);
assert.equal(files, IMAGES * WIDTHS.length);
assert.equal(made.size, files);
assert.ok([...made.values()].every((times) => times === 1));
assert.ok(peak <= 2);
