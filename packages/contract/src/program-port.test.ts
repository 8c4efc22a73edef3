import { expect, it } from "vitest";
import { programPort } from "./program-port.ts";

it.each([
  [{ command: ["serve"] }, { port: 8081, isFlexible: true }],
  [
    { command: ["serve"], port: 9000 },
    { port: 9000, isFlexible: false },
  ],
  [
    { command: ["serve", "--bind=:{port}"], port: 9000 },
    { port: 9000, isFlexible: true },
  ],
])("the port of %j is %j", (runtime, expected) => {
  expect(programPort(runtime)).toEqual(expected);
});
