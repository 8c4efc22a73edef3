import { describe, expect, it } from "vitest";
import { repr } from "../../python/repr.ts";
import { readToml } from "./toml.ts";

describe("a TOML file", () => {
  it("is read into tables, arrays of tables and values, with ints and floats apart", () => {
    const source = `
# phones
count = 2
price = 5.0 # each
"odd key" = 'raw\\n'

[device.status] # nested
on = true
note = "a # b \\"c\\""

[[lines]]
id = "L1"
tags = ["a", "b,c",
  "d"]

[[lines]]
id = "L2"
tags = []

[lines.plan]
gb = -1.5e3
`;
    expect(repr(readToml(source))).toBe(
      "{'count': 2, 'price': 5.0, 'odd key': 'raw\\\\n', 'device': {'status': {'on': True, 'note': 'a # b \"c\"'}}, " +
        "'lines': [{'id': 'L1', 'tags': ['a', 'b,c', 'd']}, {'id': 'L2', 'tags': [], 'plan': {'gb': -1500.0}}]}",
    );
  });

  it.each(["a = 2025-01-01", "a = 01", "a", "a = 1\na = 2"])("is refused with the line if it contains %j", (source) => {
    expect(() => readToml(source)).toThrow(/line [12] of a TOML file is not supported/);
  });
});
