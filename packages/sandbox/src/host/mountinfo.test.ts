import fc from "fast-check";
import { expect, it } from "vitest";
import { parseMountinfo } from "./mountinfo.ts";

it("reads mounts with optional fields and escaped spaces", () => {
  const text = "36 35 98:0 /mnt\\0401 /a\\040b rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\n";
  expect(parseMountinfo(text)).toEqual([{ root: "/mnt 1", target: "/a b", type: "ext3", options: ["rw", "errors=continue"] }]);
});

it("reads arbitrary text without an error", () => {
  fc.assert(fc.property(fc.string(), (text) => void parseMountinfo(text)));
});
