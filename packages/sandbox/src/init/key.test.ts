import { statSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { initKeyArgument, openInitKey } from "./key.ts";

describe("the key of a home", () => {
  it("is created once, and only its user may read it", () => {
    using tree = temporaryTree();
    const key = openInitKey(tree.path);
    expect(openInitKey(tree.path).equals(key)).toBe(true);
    expect(statSync(join(tree.path, "init-key.pem")).mode & 0o777).toBe(0o600);
    using other = temporaryTree();
    expect(openInitKey(other.path).equals(key)).toBe(false);
  });

  it("is given to the init as 32 bytes of the public half", () => {
    using tree = temporaryTree();
    expect(Buffer.from(initKeyArgument(openInitKey(tree.path)), "base64")).toHaveLength(32);
  });
});
