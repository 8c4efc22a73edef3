import { expect, it } from "vitest";
import { wantsColor } from "./terminal.ts";

it.each([
  [{}, true, true],
  [{}, false, false],
  [{ NO_COLOR: "1" }, true, false],
  [{ NO_COLOR: "" }, true, true],
  [{ FORCE_COLOR: "1" }, false, true],
  [{ FORCE_COLOR: "1", NO_COLOR: "1" }, true, false],
  [{ TERM: "dumb" }, true, false],
])("with %j and a terminal: %j, colours: %j", (env, isTty, wanted) => {
  expect(wantsColor(env, isTty)).toBe(wanted);
});
