import { expect, it } from "vitest";
import { contains, elementsOf, itemAt, lengthOf } from "./sequences.ts";
import { Dict, float } from "./values/values.ts";

const dict = Dict.of({ a: 1 });

it("lists, strings and dicts can be iterated, measured, searched and indexed", () => {
  expect([[..."ab"], [1], ["a"]]).toEqual([[...elementsOf("ab")], [...elementsOf([1])], [...elementsOf(dict)]]);
  expect([lengthOf("😀a"), lengthOf([1, 2]), lengthOf(dict)]).toEqual([2, 2, 1]);
  expect([contains("abc", "bc"), contains([1], float(1)), contains(dict, "b")]).toEqual([true, true, false]);
  expect([itemAt("ab", -1), itemAt([5], false), itemAt(dict, "a")]).toEqual(["b", 5, 1]);
});

it.each<[() => unknown, string]>([
  [() => elementsOf(true), "'bool' object is not iterable"],
  [() => lengthOf(5), "object of type 'int' has no len()"],
  [() => contains(5, "a"), "argument of type 'int' is not iterable"],
  [() => contains("abc", 5), "'in <string>' requires string as left operand, not int"],
  [() => itemAt(dict, "it's"), `"it's"`],
  [() => itemAt([1], "x"), "list indices must be integers or slices, not str"],
  [() => itemAt("x", "x"), "string indices must be integers, not 'str'"],
  [() => itemAt([1], -2), "list index out of range"],
  [() => itemAt(null, "x"), "'NoneType' object is not subscriptable"],
])("invalid operations raise Python's errors (%#)", (run, text) => expect(run).toThrow(text));
