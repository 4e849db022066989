import fc from "fast-check";
import { expect, test } from "vitest";
import { listTexts } from "../../src/core/jsonlist.js";

test("listTexts returns the members of a JSON list as they are written", () => {
  expect(listTexts('[1e400, {"a":[1,2]} ,"x,]\\"\\\\",[ ],null]')).toEqual([
    "1e400",
    '{"a":[1,2]}',
    '"x,]\\"\\\\"',
    "[ ]",
    "null",
  ]);
  expect(listTexts(" [ ] ")).toEqual([]);
});

test("listTexts splits any JSON list, with or without whitespace", () => {
  const list = fc.array(fc.jsonValue({ maxDepth: 4 }), { maxLength: 5 });
  fc.assert(
    fc.property(list, fc.constantFrom(0, 1), (values, space) => {
      const texts = listTexts(JSON.stringify(values, null, space));
      expect(texts.map((text) => JSON.parse(text) as unknown)).toEqual(JSON.parse(JSON.stringify(values)));
    }),
  );
});
