import { expect, it } from "vitest";
import { givenVariables } from "./given-variables.ts";

it("the variables given to a program are those of its process without what the engine sets, unless it was given another value", () => {
  const own = { PATH: "/bin", HOME: "/sandboxes/a", AENV_SANDBOX: "secret" };
  const block = "PATH=/bin\0HOME=/elsewhere\0AENV_SANDBOX=secret\0QUERY=a=b\nc\0EMPTY=\0=odd\0";
  expect(givenVariables(block, own)).toEqual({ HOME: "/elsewhere", QUERY: "a=b\nc", EMPTY: "" });
});
