import { expect, it } from "vitest";
import { cpusOf, mebibytesOf } from "./resources.ts";

it("amounts are those of Kubernetes", () => {
  expect([mebibytesOf("2Gi"), mebibytesOf("512Mi"), mebibytesOf("1G"), mebibytesOf("1048576")]).toEqual([2_048, 512, 953, 1]);
  expect([mebibytesOf("500m"), mebibytesOf("1C"), mebibytesOf("much")]).toEqual([null, null, null]);
  // Whoever writes these means gibibytes.
  expect([mebibytesOf("0"), mebibytesOf("2"), mebibytesOf("512k")]).toEqual([null, null, null]);
  expect([cpusOf("2"), cpusOf("500m"), cpusOf("1C"), cpusOf("2Gi"), cpusOf("0")]).toEqual([2, 0.5, 1, null, null]);
});
