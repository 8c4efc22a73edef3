import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { equals } from "../../python/equality.ts";
import { repr } from "../../python/repr.ts";
import { Dict, float, type PyValue } from "../../python/values/values.ts";
import { parseAction, toFunctionalFormat } from "./action.ts";

function shown(action: string): string {
  const parsed = parseAction(action);
  return "text" in parsed ? "text" : `${parsed.call.name} ${repr(parsed.call.arguments)}`;
}

describe("an action", () => {
  it.each([
    ["find(a='x', b=[1, 2.0], c={'k': None}, d=(1,), e=-1.5)", "find {'a': 'x', 'b': [1, 2.0], 'c': {'k': None}, 'd': (1,), 'e': -1.5}"],
    ["f(a=true, b=None)", "f {'a': 'true', 'b': None}"],
    ["f(a={1: 2, True: 3, 1.0: 4})", "f {'a': {1: 4}}"],
    ["f(1, a=2)", "f {'a': 2}"],
    ["f(a=1)(b=2)", "f {'b': 2}"],
    ["f(a=1); g(b=2)", "f {'a': 1}"],
    ["Yes (confirmed)", "Yes {}"],
    ["Note(x == 1)", "Note {}"],
    ["A (x for x in y if z)", "A {}"],
    ["A (f'{x:{w}}')", "A {}"],
    ["A (f'{x['y']}')", "A {}"],
    ["f(a=1) # b)", "f {'a': 1}"],
    ["A ({**a, 'b': 1}, {1, *c}, [*d], x[1:2, ::3], lambda a, *b, c=1, **d: 0)", "A {}"],
    ['{"name": "x", "arguments": {"a": 1.0}}', "x {'a': 1.0}"],
    ["Sure (see below)", "text"],
    ["f(a=1, 2)", "text"],
    ["f(a=1+2)", "text"],
    ["f(a=-'x')", "text"],
    ["f(a=01)", "text"],
    ["f(class=1)", "text"],
    ["A (f'{x')", "text"],
    ["A ({1: 2, 3})", "text"],
    ["f(a=1 # b)", "text"],
    ['{"name": "x", "arguments": []}', "text"],
  ])("%s is %s", (action, meaning) => expect(shown(action)).toBe(meaning));

  it("cannot be empty", () => expect(() => parseAction("\u001f ")).toThrow("Action cannot be empty"));

  it("that is text is kept unchanged", () => expect(parseAction(" hello ")).toEqual({ text: " hello " }));

  it("in JSON keeps its own requestor and id", () => {
    expect(parseAction('{"name": "x", "arguments": {}, "requestor": "user", "id": "7"}')).toMatchObject({
      call: { requestor: "user", id: "7" },
    });
  });
});

const literals: fc.Arbitrary<PyValue> = fc.letrec<{ value: PyValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<PyValue>(null, true, false),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(float),
    fc.string(),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(fc.string(), tie("value")), { maxLength: 3 }).map((entries) => new Dict(entries)),
  ),
})).value;

describe("the functional format", () => {
  it("sorts its arguments and escapes only the quote", () => {
    expect(toFunctionalFormat("tool", Dict.of<PyValue>({ s: "it's\n", f: float(1), a: ["x"] }))).toBe("tool(a=['x'], f=1.0, s='it\\'s\n')");
    expect(() => toFunctionalFormat("", new Dict())).toThrow("ToolCall must have a name");
  });

  it("reads back as the same call", () => {
    fc.assert(
      fc.property(fc.array(literals), (items) => {
        const args = Dict.of<PyValue>({ items });
        const parsed = parseAction(toFunctionalFormat("tool", args));
        expect("call" in parsed && equals(parsed.call.arguments, args)).toBe(true);
      }),
    );
  });
});
